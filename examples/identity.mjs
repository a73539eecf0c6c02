// Prints an identity_token: the proof of a backend that a device belongs to one of its users.
import { createHmac } from "node:crypto";

const { PUSHSVC_CHANNEL: channel, PUSHSVC_IDENTITY_KEY: identityKey } = process.env; // psi_…, of an HS256 key

/** For the user who is signed in, and for nobody else. Valid for an hour. */
function identityToken(userId) {
  const claims = { sub: userId, aud: channel, exp: Math.floor(Date.now() / 1000) + 3600 };
  const signed = `${encoded({ alg: "HS256", typ: "JWT" })}.${encoded(claims)}`;
  return `${signed}.${createHmac("sha256", identityKey).update(signed).digest("base64url")}`;
}

function encoded(value) {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

console.log(identityToken(process.argv[2]));
