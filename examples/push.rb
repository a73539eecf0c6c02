# Subscribes a browser, sends to it, waits for the result, and shows how an error looks.
require "json"
require "net/http"
require "securerandom"

SERVICE = ENV.fetch("PUSHSVC_URL")
CHANNEL = ENV.fetch("PUSHSVC_CHANNEL")
KEY = ENV.fetch("PUSHSVC_KEY")
SUBSCRIPTION = JSON.parse(ENV.fetch("PUSHSVC_SUBSCRIPTION")) # a browser's PushSubscription

# The status and the JSON of the answer, whatever the status is.
def call(method, path, headers, body = nil)
  uri = URI(SERVICE + path)
  request = Net::HTTP.const_get(method).new(uri, { "Content-Type" => "application/json" }.merge(headers))
  request.body = JSON.generate(body) if body
  Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == "https", read_timeout: 30) do |http|
    answer = http.request(request)
    [answer.code.to_i, JSON.parse(answer.body)]
  end
end

# Public: browsers and apps make this call.
_, subscribed = call(:Post, "/subscribe", { "X-Channel-ID" => CHANNEL }, SUBSCRIPTION)
puts "subscribed #{subscribed['subscriptionId']}"

# A repeat with the same Idempotency-Key sends nothing a second time.
owner = { "Authorization" => "Key #{KEY}" }
message = { title: "Hello", body: "It works.", url: "https://example.com/" }
once = owner.merge("Idempotency-Key" => SecureRandom.uuid)
_, sent = call(:Post, "/send-notification", once, message)
puts "sent #{sent['notification_id']}"

shown = nil
loop do
  _, shown = call(:Get, "/notification/#{sent['notification_id']}", owner)
  break if %w[sent failed cancelled].include?(shown["status"])

  sleep 0.5
end
puts "result #{shown['status']}: #{shown['delivered_count']} of #{shown['recipient_count']}"

# Every error has a stable code (/docs/errors).
status, problem = call(:Post, "/send-notification", owner, { title: "No body" })
puts "refused #{status} #{problem['code']} #{problem['errors'][0]['attr']}"
