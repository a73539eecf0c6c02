// With clients/typescript: every operation of the document.
import { Client, Refused, type Schemas } from "pushsvc-client";

declare const process: { env: Record<string, string> };
const { PUSHSVC_URL, PUSHSVC_CHANNEL, PUSHSVC_KEY, PUSHSVC_SUBSCRIPTION, GOOGLE } = process.env;
const push = new Client(PUSHSVC_URL!, { channel: PUSHSVC_CHANNEL!, key: PUSHSVC_KEY! });
const browser = JSON.parse(PUSHSVC_SUBSCRIPTION!);
const far = new Date("2999-01-01T00:00:00Z");

async function code(call: Promise<unknown>) {
  try {
    return `no error but ${JSON.stringify(await call)}`;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return `${error.status} ${error.code} ${error.requestId.length > 8}`;
  }
}

async function all<T>(list: AsyncIterable<T>) {
  const found: T[] = [];
  for await (const each of list) found.push(each);
  return found;
}

// Devices, a send and its results
const { public_key } = await push.getWebPushKey();
await push.getPrompt();
const { subscriptionId } = await push.subscribe(browser);
console.log("subscribed", subscriptionId, public_key.length);
const { categories } = await push.updatePreferences({ endpoint: browser.endpoint });
const idempotencyKey = crypto.randomUUID();
const targets = [{ subscription_id: subscriptionId }];
const message = { title: "Hello", body: "It works.", url: "https://example.com/", targets };
const tried = await push.dryRun(message);
const sent = await push.sendNotification(message, { idempotencyKey });
const again = await push.sendNotification(message, { idempotencyKey });
if (again.notification_id !== sent.notification_id) throw new Error("sent twice");
const shown: Schemas["NotificationOutput"] = await push.wait(sent.notification_id);
console.log(`result ${shown.status}: ${shown.delivered_count} of ${shown.recipient_count}`);
console.log("before", categories.length, tried.platforms["web"]?.audience);
const [target] = await all(push.listNotificationTargets(sent.notification_id));
const [delivery] = await all(push.exportDeliveries(sent.notification_id, { outcome: "delivered" }));
if (delivery?.subscription_id !== subscriptionId) throw new Error("not exported");
const why = await push.explainDelivery({
  notification_id: sent.notification_id, subscription_id: subscriptionId,
});
if (why.devices[0]?.verdict !== "got") throw new Error("not explained");
await push.reportEvents({ events: [{ token: "A".repeat(64), event: "clicked" }] });
await push.reportPromptEvent({ kind: "bell", event: "shown" });
console.log("target", target?.state, await code(push.followClick("A".repeat(64))));
console.log("refused", await code(push.sendNotification({ body: "x", segment_id: crypto.randomUUID() })));

// A send for later
const later = (await push.sendNotification({ body: "Later", scheduled_at: far })).notification_id;
await push.pauseNotification(later);
const { paused } = await push.getNotificationDetails(later);
await push.editNotification(later, { body: "Even later" });
await push.resumeNotification(later);
console.log("paused", paused, await code(push.stopNotification(later)));
console.log("winner", await code(push.decideTest(later, { variant: "short" })));
const [pending] = await all(push.listNotifications({ status: "pending", scheduled_after: far }));
console.log("pending", pending?.body, pending?.scheduled_at);
await push.cancelNotification(later);
console.log("now", (await push.getNotification(later)).status);

// The channel, its content and its people
const { subscriber_count } = await push.getChannelStatistics();
await push.updateProviderCredentials({ providers_config: { fcm_service_account: GOOGLE! } });
const { android } = (await push.getChannelPlatforms()).platforms;
await push.updateDeliverySettings({ timezone: "Europe/Berlin", inbox_days: 7 });
const inbox = await push.readInbox({ endpoint: browser.endpoint, keys: browser.keys });
console.log("inbox", inbox.messages[0]?.body, inbox.unread);
console.log("zone", (await push.getDeliverySettings()).timezone);
const from = new Date(Date.now() - 86_400_000);
const days = await push.getChannelTimeSeries({ from, interval: "day", platform: "web" });
const net = days.subscribers.reduce((sum, { gained, lost }) => sum + gained - lost, 0);
console.log("days", net);
console.log("channel", subscriber_count, android.credential?.kind);
await push.createCategory({ key: "offers", name: "Offers", default: true });
await push.updateCategory("offers", { name: "Deals", default: false });
const [category] = await all(push.listCategories());
await push.archiveCategory("offers");
const content = { body: "It left." };
const template = (await push.createTemplate({ name: "Shipped", content })).template_id;
await push.updateTemplate(template, { name: "Sent", content });
console.log("content", category?.name, (await push.getTemplate(template)).name);
for (let number = 0; number < 102; number++) await push.createTemplate({ name: `${number}`, content });
const [many, few] = await Promise.all([all(push.listTemplates()), all(push.listTemplates({ limit: 101 }))]);
console.log("lists", many.length, few.length, (await all(push.listTemplates({ limit: 2, offset: 1 })))[0]?.name);
await push.deleteTemplate(template);
const digest = { name: "Digest", notification: content, recurrence: { rule: "FREQ=DAILY", at: ["09:00"], timezone: "UTC" } };
const schedule = (await push.createSchedule(digest)).schedule_id;
await push.updateSchedule(schedule, { ...digest, enabled: false });
const [repeated] = await all(push.listSchedules());
const occurred = await all(push.listOccurrences(schedule));
console.log("schedules", repeated?.name, (await push.getSchedule(schedule)).enabled, occurred.length);
await push.deleteSchedule(schedule);
const welcome = { name: "Welcome", trigger: { event: "subscriptions.created" as const }, delay_minutes: 10, notification: content };
const automation = (await push.createAutomation(welcome)).automation_id;
await push.updateAutomation(automation, { ...welcome, enabled: false });
const [automated] = await all(push.listAutomations());
const automatedDays = await all(push.listAutomationDays(automation));
console.log("automations", automated?.name, (await push.getAutomation(automation)).enabled, automatedDays.length);
await push.deleteAutomation(automation);
const news = { name: "News", url: "https://www.shop.com/feed/", notification: content };
const newsfeed = (await push.createNewsfeed(news)).newsfeed_id;
await push.updateNewsfeed(newsfeed, { ...news, enabled: false });
const [checked] = await all(push.listNewsfeeds());
await push.checkNewsfeed(newsfeed);
const newest = (await push.getNewsfeedPreview(newsfeed)).entry;
console.log("newsfeeds", checked?.name, (await push.getNewsfeed(newsfeed)).enabled, newest);
await push.deleteNewsfeed(newsfeed);
const key = (await push.createIdentityKey({ algorithm: "HS256" })).identity_key_id;
const keys = await push.listIdentityKeys();
await push.deleteIdentityKey(key);
await push.createWebPushKey({ private_key: `${"A".repeat(42)}E` });
console.log("web push keys", ...(await push.listWebPushKeys()).map((each) => each.current));
const where = { url: "https://backend.shop.com/", events: ["notifications.finished"] as const };
const made = await push.createWebhook({ ...where, events: [...where.events] });
const hook = made.webhook_id;
await push.updateWebhook(hook, { ...where, events: [...where.events], enabled: true });
const rotated = await push.rotateWebhookSecret(hook);
await push.testWebhook(hook);
const [told] = await all(push.listWebhookMessages(hook, { state: "waiting" }));
const { messages } = await push.replayWebhook(hook, { since: (await push.getWebhook(hook)).created_at });
const hooks = await push.listWebhooks();
await push.deleteWebhook(hook);
console.log("webhooks", hooks.length, rotated.secret !== made.secret, told?.type, messages);
const external_id = "user 42";
await push.linkDevices({ links: [{ subscription_id: subscriptionId, external_id }] });
await push.updatePerson({ external_id }, { attributes: { plan: "pro" } });
const person = await push.getPerson({ external_id });
const known = await push.exportPerson({ external_id });
const { people } = await push.getChannelAudience();
console.log("people", keys.length, person.devices.length, known.devices.length, people);
const [row] = await all(push.exportSubscriptions({ include: "address" }));
console.log("exported", row?.attributes["plan"], row?.keys?.auth === browser.keys.auth);
await push.changeTagMembers("news:de", { external_ids: [external_id] });
console.log("tags", (await all(push.listTags({ prefix: "news" })))[0]?.tag);
await push.deleteTag("news:de");
const rule = { attribute: "plan", operator: "eq", value: "pro" } as const;
const segment = (await push.createSegment({ name: "Payers", rule })).segment_id;
await push.updateSegment(segment, { name: "Pro", rule });
const { size } = await push.getSegmentSize(segment);
const names = (await all(push.listSegments())).map(({ name }) => name);
console.log("segments", size, names, (await push.getSegment(segment)).name);
await push.deleteSegment(segment);
console.log("erased", (await push.erasePerson({ external_id })).erased !== undefined);
function* table() {
  yield "platform;endpoint;p256dh;auth;";
  yield "note\n";
  for (let number = 0; number < 5_002; number++) {
    yield `web;${browser.endpoint}${number};${browser.keys.p256dh};${browser.keys.auth};"a\n`;
    yield 'b"\n';
  }
  yield "web;none;;;";
}
const { created, refusals } = await push.importSubscriptions(table(), { format: "tokens_csv", dry_run: true });
console.log("imported", created, refusals[0]?.line);
await push.unsubscribe({ endpoint: browser.endpoint });

// Other requests, and what the types find
const audience = await push.request("GET", `/channel/${push.channel}/audience`);
console.log("request", audience.people);
console.log("dates", await code(push.sendNotification({ body: "x", scheduled_at: new Date("?") }).catch((error) => error.message)));
// @ts-expect-error: a misspelt field
await code(push.sendNotification({ bodytext: "x" }));
// @ts-expect-error: no such field of an answer
console.log(shown.delivered);
