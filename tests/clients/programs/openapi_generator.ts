// With the package that OpenAPI Generator makes of docs/openapi.yaml, for TypeScript.
import {
  Configuration,
  NotificationsApi,
  ProblemFromJSON,
  ResponseError,
  SubscribeInputFromJSON,
  SubscriptionsApi,
} from "./generated/index.js";

declare const process: { env: Record<string, string> };
const { PUSHSVC_URL, PUSHSVC_CHANNEL, PUSHSVC_KEY, PUSHSVC_SUBSCRIPTION } = process.env;
const configuration = new Configuration({ basePath: PUSHSVC_URL, apiKey: `Key ${PUSHSVC_KEY}` });
const notifications = new NotificationsApi(configuration);

const subscribed = await new SubscriptionsApi(configuration).subscribe({
  xChannelID: PUSHSVC_CHANNEL!,
  subscribeInput: SubscribeInputFromJSON(JSON.parse(PUSHSVC_SUBSCRIPTION!)),
});
console.log("subscribed", subscribed.subscriptionId);

const sent = await notifications.sendNotification({
  sendInput: { title: "Hello", body: "It works.", url: "https://example.com/" },
  idempotencyKey: crypto.randomUUID(),
});
console.log("sent", sent.notificationId);

let shown = await notifications.getNotification({ notificationId: sent.notificationId });
while (!["sent", "failed", "cancelled"].includes(shown.status)) {
  await new Promise((resolve) => setTimeout(resolve, 200));
  shown = await notifications.getNotification({ notificationId: sent.notificationId });
}
console.log(`result ${shown.status}: ${shown.deliveredCount} of ${shown.recipientCount}`);

try {
  await notifications.sendNotification({
    sendInput: { body: "x", segmentId: crypto.randomUUID() },
  });
} catch (error) {
  if (!(error instanceof ResponseError)) throw error;
  const problem = ProblemFromJSON(await error.response.json());
  console.log("refused", problem.status, problem.code);
}
