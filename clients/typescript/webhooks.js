/** Verifies webhooks by Standard Webhooks 1.0.0, with Web Crypto, so that it runs everywhere. */

const TOLERANCE_SECONDS = 300;
const PREFIX = "whsec_";

/** The request is forged, changed, old or malformed. Respond with 400. */
export class InvalidWebhook extends Error {
  name = "InvalidWebhook";
}

/**
 * What a webhook says. `id` is the same in every repeat of a message, so that you can ignore
 * repeats.
 *
 * @typedef {{id: string, type: string, timestamp: string, data: Record<string, any>}} Webhook
 */

/**
 * What the request says, if the owner of `secret` signed it in the last five minutes.
 *
 * `body` is what was received, byte by byte. Rejects with `InvalidWebhook` for a request that is
 * forged, changed, old or malformed.
 *
 * @param {Uint8Array | string} body
 * @param {Headers | Record<string, string | string[] | undefined>} headers
 * @param {string} secret
 * @returns {Promise<Webhook>}
 */
export async function verifyWebhook(body, headers, secret) {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const id = header(headers, "webhook-id");
  const seconds = header(headers, "webhook-timestamp");
  if (!/^[0-9]{1,12}$/.test(seconds)) throw new InvalidWebhook("no valid webhook-timestamp");
  if (Math.abs(Date.now() / 1000 - Number(seconds)) > TOLERANCE_SECONDS) {
    throw new InvalidWebhook("webhook-timestamp is not of the last five minutes");
  }
  const begin = new TextEncoder().encode(`${id}.${seconds}.`);
  const signed = new Uint8Array(begin.length + bytes.length);
  signed.set(begin);
  signed.set(bytes, begin.length);
  if (!(await isSigned(signed, header(headers, "webhook-signature"), secret))) {
    throw new InvalidWebhook("no signature of this secret");
  }
  try {
    const { type, timestamp, data } = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof type === "string" && typeof data === "object") return { id, type, timestamp, data };
  } catch {
    // as for a body that is JSON and no event
  }
  throw new InvalidWebhook("the body is no event");
}

/**
 * Two signatures are given while a secret is replaced. Web Crypto compares in constant time.
 *
 * @param {Uint8Array<ArrayBuffer>} signed
 * @param {string} given
 * @param {string} secret
 */
async function isSigned(signed, given, secret) {
  const key = await crypto.subtle.importKey(
    "raw",
    decoded(secret.replace(PREFIX, "")),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["verify"],
  );
  for (const each of given.split(" ")) {
    const isSignature = /^v1,[A-Za-z0-9+/]{43}=$/.test(each); // 32 bytes
    if (isSignature && (await crypto.subtle.verify("HMAC", key, decoded(each.slice(3)), signed))) {
      return true;
    }
  }
  return false;
}

/** @param {string} text */
function decoded(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/**
 * In an object, the names are in lower case in Node.js, and in any case elsewhere.
 *
 * @param {Headers | Record<string, string | string[] | undefined>} headers
 * @param {string} name
 */
function header(headers, name) {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  const own = Object.keys(headers).find((each) => each.toLowerCase() === name);
  const found = own && headers[own];
  return typeof found === "string" ? found : "";
}
