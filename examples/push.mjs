// Subscribes a browser, sends to it, waits for the result, and shows how an error looks.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const { PUSHSVC_URL: service, PUSHSVC_CHANNEL: channel, PUSHSVC_KEY: key } = process.env;
const subscription = JSON.parse(process.env.PUSHSVC_SUBSCRIPTION); // a browser's PushSubscription

/** The status and the JSON of the answer, whatever the status is. */
async function call(method, path, headers, body) {
  const answer = await fetch(service + path, {
    method,
    headers: { "Content-Type": "application/json", ...headers },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  return [answer.status, await answer.json()];
}

// Public: browsers and apps make this call.
const [, subscribed] = await call("POST", "/subscribe", { "X-Channel-ID": channel }, subscription);
console.log("subscribed", subscribed.subscriptionId);

// A repeat with the same Idempotency-Key sends nothing a second time.
const asOwner = { Authorization: `Key ${key}` };
const message = { title: "Hello", body: "It works.", url: "https://example.com/" };
const once = { ...asOwner, "Idempotency-Key": randomUUID() };
const [, sent] = await call("POST", "/send-notification", once, message);
console.log("sent", sent.notification_id);

let shown;
for (;;) {
  [, shown] = await call("GET", `/notification/${sent.notification_id}`, asOwner);
  if (["sent", "failed", "cancelled"].includes(shown.status)) break;
  await sleep(500);
}
console.log(`result ${shown.status}: ${shown.delivered_count} of ${shown.recipient_count}`);

// Every error has a stable code (/docs/errors).
const [status, problem] = await call("POST", "/send-notification", asOwner, { title: "No body" });
console.log("refused", status, problem.code, problem.errors[0].attr);
