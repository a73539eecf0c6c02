// With openapi-fetch and the types that openapi-typescript makes of docs/openapi.yaml.
import createClient from "openapi-fetch";
import type { paths } from "./generated.js";

declare const process: { env: Record<string, string> };
const { PUSHSVC_URL, PUSHSVC_CHANNEL, PUSHSVC_KEY, PUSHSVC_SUBSCRIPTION } = process.env;
const headers = { Authorization: `Key ${PUSHSVC_KEY}` };
const api = createClient<paths>({ baseUrl: PUSHSVC_URL!, headers });

const subscribed = await api.POST("/subscribe", {
  body: JSON.parse(PUSHSVC_SUBSCRIPTION!),
  params: { header: { "X-Channel-ID": PUSHSVC_CHANNEL! } },
});
console.log("subscribed", subscribed.data?.subscriptionId);

const sent = await api.POST("/send-notification", {
  body: { title: "Hello", body: "It works.", url: "https://example.com/" },
  params: { header: { "Idempotency-Key": crypto.randomUUID() } },
});
if (!sent.data || !("notification_id" in sent.data)) throw new Error("not sent");
const path = { notification_id: sent.data.notification_id };
console.log("sent", path.notification_id);

for (;;) {
  const { data: shown } = await api.GET("/notification/{notification_id}", { params: { path } });
  if (shown && ["sent", "failed", "cancelled"].includes(shown.status)) {
    console.log(`result ${shown.status}: ${shown.delivered_count} of ${shown.recipient_count}`);
    break;
  }
  await new Promise((resolve) => setTimeout(resolve, 200));
}

const { error } = await api.POST("/send-notification", {
  body: { body: "x", segment_id: crypto.randomUUID() },
});
console.log("refused", error?.status, error?.code);
