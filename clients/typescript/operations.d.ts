/** @typedef {import("./schema.d.ts").operations} Operations */
/** @typedef {import("./schema.d.ts").components["schemas"]} Schemas */
/**
 * @template {keyof Operations} Name
 * @typedef {NonNullable<Operations[Name]["parameters"]["query"]>} Query
 */
export class Methods extends Calls {
    /**
     * Archive a category.
     *
     * No send can name it any more, and no preferences show it. Choices are kept. Sends that were
     * accepted before still skip devices that refuse it. A second call returns 404.
     *
     * @param {string} categoryKey
     * @returns {Promise<void>}
     */
    archiveCategory(categoryKey: string): Promise<void>;
    /**
     * Cancel a notification that is still pending.
     *
     * Safe to repeat. A notification that is processed or sent cannot be cancelled. `message` has
     * the notification's title if the key has the scope `read`.
     *
     * @param {string} notificationId
     * @returns {Promise<Schemas["CancelOutput"]>}
     */
    cancelNotification(notificationId: string): Promise<Schemas["CancelOutput"]>;
    /**
     * Add a tag to devices, or remove it.
     *
     * Names people and devices, at most 1,000 together. Devices that a person adds later do not
     * have the tag. Safe to repeat.
     *
     * @param {string} tag
     * @param {Schemas["MembersInput"]} body
     * @returns {Promise<Schemas["MembersOutput"]>}
     */
    changeTagMembers(tag: string, body: Schemas["MembersInput"]): Promise<Schemas["MembersOutput"]>;
    /**
     * Check a newsfeed now.
     *
     * Makes the next check due now, or a minute after the last one.
     *
     * @param {string} newsfeedId
     * @returns {Promise<Schemas["NewsfeedOutput"]>}
     */
    checkNewsfeed(newsfeedId: string): Promise<Schemas["NewsfeedOutput"]>;
    /**
     * Create an automation.
     *
     * An automation sends a notification to each device or person to whom something happened. The
     * content of a template is copied now. See [automations](/docs/automations).
     *
     * @param {Schemas["AutomationInput"]} body
     * @param {{idempotencyKey?: string}} [options]
     * @returns {Promise<Schemas["AutomationOutput"]>}
     */
    createAutomation(body: Schemas["AutomationInput"], options?: {
        idempotencyKey?: string;
    }): Promise<Schemas["AutomationOutput"]>;
    /**
     * Create a category.
     *
     * A send names it in `category`; devices and people choose it. The key of an archived category
     * restores that one, with the choices that were made.
     *
     * @param {Schemas["CategoryInput"]} body
     * @returns {Promise<Schemas["CategoryOutput"]>}
     */
    createCategory(body: Schemas["CategoryInput"]): Promise<Schemas["CategoryOutput"]>;
    /**
     * Create an identity key.
     *
     * Your backend signs an `identity_token` with it, which proves to `POST /subscribe` whose
     * device it is. See [identity](/docs/identity). `Idempotency-Key` is ignored, because a stored
     * response would contain the secret.
     *
     * @param {Schemas["IdentityKeyInput"]} body
     * @returns {Promise<Schemas["ShownIdentityKeyOutput"]>}
     */
    createIdentityKey(body: Schemas["IdentityKeyInput"]): Promise<Schemas["ShownIdentityKeyOutput"]>;
    /**
     * Create a newsfeed.
     *
     * A newsfeed sends each new entry of an RSS or Atom feed. The first check sends nothing. See
     * [newsfeeds](/docs/newsfeeds).
     *
     * @param {Schemas["NewsfeedInput"]} body
     * @returns {Promise<Schemas["NewsfeedOutput"]>}
     */
    createNewsfeed(body: Schemas["NewsfeedInput"]): Promise<Schemas["NewsfeedOutput"]>;
    /**
     * Create a schedule.
     *
     * A schedule sends a notification repeatedly. The content of a template is copied now. See
     * [schedules](/docs/schedules).
     *
     * @param {Schemas["ScheduleInput"]} body
     * @param {{idempotencyKey?: string}} [options]
     * @returns {Promise<Schemas["ScheduleOutput"]>}
     */
    createSchedule(body: Schemas["ScheduleInput"], options?: {
        idempotencyKey?: string;
    }): Promise<Schemas["ScheduleOutput"]>;
    /**
     * Create a segment.
     *
     * A segment is a name and a rule. A send names it in `segment_id`.
     *
     * @param {Schemas["SegmentInput"]} body
     * @returns {Promise<Schemas["SegmentOutput"]>}
     */
    createSegment(body: Schemas["SegmentInput"]): Promise<Schemas["SegmentOutput"]>;
    /**
     * Create a template.
     *
     * A template is a name and content. A send names it in `template_id`.
     *
     * @param {Schemas["TemplateInput"]} body
     * @param {{idempotencyKey?: string}} [options]
     * @returns {Promise<Schemas["TemplateOutput"]>}
     */
    createTemplate(body: Schemas["TemplateInput"], options?: {
        idempotencyKey?: string;
    }): Promise<Schemas["TemplateOutput"]>;
    /**
     * Store a key pair that another service used.
     *
     * Browsers that subscribed with this pair at another service or library can then be imported,
     * and get messages signed with it. New subscriptions use the channel's own key, to which the
     * SDK moves each browser. Safe to repeat.
     *
     * @param {Schemas["StoredWebPushKeyInput"]} body
     * @returns {Promise<Schemas["StoredWebPushKeyOutput"]>}
     */
    createWebPushKey(body: Schemas["StoredWebPushKeyInput"]): Promise<Schemas["StoredWebPushKeyOutput"]>;
    /**
     * Create a webhook.
     *
     * Facts that become true from now on are sent to it in signed requests. See
     * [webhooks](/docs/webhooks). `Idempotency-Key` is ignored, because a stored response would
     * contain the secret.
     *
     * @param {Schemas["WebhookInput"]} body
     * @returns {Promise<Schemas["ShownWebhookOutput"]>}
     */
    createWebhook(body: Schemas["WebhookInput"]): Promise<Schemas["ShownWebhookOutput"]>;
    /**
     * Choose the winner of a test.
     *
     * Those who were not in the test of the variants get this variant now. Also while the test is
     * on hold. Safe to repeat.
     *
     * @param {string} notificationId
     * @param {Schemas["WinnerInput"]} body
     * @returns {Promise<Schemas["WinnerOutput"]>}
     */
    decideTest(notificationId: string, body: Schemas["WinnerInput"]): Promise<Schemas["WinnerOutput"]>;
    /**
     * Delete an automation.
     *
     * It sends nothing more. Notifications that it sent stay. A second call returns 404.
     *
     * @param {string} automationId
     * @returns {Promise<void>}
     */
    deleteAutomation(automationId: string): Promise<void>;
    /**
     * Retire an identity key.
     *
     * Tokens that it signed are refused from now on. Linked devices stay linked. A second call
     * returns 404.
     *
     * @param {string} identityKeyId
     * @returns {Promise<void>}
     */
    deleteIdentityKey(identityKeyId: string): Promise<void>;
    /**
     * Delete a newsfeed.
     *
     * It sends nothing more. Notifications that it sent stay. A second call returns 404.
     *
     * @param {string} newsfeedId
     * @returns {Promise<void>}
     */
    deleteNewsfeed(newsfeedId: string): Promise<void>;
    /**
     * Delete a schedule.
     *
     * It sends nothing more. Notifications that it sent stay; one that is still `pending` is
     * cancelled. A second call returns 404.
     *
     * @param {string} scheduleId
     * @returns {Promise<void>}
     */
    deleteSchedule(scheduleId: string): Promise<void>;
    /**
     * Delete a segment that no unfinished notification targets.
     *
     * Finished notifications keep its id. A second call returns 404.
     *
     * @param {string} segmentId
     * @returns {Promise<void>}
     */
    deleteSegment(segmentId: string): Promise<void>;
    /**
     * Remove a tag from every device.
     *
     * It is removed in steps, from at least 100,000 devices a minute, even from devices that get
     * it meanwhile. After that, a second call returns 404.
     *
     * @param {string} tag
     * @returns {Promise<void>}
     */
    deleteTag(tag: string): Promise<void>;
    /**
     * Delete a template.
     *
     * Sends that were accepted with it keep its content, even if they are scheduled. A second call
     * returns 404.
     *
     * @param {string} templateId
     * @returns {Promise<void>}
     */
    deleteTemplate(templateId: string): Promise<void>;
    /**
     * Delete a webhook.
     *
     * Messages that wait for it are not sent. A second call returns 404.
     *
     * @param {string} webhookId
     * @returns {Promise<void>}
     */
    deleteWebhook(webhookId: string): Promise<void>;
    /**
     * Change a notification before it is sent, or while it is paused.
     *
     * A field that is missing stays as it is; null takes its default. A `pending` notification can
     * be changed as a whole, but the kind of its audience stays: a send to a segment stays one. A
     * notification that is `processing` and paused can be changed in its content, `name`,
     * `labels`, `expires_at` and `rate_per_minute`, as soon as the calls under way have ended. If
     * every field is as it was, nothing changes. Safe to repeat. The key needs the scopes `send`
     * and `read`.
     *
     * @param {string} notificationId
     * @param {Schemas["EditInput"]} body
     * @returns {Promise<Schemas["NotificationOutput"]>}
     */
    editNotification(notificationId: string, body: Schemas["EditInput"]): Promise<Schemas["NotificationOutput"]>;
    /**
     * Erase a person.
     *
     * Deletes the person and everything about the addresses of the person's devices.
     * [privacy](/docs/privacy) describes what is kept. A second call returns 404.
     *
     * @param {Query<"erase_person">} query
     * @returns {Promise<Schemas["ErasedOutput"]>}
     */
    erasePerson(query: Query<"erase_person">): Promise<Schemas["ErasedOutput"]>;
    /**
     * Explain who gets a send, and why somebody did not.
     *
     * For one person or one subscription. Nothing is sent or stored, except an entry in the audit
     * log. See [explain](/docs/explain).
     *
     * @param {Schemas["ExplainInput"]} body
     * @returns {Promise<Schemas["ExplainOutput"]>}
     */
    explainDelivery(body: Schemas["ExplainInput"]): Promise<Schemas["ExplainOutput"]>;
    /**
     * Export a notification's deliveries.
     *
     * A row for each recipient, in the order of ids, as long as deliveries are kept. See
     * [data](/docs/data).
     *
     * @param {string} notificationId
     * @param {Omit<Query<"export_deliveries">, "format">} [query]
     * @returns {AsyncGenerator<Schemas["ExportedDeliveryOutput"], void, void>}
     */
    exportDeliveries(notificationId: string, query?: Omit<Query<"export_deliveries">, "format">): AsyncGenerator<Schemas["ExportedDeliveryOutput"], void, void>;
    /**
     * Get everything that is stored of a person.
     *
     * With addresses, keys, and outcomes as far as they are kept. The audit log says that it was
     * exported.
     *
     * @param {Query<"export_person">} query
     * @returns {Promise<Schemas["PersonKnown"]>}
     */
    exportPerson(query: Query<"export_person">): Promise<Schemas["PersonKnown"]>;
    /**
     * Export the channel's subscriptions.
     *
     * In the order of ids. Who is subscribed throughout is in exactly one page. An export that was
     * interrupted continues with `after`. With `include=address`, a row is what `pushsvc_ndjson`
     * of an import takes, and the audit log gets an entry, once an hour for each key. See
     * [data](/docs/data).
     *
     * @param {Omit<Query<"export_subscriptions">, "format">} [query]
     * @returns {AsyncGenerator<Schemas["ExportedSubscriptionOutput"], void, void>}
     */
    exportSubscriptions(query?: Omit<Query<"export_subscriptions">, "format">): AsyncGenerator<Schemas["ExportedSubscriptionOutput"], void, void>;
    /**
     * Record a click and redirect to the notification's url.
     *
     * For clients that cannot run code. Clicks with a token older than 28 days, HEAD requests and
     * prefetching are not counted. A personal url has its values for 28 days, while the device
     * belongs to the person to whom the message was sent. Otherwise, and for HEAD, it is the url
     * of the common texts.
     *
     * @param {string} token
     * @returns {Promise<string>}
     */
    followClick(token: string): Promise<string>;
    /**
     * Get an automation.
     *
     * What it sends to whom, as it was stored last.
     *
     * @param {string} automationId
     * @returns {Promise<Schemas["AutomationOutput"]>}
     */
    getAutomation(automationId: string): Promise<Schemas["AutomationOutput"]>;
    /**
     * Count the channel's devices and people.
     *
     * Exact, and as of now.
     *
     * @returns {Promise<Schemas["ChannelAudienceOutput"]>}
     */
    getChannelAudience(): Promise<Schemas["ChannelAudienceOutput"]>;
    /**
     * Get the state of the channel's platforms.
     *
     * For each platform: whether it is enabled, how many subscribers it has, whether sending is
     * paused because the push service refused the credentials, and which credentials it uses.
     *
     * @returns {Promise<Schemas["ChannelPlatformsOutput"]>}
     */
    getChannelPlatforms(): Promise<Schemas["ChannelPlatformsOutput"]>;
    /**
     * Get channel statistics.
     *
     * Counts are exact and as of now.
     *
     * @returns {Promise<Schemas["ChannelStatisticsOutput"]>}
     */
    getChannelStatistics(): Promise<Schemas["ChannelStatisticsOutput"]>;
    /**
     * Read the channel's statistics by hour or day.
     *
     * Exact, and as of now, without the tests that staff sent. The sums over all hours and these
     * tests are the totals of `GET /channel/:id`. At most 2,000 hours or days in a response. See
     * [statistics](/docs/statistics).
     *
     * @param {Query<"get_channel_time_series">} [query]
     * @returns {Promise<Schemas["StatisticsOutput"]>}
     */
    getChannelTimeSeries(query?: Query<"get_channel_time_series">): Promise<Schemas["StatisticsOutput"]>;
    /**
     * Get the channel's delivery settings.
     *
     * What sends use unless they say otherwise.
     *
     * @returns {Promise<Schemas["DeliverySettingsOutput"]>}
     */
    getDeliverySettings(): Promise<Schemas["DeliverySettingsOutput"]>;
    /**
     * Get a newsfeed.
     *
     * What it checks and sends, and what became of it last.
     *
     * @param {string} newsfeedId
     * @returns {Promise<Schemas["NewsfeedOutput"]>}
     */
    getNewsfeed(newsfeedId: string): Promise<Schemas["NewsfeedOutput"]>;
    /**
     * Preview a newsfeed.
     *
     * What it would send of the newest entry of its last check. Sends nothing.
     *
     * @param {string} newsfeedId
     * @returns {Promise<Schemas["NewsfeedPreview"]>}
     */
    getNewsfeedPreview(newsfeedId: string): Promise<Schemas["NewsfeedPreview"]>;
    /**
     * Get notification statistics.
     *
     * `recipient_count` is `delivered_count` + `bounced_count` once it is `sent` or `failed`.
     * Delivered means that the push service accepted the message.
     *
     * @param {string} notificationId
     * @returns {Promise<Schemas["NotificationOutput"]>}
     */
    getNotification(notificationId: string): Promise<Schemas["NotificationOutput"]>;
    /**
     * Get everything about a notification.
     *
     * Its content, audience and times, the counts of each platform, and why recipients bounced.
     * All numbers are of one moment, so the platforms add up to the notification's counts.
     *
     * @param {string} notificationId
     * @returns {Promise<Schemas["NotificationDetailsOutput"]>}
     */
    getNotificationDetails(notificationId: string): Promise<Schemas["NotificationDetailsOutput"]>;
    /**
     * Get a person.
     *
     * With all devices that are stored, active or not.
     *
     * @param {Query<"get_person">} query
     * @returns {Promise<Schemas["PersonOutput"]>}
     */
    getPerson(query: Query<"get_person">): Promise<Schemas["PersonOutput"]>;
    /**
     * Get the options of the channel's prompt.
     *
     * For sites whose prompt is set up in the console. The response can be cached for five
     * minutes.
     *
     * @returns {Promise<Schemas["PromptOutput"]>}
     */
    getPrompt(): Promise<Schemas["PromptOutput"]>;
    /**
     * Get a schedule.
     *
     * What it sends and when, as they were stored last.
     *
     * @param {string} scheduleId
     * @returns {Promise<Schemas["ScheduleOutput"]>}
     */
    getSchedule(scheduleId: string): Promise<Schemas["ScheduleOutput"]>;
    /**
     * Get a segment.
     *
     * Its name and its rule, as they were stored last.
     *
     * @param {string} segmentId
     * @returns {Promise<Schemas["SegmentOutput"]>}
     */
    getSegment(segmentId: string): Promise<Schemas["SegmentOutput"]>;
    /**
     * Count the subscribers that a segment reaches now.
     *
     * Exact up to 10,000; beyond that an estimate, as [segments](/docs/segments) explains.
     *
     * @param {string} segmentId
     * @returns {Promise<Schemas["SizeOutput"]>}
     */
    getSegmentSize(segmentId: string): Promise<Schemas["SizeOutput"]>;
    /**
     * Get a template.
     *
     * Its name and its content, as they were stored last.
     *
     * @param {string} templateId
     * @returns {Promise<Schemas["TemplateOutput"]>}
     */
    getTemplate(templateId: string): Promise<Schemas["TemplateOutput"]>;
    /**
     * Get the channel's public key for web push.
     *
     * Public, because browsers need the key before they can subscribe.
     *
     * @returns {Promise<Schemas["WebPushKeyOutput"]>}
     */
    getWebPushKey(): Promise<Schemas["WebPushKeyOutput"]>;
    /**
     * Get a webhook.
     *
     * Its values, and how its last calls went.
     *
     * @param {string} webhookId
     * @returns {Promise<Schemas["WebhookOutput"]>}
     */
    getWebhook(webhookId: string): Promise<Schemas["WebhookOutput"]>;
    /**
     * Link devices to people.
     *
     * For backends that know the ids of subscriptions. It needs no `identity_token`, and works
     * whatever the channel's setting `identity` is. All or none are linked, but unknown ids are no
     * error.
     *
     * @param {Schemas["LinksInput"]} body
     * @returns {Promise<Schemas["LinkedOutput"]>}
     */
    linkDevices(body: Schemas["LinksInput"]): Promise<Schemas["LinkedOutput"]>;
    /**
     * List what an automation did on each day, the latest first.
     *
     * @param {string} automationId
     * @param {Query<"list_automation_days">} [query]
     * @returns {AsyncGenerator<Schemas["AutomationDayOutput"], void, void>}
     */
    listAutomationDays(automationId: string, query?: Query<"list_automation_days">): AsyncGenerator<Schemas["AutomationDayOutput"], void, void>;
    /**
     * List the channel's automations, newest first.
     *
     * @param {Query<"list_automations">} [query]
     * @returns {AsyncGenerator<Schemas["AutomationOutput"], void, void>}
     */
    listAutomations(query?: Query<"list_automations">): AsyncGenerator<Schemas["AutomationOutput"], void, void>;
    /**
     * List the channel's categories, in the order of their positions.
     *
     * @param {Query<"list_categories">} [query]
     * @returns {AsyncGenerator<Schemas["CategoryOutput"], void, void>}
     */
    listCategories(query?: Query<"list_categories">): AsyncGenerator<Schemas["CategoryOutput"], void, void>;
    /**
     * List the channel's identity keys, newest first.
     *
     * The keys in use, at most four.
     *
     * @returns {Promise<Schemas["IdentityKeyOutput"][]>}
     */
    listIdentityKeys(): Promise<Schemas["IdentityKeyOutput"][]>;
    /**
     * List the channel's newsfeeds, newest first.
     *
     * @param {Query<"list_newsfeeds">} [query]
     * @returns {AsyncGenerator<Schemas["NewsfeedOutput"], void, void>}
     */
    listNewsfeeds(query?: Query<"list_newsfeeds">): AsyncGenerator<Schemas["NewsfeedOutput"], void, void>;
    /**
     * List whom a notification names, in the order of the send.
     *
     * Empty for a send that names nobody one by one. Kept as long as the log of its recipients.
     *
     * @param {string} notificationId
     * @param {Query<"list_notification_targets">} [query]
     * @returns {AsyncGenerator<Schemas["TargetOutput"], void, void>}
     */
    listNotificationTargets(notificationId: string, query?: Query<"list_notification_targets">): AsyncGenerator<Schemas["TargetOutput"], void, void>;
    /**
     * List the channel's notifications, newest first.
     *
     * A notification that was sent immediately is scheduled for the time of its send. A
     * notification that is accepted while you read page by page moves the others back, so the next
     * page may repeat some; it leaves none out.
     *
     * @param {Query<"list_notifications">} [query]
     * @returns {AsyncGenerator<Schemas["NotificationListedOutput"], void, void>}
     */
    listNotifications(query?: Query<"list_notifications">): AsyncGenerator<Schemas["NotificationListedOutput"], void, void>;
    /**
     * List what became of a schedule's occurrences, the latest first.
     *
     * Also coming ones that staff skipped.
     *
     * @param {string} scheduleId
     * @param {Query<"list_occurrences">} [query]
     * @returns {AsyncGenerator<Schemas["OccurrenceOutput"], void, void>}
     */
    listOccurrences(scheduleId: string, query?: Query<"list_occurrences">): AsyncGenerator<Schemas["OccurrenceOutput"], void, void>;
    /**
     * List the channel's schedules, newest first.
     *
     * @param {Query<"list_schedules">} [query]
     * @returns {AsyncGenerator<Schemas["ScheduleOutput"], void, void>}
     */
    listSchedules(query?: Query<"list_schedules">): AsyncGenerator<Schemas["ScheduleOutput"], void, void>;
    /**
     * List the channel's segments, newest first.
     *
     * @param {Query<"list_segments">} [query]
     * @returns {AsyncGenerator<Schemas["SegmentOutput"], void, void>}
     */
    listSegments(query?: Query<"list_segments">): AsyncGenerator<Schemas["SegmentOutput"], void, void>;
    /**
     * List the channel's tags, in the order of their characters.
     *
     * @param {Query<"list_tags">} [query]
     * @returns {AsyncGenerator<Schemas["TagOutput"], void, void>}
     */
    listTags(query?: Query<"list_tags">): AsyncGenerator<Schemas["TagOutput"], void, void>;
    /**
     * List the channel's templates, newest first.
     *
     * @param {Query<"list_templates">} [query]
     * @returns {AsyncGenerator<Schemas["TemplateOutput"], void, void>}
     */
    listTemplates(query?: Query<"list_templates">): AsyncGenerator<Schemas["TemplateOutput"], void, void>;
    /**
     * List the channel's keys for web push.
     *
     * The current key first, then the others, at most 100. Never with a private key.
     *
     * @returns {Promise<Schemas["StoredWebPushKeyOutput"][]>}
     */
    listWebPushKeys(): Promise<Schemas["StoredWebPushKeyOutput"][]>;
    /**
     * List the messages of a webhook, newest first.
     *
     * Messages are kept for 14 days.
     *
     * @param {string} webhookId
     * @param {Query<"list_webhook_messages">} [query]
     * @returns {AsyncGenerator<Schemas["WebhookMessageOutput"], void, void>}
     */
    listWebhookMessages(webhookId: string, query?: Query<"list_webhook_messages">): AsyncGenerator<Schemas["WebhookMessageOutput"], void, void>;
    /**
     * List the channel's webhooks.
     *
     * All of them, at most 10.
     *
     * @returns {Promise<Schemas["WebhookOutput"][]>}
     */
    listWebhooks(): Promise<Schemas["WebhookOutput"][]>;
    /**
     * Pause a notification.
     *
     * A `pending` notification does not start. For a `processing` one, no call begins later than
     * ten seconds after the response, and its deadline waits. A notification that was paused for
     * seven days while it was `processing` is stopped. Safe to repeat.
     *
     * @param {string} notificationId
     * @returns {Promise<Schemas["PausedOutput"]>}
     */
    pauseNotification(notificationId: string): Promise<Schemas["PausedOutput"]>;
    /**
     * List what a device or a person was sent.
     *
     * For an inbox in an app or on a site, and for its badge. It has what the device was sent
     * within the channel's `inbox_days`, also what it missed, among the channel's newest 200 sends
     * to many, the newest 200 that name the person, and the newest 200 that name the device. A
     * device proves itself with its `keys` or `auth`; its address is no proof. With
     * `identity_token` in place of a device it has what any of the person's 10 newest devices was
     * sent. See [inbox](/docs/inbox).
     *
     * @param {Schemas["InboxInput"]} body
     * @returns {Promise<Schemas["InboxOutput"]>}
     */
    readInbox(body: Schemas["InboxInput"]): Promise<Schemas["InboxOutput"]>;
    /**
     * Send messages of a webhook again.
     *
     * At most 10,000 messages of the last 14 days, the oldest first. A message keeps its id, so
     * your backend can ignore those it has already processed.
     *
     * @param {string} webhookId
     * @param {Schemas["ReplayInput"]} body
     * @returns {Promise<Schemas["ReplayOutput"]>}
     */
    replayWebhook(webhookId: string, body: Schemas["ReplayInput"]): Promise<Schemas["ReplayOutput"]>;
    /**
     * Report that a notification was received, clicked or dismissed.
     *
     * Each event counts once for each recipient. The response is the same for tokens that are
     * unknown, forged, repeated or older than 28 days. Beacons send the same JSON as `text/plain`.
     *
     * @param {Schemas["EventsInput"]} body
     * @returns {Promise<void>}
     */
    reportEvents(body: Schemas["EventsInput"]): Promise<void>;
    /**
     * Report what a visitor did with a prompt.
     *
     * Adds one to the counts of the channel that the console shows. Nothing about the visitor is
     * stored. Sites with prompt.mjs send it by themselves.
     *
     * @param {Schemas["PromptEventInput"]} body
     * @returns {Promise<void>}
     */
    reportPromptEvent(body: Schemas["PromptEventInput"]): Promise<void>;
    /**
     * Resume a paused notification.
     *
     * The time of the pause does not count for its deadline. Nothing changes for a notification
     * that is not paused. Safe to repeat.
     *
     * @param {string} notificationId
     * @returns {Promise<Schemas["PausedOutput"]>}
     */
    resumeNotification(notificationId: string): Promise<Schemas["PausedOutput"]>;
    /**
     * Replace a webhook's secret.
     *
     * For 24 hours, requests have a signature with the old secret too.
     *
     * @param {string} webhookId
     * @returns {Promise<Schemas["ShownWebhookOutput"]>}
     */
    rotateWebhookSecret(webhookId: string): Promise<Schemas["ShownWebhookOutput"]>;
    /**
     * Send a notification, now or later.
     *
     * 202 means that the notification is stored and will be sent.
     *
     * @param {Schemas["SendInput"]} body
     * @param {{idempotencyKey?: string}} [options]
     * @returns {Promise<Schemas["SendOutput"]>}
     */
    sendNotification(body: Schemas["SendInput"], options?: {
        idempotencyKey?: string;
    }): Promise<Schemas["SendOutput"]>;
    /**
     * Stop a notification for good.
     *
     * Only a `processing` notification can be stopped; cancel a `pending` one. No call begins
     * later than ten seconds after the response. Remaining recipients bounce with the code
     * `stopped`, then the notification is `sent`. If it had no recipient yet, it is `cancelled`.
     * Safe to repeat.
     *
     * @param {string} notificationId
     * @returns {Promise<Schemas["StoppedOutput"]>}
     */
    stopNotification(notificationId: string): Promise<Schemas["StoppedOutput"]>;
    /**
     * Create or update a subscription.
     *
     * Call it at every visit. `attributes`, if given, replace the stored ones. If a browser's
     * endpoint changed, send the old one as `previous_endpoint`, and prove that it was its own
     * with `previous_auth` or `previous_subscription_id`. Then id, attributes, tags and history
     * stay. Without proof, the result is a new subscription. The same is true for a known endpoint
     * with another `auth`. `external_id` says whose device it is. A channel requires an
     * `identity_token` when that changes, unless its setting `identity` is `trust`; see
     * [identity](/docs/identity).
     *
     * @param {Schemas["SubscribeInput"]} body
     * @returns {Promise<Schemas["SubscriptionOutput"]>}
     */
    subscribe(body: Schemas["SubscribeInput"]): Promise<Schemas["SubscriptionOutput"]>;
    /**
     * Send a test message to a webhook.
     *
     * A message of the type `webhook.test`, to this webhook alone.
     *
     * @param {string} webhookId
     * @returns {Promise<Schemas["SentTestOutput"]>}
     */
    testWebhook(webhookId: string): Promise<Schemas["SentTestOutput"]>;
    /**
     * End a subscription.
     *
     * The device gets no more messages, whether or not it was known.
     *
     * @param {Schemas["DeviceInput"]} body
     * @returns {Promise<Schemas["UnsubscribeOutput"]>}
     */
    unsubscribe(body: Schemas["DeviceInput"]): Promise<Schemas["UnsubscribeOutput"]>;
    /**
     * Replace an automation.
     *
     * The content of a template is copied again. Those who wait get the new notification. Enables
     * an automation that the service disabled, unless `enabled` is false. Safe to repeat.
     *
     * @param {string} automationId
     * @param {Schemas["AutomationInput"]} body
     * @returns {Promise<Schemas["AutomationOutput"]>}
     */
    updateAutomation(automationId: string, body: Schemas["AutomationInput"]): Promise<Schemas["AutomationOutput"]>;
    /**
     * Change a category.
     *
     * All but its key. A new `default` counts at once for those who chose nothing.
     *
     * @param {string} categoryKey
     * @param {Schemas["CategoryFields"]} body
     * @returns {Promise<Schemas["CategoryOutput"]>}
     */
    updateCategory(categoryKey: string, body: Schemas["CategoryFields"]): Promise<Schemas["CategoryOutput"]>;
    /**
     * Replace the channel's delivery settings.
     *
     * Replaces all of them: a setting that is not given gets its default. Safe to repeat.
     *
     * @param {Schemas["DeliverySettingsInput"]} body
     * @returns {Promise<Schemas["DeliverySettingsOutput"]>}
     */
    updateDeliverySettings(body: Schemas["DeliverySettingsInput"]): Promise<Schemas["DeliverySettingsOutput"]>;
    /**
     * Replace a newsfeed.
     *
     * With another `url`, and when it is enabled again, the next check sends nothing. Enables a
     * newsfeed that the service disabled, unless `enabled` is false. Safe to repeat.
     *
     * @param {string} newsfeedId
     * @param {Schemas["NewsfeedInput"]} body
     * @returns {Promise<Schemas["NewsfeedOutput"]>}
     */
    updateNewsfeed(newsfeedId: string, body: Schemas["NewsfeedInput"]): Promise<Schemas["NewsfeedOutput"]>;
    /**
     * Change a person and all devices of the person.
     *
     * All of it or nothing. `opted_out` true ends all devices, and those that register later;
     * after false they are active again when they register next. `attributes` and tags are changed
     * on each device that the person has now. Safe to repeat.
     *
     * @param {Query<"update_person">} query
     * @param {Schemas["PersonInput"]} body
     * @returns {Promise<Schemas["PersonOutput"]>}
     */
    updatePerson(query: Query<"update_person">, body: Schemas["PersonInput"]): Promise<Schemas["PersonOutput"]>;
    /**
     * Read and change what a device or a person wants.
     *
     * Lists the channel's categories with what the device, or its person, chose, after `choices`
     * took effect. For a device that is not known they are the defaults, and nothing is stored. A
     * device of a person that proves itself with its `keys` or `auth` has the person's choices,
     * and changes them for all devices of the person. Without proof, a choice counts for the
     * device alone, until its person chooses. With `identity_token` in place of a device it is the
     * person who reads and chooses, and who may opt out.
     *
     * @param {Schemas["PreferencesInput"]} body
     * @returns {Promise<Schemas["PreferencesOutput"]>}
     */
    updatePreferences(body: Schemas["PreferencesInput"]): Promise<Schemas["PreferencesOutput"]>;
    /**
     * Update provider credentials.
     *
     * Give at least one of the two. A platform that is not given does not change.
     *
     * @param {Schemas["ProvidersInput"]} body
     * @returns {Promise<Schemas["MessageOutput"]>}
     */
    updateProviderCredentials(body: Schemas["ProvidersInput"]): Promise<Schemas["MessageOutput"]>;
    /**
     * Replace a schedule.
     *
     * The content of a template is copied again. Enables a schedule that the service disabled,
     * unless `enabled` is false. Safe to repeat.
     *
     * @param {string} scheduleId
     * @param {Schemas["ScheduleInput"]} body
     * @returns {Promise<Schemas["ScheduleOutput"]>}
     */
    updateSchedule(scheduleId: string, body: Schemas["ScheduleInput"]): Promise<Schemas["ScheduleOutput"]>;
    /**
     * Replace a segment's name and rule.
     *
     * Notifications that are `pending` use the new rule; notifications that are `processing` keep
     * the old one.
     *
     * @param {string} segmentId
     * @param {Schemas["SegmentInput"]} body
     * @returns {Promise<Schemas["SegmentOutput"]>}
     */
    updateSegment(segmentId: string, body: Schemas["SegmentInput"]): Promise<Schemas["SegmentOutput"]>;
    /**
     * Replace a template's name and content.
     *
     * For sends that are accepted from now on; earlier ones keep their content. Safe to repeat.
     *
     * @param {string} templateId
     * @param {Schemas["TemplateInput"]} body
     * @returns {Promise<Schemas["TemplateOutput"]>}
     */
    updateTemplate(templateId: string, body: Schemas["TemplateInput"]): Promise<Schemas["TemplateOutput"]>;
    /**
     * Replace a webhook's values.
     *
     * Its secret stays. Messages that wait are sent to the new address. Safe to repeat.
     *
     * @param {string} webhookId
     * @param {Schemas["WebhookUpdate"]} body
     * @returns {Promise<Schemas["WebhookOutput"]>}
     */
    updateWebhook(webhookId: string, body: Schemas["WebhookUpdate"]): Promise<Schemas["WebhookOutput"]>;
}
export type Operations = import("./schema.d.ts").operations;
export type Schemas = import("./schema.d.ts").components["schemas"];
export type Query<Name extends keyof Operations> = NonNullable<Operations[Name]["parameters"]["query"]>;
import { Calls } from "./calls.js";
