// With clients/typescript.
import { Client, Refused } from "pushsvc-client";

declare const process: { env: Record<string, string> };
const { PUSHSVC_URL, PUSHSVC_CHANNEL, PUSHSVC_KEY, PUSHSVC_SUBSCRIPTION } = process.env;
const push = new Client(PUSHSVC_URL!, { channel: PUSHSVC_CHANNEL!, key: PUSHSVC_KEY! });
const browser = JSON.parse(PUSHSVC_SUBSCRIPTION!);

console.log("subscribed", await push.subscribe(browser));

const idempotencyKey = crypto.randomUUID();
const sent = await push.send({ title: "Hello", body: "It works." }, { idempotencyKey });
const again = await push.send({ title: "Hello", body: "It works." }, { idempotencyKey });
if (again.notification_id !== sent.notification_id) throw new Error("sent twice");
console.log("sent", sent.notification_id);

const shown = await push.wait(sent.notification_id);
console.log(`result ${shown.status}: ${shown.delivered_count} of ${shown.recipient_count}`);

try {
  await push.send({ body: "x", segment_id: crypto.randomUUID() });
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  console.log("refused", error.status, error.code);
}

const later = await push.send({ body: "Later", scheduled_at: "2999-01-01T00:00:00Z" });
await push.pause(later.notification_id);
const { paused } = await push.details(later.notification_id);
await push.resume(later.notification_id);
try {
  await push.stop(later.notification_id);
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  console.log("paused", paused, error.code);
}
await push.cancel(later.notification_id);
const listed = await push.notifications({ limit: 1 });
const details = await push.details(sent.notification_id);
await push.unsubscribe({ endpoint: browser.endpoint });
const { subscriber_count } = await push.statistics();
const { platforms } = await push.platforms();
console.log(listed[0]?.status, details.platforms["web"]?.delivered_count, subscriber_count);
console.log(platforms.web.enabled, platforms.web.paused);
