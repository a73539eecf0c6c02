# Prints an identity_token: the proof of a backend that a device belongs to one of its users.
require "json"
require "openssl"

CHANNEL = ENV.fetch("PUSHSVC_CHANNEL")
IDENTITY_KEY = ENV.fetch("PUSHSVC_IDENTITY_KEY") # psi_…, of an HS256 key

# For the user who is signed in, and for nobody else. Valid for an hour.
def identity_token(user_id)
  claims = { sub: user_id, aud: CHANNEL, exp: Time.now.to_i + 3600 }
  signed = "#{encoded({ alg: 'HS256', typ: 'JWT' })}.#{encoded(claims)}"
  "#{signed}.#{base64url(OpenSSL::HMAC.digest('SHA256', IDENTITY_KEY, signed))}"
end

def encoded(value)
  base64url(JSON.generate(value))
end

# Without the gem base64, which Ruby 3.4 no longer brings.
def base64url(data)
  [data].pack("m0").tr("+/", "-_").delete("=")
end

puts identity_token(ARGV.fetch(0))
