"""A method for each operation of docs/openapi.yaml. `make openapi` writes this."""

from datetime import datetime
from typing import Literal, Unpack

from pushsvc_client.calls import Call, Pages, new_key, part
from pushsvc_client.running import listing, operation
from pushsvc_client.schemas import (
    AutomationDayOutput,
    AutomationInput,
    AutomationOutput,
    CancelOutput,
    CategoryFields,
    CategoryInput,
    CategoryOutput,
    ChannelAudienceOutput,
    ChannelPlatformsOutput,
    ChannelStatisticsOutput,
    DeliverySettingsInput,
    DeliverySettingsOutput,
    DeviceInput,
    EditInput,
    ErasedOutput,
    EventsInput,
    ExplainInput,
    ExplainOutput,
    ExportedDeliveryOutput,
    ExportedSubscriptionOutput,
    IdentityKeyInput,
    IdentityKeyOutput,
    InboxInput,
    InboxOutput,
    LinkedOutput,
    LinksInput,
    MembersInput,
    MembersOutput,
    MessageOutput,
    NewsfeedInput,
    NewsfeedOutput,
    NewsfeedPreview,
    NotificationDetailsOutput,
    NotificationListedOutput,
    NotificationOutput,
    OccurrenceOutput,
    PausedOutput,
    PersonInput,
    PersonKnown,
    PersonOutput,
    PreferencesInput,
    PreferencesOutput,
    PromptEventInput,
    PromptOutput,
    ProvidersInput,
    ReplayInput,
    ReplayOutput,
    ScheduleInput,
    ScheduleOutput,
    SegmentInput,
    SegmentOutput,
    SendInput,
    SendOutput,
    SentTestOutput,
    ShownIdentityKeyOutput,
    ShownWebhookOutput,
    SizeOutput,
    StatisticsOutput,
    StoppedOutput,
    StoredWebPushKeyInput,
    StoredWebPushKeyOutput,
    SubscribeInput,
    SubscriptionOutput,
    TagOutput,
    TargetOutput,
    TemplateInput,
    TemplateOutput,
    UnsubscribeOutput,
    WebhookInput,
    WebhookMessageOutput,
    WebhookOutput,
    WebhookUpdate,
    WebPushKeyOutput,
    WinnerInput,
    WinnerOutput,
)


class Operations:
    channel: str

    @operation
    def archive_category(self, category_key: str, /) -> Call[None]:
        """Archive a category.

        No send can name it any more, and no preferences show it. Choices are kept. Sends
        that were accepted before still skip devices that refuse it. A second call returns
        404.
        """
        return Call("DELETE", f"/channel/{part(self.channel)}/categories/{part(category_key)}")

    @operation
    def cancel_notification(self, notification_id: str, /) -> Call[CancelOutput]:
        """Cancel a notification that is still pending.

        Safe to repeat. A notification that is processed or sent cannot be cancelled.
        `message` has the notification's title if the key has the scope `read`.
        """
        return Call("DELETE", f"/cancel-notification/{part(notification_id)}")

    @operation
    def change_tag_members(
        self, tag: str, /, **fields: Unpack[MembersInput]
    ) -> Call[MembersOutput]:
        """Add a tag to devices, or remove it.

        Names people and devices, at most 1,000 together. Devices that a person adds later
        do not have the tag. Safe to repeat.
        """
        return Call("POST", f"/channel/{part(self.channel)}/tags/{part(tag)}/members", json=fields)

    @operation
    def check_newsfeed(self, newsfeed_id: str, /) -> Call[NewsfeedOutput]:
        """Check a newsfeed now.

        Makes the next check due now, or a minute after the last one.
        """
        return Call("POST", f"/channel/{part(self.channel)}/newsfeeds/{part(newsfeed_id)}/check")

    @operation
    def create_automation(
        self, /, *, idempotency_key: str | None = None, **fields: Unpack[AutomationInput]
    ) -> Call[AutomationOutput]:
        """Create an automation.

        An automation sends a notification to each device or person to whom something
        happened. The content of a template is copied now. See
        [automations](/docs/automations).
        """
        return Call(
            "POST",
            f"/channel/{part(self.channel)}/automations",
            json=fields,
            headers={"Idempotency-Key": idempotency_key or new_key()},
        )

    @operation
    def create_category(self, /, **fields: Unpack[CategoryInput]) -> Call[CategoryOutput]:
        """Create a category.

        A send names it in `category`; devices and people choose it. The key of an archived
        category restores that one, with the choices that were made.
        """
        return Call(
            "POST", f"/channel/{part(self.channel)}/categories", json=fields, is_repeatable=False
        )

    @operation
    def create_identity_key(
        self, /, **fields: Unpack[IdentityKeyInput]
    ) -> Call[ShownIdentityKeyOutput]:
        """Create an identity key.

        Your backend signs an `identity_token` with it, which proves to `POST /subscribe`
        whose device it is. See [identity](/docs/identity). `Idempotency-Key` is ignored,
        because a stored response would contain the secret.
        """
        return Call(
            "POST", f"/channel/{part(self.channel)}/identity-keys", json=fields, is_repeatable=False
        )

    @operation
    def create_newsfeed(self, /, **fields: Unpack[NewsfeedInput]) -> Call[NewsfeedOutput]:
        """Create a newsfeed.

        A newsfeed sends each new entry of an RSS or Atom feed. The first check sends
        nothing. See [newsfeeds](/docs/newsfeeds).
        """
        return Call(
            "POST", f"/channel/{part(self.channel)}/newsfeeds", json=fields, is_repeatable=False
        )

    @operation
    def create_schedule(
        self, /, *, idempotency_key: str | None = None, **fields: Unpack[ScheduleInput]
    ) -> Call[ScheduleOutput]:
        """Create a schedule.

        A schedule sends a notification repeatedly. The content of a template is copied now.
        See [schedules](/docs/schedules).
        """
        return Call(
            "POST",
            f"/channel/{part(self.channel)}/schedules",
            json=fields,
            headers={"Idempotency-Key": idempotency_key or new_key()},
        )

    @operation
    def create_segment(self, /, **fields: Unpack[SegmentInput]) -> Call[SegmentOutput]:
        """Create a segment.

        A segment is a name and a rule. A send names it in `segment_id`.
        """
        return Call(
            "POST", f"/channel/{part(self.channel)}/segments", json=fields, is_repeatable=False
        )

    @operation
    def create_template(
        self, /, *, idempotency_key: str | None = None, **fields: Unpack[TemplateInput]
    ) -> Call[TemplateOutput]:
        """Create a template.

        A template is a name and content. A send names it in `template_id`.
        """
        return Call(
            "POST",
            f"/channel/{part(self.channel)}/templates",
            json=fields,
            headers={"Idempotency-Key": idempotency_key or new_key()},
        )

    @operation
    def create_web_push_key(
        self, /, **fields: Unpack[StoredWebPushKeyInput]
    ) -> Call[StoredWebPushKeyOutput]:
        """Store a key pair that another service used.

        Browsers that subscribed with this pair at another service or library can then be
        imported, and get messages signed with it. New subscriptions use the channel's own
        key, to which the SDK moves each browser. Safe to repeat.
        """
        return Call(
            "POST", f"/channel/{part(self.channel)}/web-push-keys", json=fields, is_repeatable=False
        )

    @operation
    def create_webhook(self, /, **fields: Unpack[WebhookInput]) -> Call[ShownWebhookOutput]:
        """Create a webhook.

        Facts that become true from now on are sent to it in signed requests. See
        [webhooks](/docs/webhooks). `Idempotency-Key` is ignored, because a stored response
        would contain the secret.
        """
        return Call(
            "POST", f"/channel/{part(self.channel)}/webhooks", json=fields, is_repeatable=False
        )

    @operation
    def decide_test(
        self, notification_id: str, /, **fields: Unpack[WinnerInput]
    ) -> Call[WinnerOutput]:
        """Choose the winner of a test.

        Those who were not in the test of the variants get this variant now. Also while the
        test is on hold. Safe to repeat.
        """
        return Call("POST", f"/notification/{part(notification_id)}/winner", json=fields)

    @operation
    def delete_automation(self, automation_id: str, /) -> Call[None]:
        """Delete an automation.

        It sends nothing more. Notifications that it sent stay. A second call returns 404.
        """
        return Call("DELETE", f"/channel/{part(self.channel)}/automations/{part(automation_id)}")

    @operation
    def delete_identity_key(self, identity_key_id: str, /) -> Call[None]:
        """Retire an identity key.

        Tokens that it signed are refused from now on. Linked devices stay linked. A second
        call returns 404.
        """
        return Call(
            "DELETE", f"/channel/{part(self.channel)}/identity-keys/{part(identity_key_id)}"
        )

    @operation
    def delete_newsfeed(self, newsfeed_id: str, /) -> Call[None]:
        """Delete a newsfeed.

        It sends nothing more. Notifications that it sent stay. A second call returns 404.
        """
        return Call("DELETE", f"/channel/{part(self.channel)}/newsfeeds/{part(newsfeed_id)}")

    @operation
    def delete_schedule(self, schedule_id: str, /) -> Call[None]:
        """Delete a schedule.

        It sends nothing more. Notifications that it sent stay; one that is still `pending`
        is cancelled. A second call returns 404.
        """
        return Call("DELETE", f"/channel/{part(self.channel)}/schedules/{part(schedule_id)}")

    @operation
    def delete_segment(self, segment_id: str, /) -> Call[None]:
        """Delete a segment that no unfinished notification targets.

        Finished notifications keep its id. A second call returns 404.
        """
        return Call("DELETE", f"/channel/{part(self.channel)}/segments/{part(segment_id)}")

    @operation
    def delete_tag(self, tag: str, /) -> Call[None]:
        """Remove a tag from every device.

        It is removed in steps, from at least 100,000 devices a minute, even from devices
        that get it meanwhile. After that, a second call returns 404.
        """
        return Call("DELETE", f"/channel/{part(self.channel)}/tags/{part(tag)}")

    @operation
    def delete_template(self, template_id: str, /) -> Call[None]:
        """Delete a template.

        Sends that were accepted with it keep its content, even if they are scheduled. A
        second call returns 404.
        """
        return Call("DELETE", f"/channel/{part(self.channel)}/templates/{part(template_id)}")

    @operation
    def delete_webhook(self, webhook_id: str, /) -> Call[None]:
        """Delete a webhook.

        Messages that wait for it are not sent. A second call returns 404.
        """
        return Call("DELETE", f"/channel/{part(self.channel)}/webhooks/{part(webhook_id)}")

    @operation
    def edit_notification(
        self, notification_id: str, /, **fields: Unpack[EditInput]
    ) -> Call[NotificationOutput]:
        """Change a notification before it is sent, or while it is paused.

        A field that is missing stays as it is; null takes its default. A `pending`
        notification can be changed as a whole, but the kind of its audience stays: a send
        to a segment stays one. A notification that is `processing` and paused can be
        changed in its content, `name`, `labels`, `expires_at` and `rate_per_minute`, as
        soon as the calls under way have ended. If every field is as it was, nothing
        changes. Safe to repeat. The key needs the scopes `send` and `read`.
        """
        return Call("PATCH", f"/notification/{part(notification_id)}", json=fields)

    @operation
    def erase_person(self, *, external_id: str) -> Call[ErasedOutput]:
        """Erase a person.

        Deletes the person and everything about the addresses of the person's devices.
        [privacy](/docs/privacy) describes what is kept. A second call returns 404.
        """
        return Call(
            "DELETE", f"/channel/{part(self.channel)}/person", params={"external_id": external_id}
        )

    @operation
    def explain_delivery(self, /, **fields: Unpack[ExplainInput]) -> Call[ExplainOutput]:
        """Explain who gets a send, and why somebody did not.

        For one person or one subscription. Nothing is sent or stored, except an entry in
        the audit log. See [explain](/docs/explain).
        """
        return Call("POST", f"/channel/{part(self.channel)}/explain", json=fields)

    @listing
    def export_deliveries(
        self,
        notification_id: str,
        /,
        *,
        after: str | None = None,
        limit: int | None = None,
        outcome: Literal["bounced", "delivered", "waiting"] | None = None,
    ) -> Pages[ExportedDeliveryOutput]:
        """Export a notification's deliveries.

        A row for each recipient, in the order of ids, as long as deliveries are kept. See
        [data](/docs/data).
        """
        return Pages(
            f"/notification/{part(notification_id)}/deliveries",
            {"after": after, "outcome": outcome},
            limit,
            5000,
        )

    @operation
    def export_person(self, *, external_id: str) -> Call[PersonKnown]:
        """Get everything that is stored of a person.

        With addresses, keys, and outcomes as far as they are kept. The audit log says that
        it was exported.
        """
        return Call(
            "GET",
            f"/channel/{part(self.channel)}/person/export",
            params={"external_id": external_id},
        )

    @listing
    def export_subscriptions(
        self,
        *,
        after: str | None = None,
        include: Literal["address"] | None = None,
        limit: int | None = None,
        state: Literal["active", "expired"] | None = None,
    ) -> Pages[ExportedSubscriptionOutput]:
        """Export the channel's subscriptions.

        In the order of ids. Who is subscribed throughout is in exactly one page. An export
        that was interrupted continues with `after`. With `include=address`, a row is what
        `pushsvc_ndjson` of an import takes, and the audit log gets an entry, once an hour
        for each key. See [data](/docs/data).
        """
        return Pages(
            f"/channel/{part(self.channel)}/subscriptions",
            {"after": after, "include": include, "state": state},
            limit,
            5000,
        )

    @operation
    def follow_click(self, token: str, /) -> Call[str]:
        """Record a click and redirect to the notification's url.

        For clients that cannot run code. Clicks with a token older than 28 days, HEAD
        requests and prefetching are not counted. A personal url has its values for 28 days,
        while the device belongs to the person to whom the message was sent. Otherwise, and
        for HEAD, it is the url of the common texts.
        """
        return Call("GET", f"/c/{part(token)}")

    @operation
    def get_automation(self, automation_id: str, /) -> Call[AutomationOutput]:
        """Get an automation.

        What it sends to whom, as it was stored last.
        """
        return Call("GET", f"/channel/{part(self.channel)}/automations/{part(automation_id)}")

    @operation
    def get_channel_audience(self) -> Call[ChannelAudienceOutput]:
        """Count the channel's devices and people.

        Exact, and as of now.
        """
        return Call("GET", f"/channel/{part(self.channel)}/audience")

    @operation
    def get_channel_platforms(self) -> Call[ChannelPlatformsOutput]:
        """Get the state of the channel's platforms.

        For each platform: whether it is enabled, how many subscribers it has, whether
        sending is paused because the push service refused the credentials, and which
        credentials it uses.
        """
        return Call("GET", f"/channel/{part(self.channel)}/platforms")

    @operation
    def get_channel_statistics(self) -> Call[ChannelStatisticsOutput]:
        """Get channel statistics.

        Counts are exact and as of now.
        """
        return Call("GET", f"/channel/{part(self.channel)}")

    @operation
    def get_channel_time_series(
        self,
        *,
        from_: datetime | str | None = None,
        interval: Literal["hour", "day"] | None = None,
        platform: Literal["web", "android", "ios"] | None = None,
        to: datetime | str | None = None,
    ) -> Call[StatisticsOutput]:
        """Read the channel's statistics by hour or day.

        Exact, and as of now, without the tests that staff sent. The sums over all hours and
        these tests are the totals of `GET /channel/:id`. At most 2,000 hours or days in a
        response. See [statistics](/docs/statistics).
        """
        return Call(
            "GET",
            f"/channel/{part(self.channel)}/statistics",
            params={"from": from_, "interval": interval, "platform": platform, "to": to},
        )

    @operation
    def get_delivery_settings(self) -> Call[DeliverySettingsOutput]:
        """Get the channel's delivery settings.

        What sends use unless they say otherwise.
        """
        return Call("GET", f"/channel/{part(self.channel)}/delivery-settings")

    @operation
    def get_newsfeed(self, newsfeed_id: str, /) -> Call[NewsfeedOutput]:
        """Get a newsfeed.

        What it checks and sends, and what became of it last.
        """
        return Call("GET", f"/channel/{part(self.channel)}/newsfeeds/{part(newsfeed_id)}")

    @operation
    def get_newsfeed_preview(self, newsfeed_id: str, /) -> Call[NewsfeedPreview]:
        """Preview a newsfeed.

        What it would send of the newest entry of its last check. Sends nothing.
        """
        return Call("GET", f"/channel/{part(self.channel)}/newsfeeds/{part(newsfeed_id)}/preview")

    @operation
    def get_notification(self, notification_id: str, /) -> Call[NotificationOutput]:
        """Get notification statistics.

        `recipient_count` is `delivered_count` + `bounced_count` once it is `sent` or
        `failed`. Delivered means that the push service accepted the message.
        """
        return Call("GET", f"/notification/{part(notification_id)}")

    @operation
    def get_notification_details(self, notification_id: str, /) -> Call[NotificationDetailsOutput]:
        """Get everything about a notification.

        Its content, audience and times, the counts of each platform, and why recipients
        bounced. All numbers are of one moment, so the platforms add up to the
        notification's counts.
        """
        return Call("GET", f"/notification/{part(notification_id)}/details")

    @operation
    def get_person(self, *, external_id: str) -> Call[PersonOutput]:
        """Get a person.

        With all devices that are stored, active or not.
        """
        return Call(
            "GET", f"/channel/{part(self.channel)}/person", params={"external_id": external_id}
        )

    @operation
    def get_prompt(self) -> Call[PromptOutput]:
        """Get the options of the channel's prompt.

        For sites whose prompt is set up in the console. The response can be cached for five
        minutes.
        """
        return Call("GET", "/prompt")

    @operation
    def get_schedule(self, schedule_id: str, /) -> Call[ScheduleOutput]:
        """Get a schedule.

        What it sends and when, as they were stored last.
        """
        return Call("GET", f"/channel/{part(self.channel)}/schedules/{part(schedule_id)}")

    @operation
    def get_segment(self, segment_id: str, /) -> Call[SegmentOutput]:
        """Get a segment.

        Its name and its rule, as they were stored last.
        """
        return Call("GET", f"/channel/{part(self.channel)}/segments/{part(segment_id)}")

    @operation
    def get_segment_size(self, segment_id: str, /) -> Call[SizeOutput]:
        """Count the subscribers that a segment reaches now.

        Exact up to 10,000; beyond that an estimate, as [segments](/docs/segments) explains.
        """
        return Call("GET", f"/channel/{part(self.channel)}/segments/{part(segment_id)}/size")

    @operation
    def get_template(self, template_id: str, /) -> Call[TemplateOutput]:
        """Get a template.

        Its name and its content, as they were stored last.
        """
        return Call("GET", f"/channel/{part(self.channel)}/templates/{part(template_id)}")

    @operation
    def get_web_push_key(self) -> Call[WebPushKeyOutput]:
        """Get the channel's public key for web push.

        Public, because browsers need the key before they can subscribe.
        """
        return Call("GET", "/web-push-key")

    @operation
    def get_webhook(self, webhook_id: str, /) -> Call[WebhookOutput]:
        """Get a webhook.

        Its values, and how its last calls went.
        """
        return Call("GET", f"/channel/{part(self.channel)}/webhooks/{part(webhook_id)}")

    @operation
    def link_devices(self, /, **fields: Unpack[LinksInput]) -> Call[LinkedOutput]:
        """Link devices to people.

        For backends that know the ids of subscriptions. It needs no `identity_token`, and
        works whatever the channel's setting `identity` is. All or none are linked, but
        unknown ids are no error.
        """
        return Call("POST", f"/channel/{part(self.channel)}/people/devices", json=fields)

    @listing
    def list_automation_days(
        self, automation_id: str, /, *, limit: int | None = None, offset: int | None = None
    ) -> Pages[AutomationDayOutput]:
        """List what an automation did on each day, the latest first."""
        return Pages(
            f"/channel/{part(self.channel)}/automations/{part(automation_id)}/days",
            {"offset": offset},
            limit,
        )

    @listing
    def list_automations(
        self, *, limit: int | None = None, offset: int | None = None
    ) -> Pages[AutomationOutput]:
        """List the channel's automations, newest first."""
        return Pages(f"/channel/{part(self.channel)}/automations", {"offset": offset}, limit)

    @listing
    def list_categories(
        self, *, limit: int | None = None, offset: int | None = None
    ) -> Pages[CategoryOutput]:
        """List the channel's categories, in the order of their positions."""
        return Pages(f"/channel/{part(self.channel)}/categories", {"offset": offset}, limit)

    @operation
    def list_identity_keys(self) -> Call[list[IdentityKeyOutput]]:
        """List the channel's identity keys, newest first.

        The keys in use, at most four.
        """
        return Call("GET", f"/channel/{part(self.channel)}/identity-keys")

    @listing
    def list_newsfeeds(
        self, *, limit: int | None = None, offset: int | None = None
    ) -> Pages[NewsfeedOutput]:
        """List the channel's newsfeeds, newest first."""
        return Pages(f"/channel/{part(self.channel)}/newsfeeds", {"offset": offset}, limit)

    @listing
    def list_notification_targets(
        self,
        notification_id: str,
        /,
        *,
        limit: int | None = None,
        offset: int | None = None,
        state: Literal["reached", "unknown", "left_out", "waiting"] | None = None,
    ) -> Pages[TargetOutput]:
        """List whom a notification names, in the order of the send.

        Empty for a send that names nobody one by one. Kept as long as the log of its
        recipients.
        """
        return Pages(
            f"/notification/{part(notification_id)}/targets",
            {"offset": offset, "state": state},
            limit,
        )

    @listing
    def list_notifications(
        self,
        *,
        label: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        scheduled_after: datetime | str | None = None,
        scheduled_before: datetime | str | None = None,
        status: Literal["pending", "processing", "sent", "failed", "cancelled"] | None = None,
    ) -> Pages[NotificationListedOutput]:
        """List the channel's notifications, newest first.

        A notification that was sent immediately is scheduled for the time of its send. A
        notification that is accepted while you read page by page moves the others back, so
        the next page may repeat some; it leaves none out.
        """
        return Pages(
            f"/notifications/{part(self.channel)}",
            {
                "label": label,
                "offset": offset,
                "scheduled_after": scheduled_after,
                "scheduled_before": scheduled_before,
                "status": status,
            },
            limit,
        )

    @listing
    def list_occurrences(
        self, schedule_id: str, /, *, limit: int | None = None, offset: int | None = None
    ) -> Pages[OccurrenceOutput]:
        """List what became of a schedule's occurrences, the latest first.

        Also coming ones that staff skipped.
        """
        return Pages(
            f"/channel/{part(self.channel)}/schedules/{part(schedule_id)}/occurrences",
            {"offset": offset},
            limit,
        )

    @listing
    def list_schedules(
        self, *, limit: int | None = None, offset: int | None = None
    ) -> Pages[ScheduleOutput]:
        """List the channel's schedules, newest first."""
        return Pages(f"/channel/{part(self.channel)}/schedules", {"offset": offset}, limit)

    @listing
    def list_segments(
        self, *, limit: int | None = None, offset: int | None = None
    ) -> Pages[SegmentOutput]:
        """List the channel's segments, newest first."""
        return Pages(f"/channel/{part(self.channel)}/segments", {"offset": offset}, limit)

    @listing
    def list_tags(
        self, *, after: str | None = None, limit: int | None = None, prefix: str | None = None
    ) -> Pages[TagOutput]:
        """List the channel's tags, in the order of their characters."""
        return Pages(
            f"/channel/{part(self.channel)}/tags", {"after": after, "prefix": prefix}, limit
        )

    @listing
    def list_templates(
        self, *, limit: int | None = None, offset: int | None = None
    ) -> Pages[TemplateOutput]:
        """List the channel's templates, newest first."""
        return Pages(f"/channel/{part(self.channel)}/templates", {"offset": offset}, limit)

    @operation
    def list_web_push_keys(self) -> Call[list[StoredWebPushKeyOutput]]:
        """List the channel's keys for web push.

        The current key first, then the others, at most 100. Never with a private key.
        """
        return Call("GET", f"/channel/{part(self.channel)}/web-push-keys")

    @listing
    def list_webhook_messages(
        self,
        webhook_id: str,
        /,
        *,
        limit: int | None = None,
        offset: int | None = None,
        state: Literal["waiting", "delivered", "failed"] | None = None,
    ) -> Pages[WebhookMessageOutput]:
        """List the messages of a webhook, newest first.

        Messages are kept for 14 days.
        """
        return Pages(
            f"/channel/{part(self.channel)}/webhooks/{part(webhook_id)}/messages",
            {"offset": offset, "state": state},
            limit,
        )

    @operation
    def list_webhooks(self) -> Call[list[WebhookOutput]]:
        """List the channel's webhooks.

        All of them, at most 10.
        """
        return Call("GET", f"/channel/{part(self.channel)}/webhooks")

    @operation
    def pause_notification(self, notification_id: str, /) -> Call[PausedOutput]:
        """Pause a notification.

        A `pending` notification does not start. For a `processing` one, no call begins
        later than ten seconds after the response, and its deadline waits. A notification
        that was paused for seven days while it was `processing` is stopped. Safe to repeat.
        """
        return Call("POST", f"/notification/{part(notification_id)}/pause")

    @operation
    def read_inbox(self, /, **fields: Unpack[InboxInput]) -> Call[InboxOutput]:
        """List what a device or a person was sent.

        For an inbox in an app or on a site, and for its badge. It has what the device was
        sent within the channel's `inbox_days`, also what it missed, among the channel's
        newest 200 sends to many, the newest 200 that name the person, and the newest 200
        that name the device. A device proves itself with its `keys` or `auth`; its address
        is no proof. With `identity_token` in place of a device it has what any of the
        person's 10 newest devices was sent. See [inbox](/docs/inbox).
        """
        return Call("POST", "/inbox", json=fields)

    @operation
    def replay_webhook(
        self, webhook_id: str, /, **fields: Unpack[ReplayInput]
    ) -> Call[ReplayOutput]:
        """Send messages of a webhook again.

        At most 10,000 messages of the last 14 days, the oldest first. A message keeps its
        id, so your backend can ignore those it has already processed.
        """
        return Call(
            "POST", f"/channel/{part(self.channel)}/webhooks/{part(webhook_id)}/replay", json=fields
        )

    @operation
    def report_events(self, /, **fields: Unpack[EventsInput]) -> Call[None]:
        """Report that a notification was received, clicked or dismissed.

        Each event counts once for each recipient. The response is the same for tokens that
        are unknown, forged, repeated or older than 28 days. Beacons send the same JSON as
        `text/plain`.
        """
        return Call("POST", "/events", json=fields)

    @operation
    def report_prompt_event(self, /, **fields: Unpack[PromptEventInput]) -> Call[None]:
        """Report what a visitor did with a prompt.

        Adds one to the counts of the channel that the console shows. Nothing about the
        visitor is stored. Sites with prompt.mjs send it by themselves.
        """
        return Call("POST", "/prompt-events", json=fields)

    @operation
    def resume_notification(self, notification_id: str, /) -> Call[PausedOutput]:
        """Resume a paused notification.

        The time of the pause does not count for its deadline. Nothing changes for a
        notification that is not paused. Safe to repeat.
        """
        return Call("POST", f"/notification/{part(notification_id)}/resume")

    @operation
    def rotate_webhook_secret(self, webhook_id: str, /) -> Call[ShownWebhookOutput]:
        """Replace a webhook's secret.

        For 24 hours, requests have a signature with the old secret too.
        """
        return Call(
            "POST",
            f"/channel/{part(self.channel)}/webhooks/{part(webhook_id)}/rotate-secret",
            is_repeatable=False,
        )

    @operation
    def send_notification(
        self, /, *, idempotency_key: str | None = None, **fields: Unpack[SendInput]
    ) -> Call[SendOutput]:
        """Send a notification, now or later.

        202 means that the notification is stored and will be sent.
        """
        return Call(
            "POST",
            "/send-notification",
            json=fields,
            headers={"Idempotency-Key": idempotency_key or new_key()},
        )

    @operation
    def stop_notification(self, notification_id: str, /) -> Call[StoppedOutput]:
        """Stop a notification for good.

        Only a `processing` notification can be stopped; cancel a `pending` one. No call
        begins later than ten seconds after the response. Remaining recipients bounce with
        the code `stopped`, then the notification is `sent`. If it had no recipient yet, it
        is `cancelled`. Safe to repeat.
        """
        return Call("POST", f"/notification/{part(notification_id)}/stop")

    @operation
    def subscribe(self, /, **fields: Unpack[SubscribeInput]) -> Call[SubscriptionOutput]:
        """Create or update a subscription.

        Call it at every visit. `attributes`, if given, replace the stored ones. If a
        browser's endpoint changed, send the old one as `previous_endpoint`, and prove that
        it was its own with `previous_auth` or `previous_subscription_id`. Then id,
        attributes, tags and history stay. Without proof, the result is a new subscription.
        The same is true for a known endpoint with another `auth`. `external_id` says whose
        device it is. A channel requires an `identity_token` when that changes, unless its
        setting `identity` is `trust`; see [identity](/docs/identity).
        """
        return Call("POST", "/subscribe", json=fields)

    @operation
    def test_webhook(self, webhook_id: str, /) -> Call[SentTestOutput]:
        """Send a test message to a webhook.

        A message of the type `webhook.test`, to this webhook alone.
        """
        return Call("POST", f"/channel/{part(self.channel)}/webhooks/{part(webhook_id)}/test")

    @operation
    def unsubscribe(self, /, **fields: Unpack[DeviceInput]) -> Call[UnsubscribeOutput]:
        """End a subscription.

        The device gets no more messages, whether or not it was known.
        """
        return Call("POST", "/unsubscribe", json=fields)

    @operation
    def update_automation(
        self, automation_id: str, /, **fields: Unpack[AutomationInput]
    ) -> Call[AutomationOutput]:
        """Replace an automation.

        The content of a template is copied again. Those who wait get the new notification.
        Enables an automation that the service disabled, unless `enabled` is false. Safe to
        repeat.
        """
        return Call(
            "PUT", f"/channel/{part(self.channel)}/automations/{part(automation_id)}", json=fields
        )

    @operation
    def update_category(
        self, category_key: str, /, **fields: Unpack[CategoryFields]
    ) -> Call[CategoryOutput]:
        """Change a category.

        All but its key. A new `default` counts at once for those who chose nothing.
        """
        return Call(
            "PUT", f"/channel/{part(self.channel)}/categories/{part(category_key)}", json=fields
        )

    @operation
    def update_delivery_settings(
        self, /, **fields: Unpack[DeliverySettingsInput]
    ) -> Call[DeliverySettingsOutput]:
        """Replace the channel's delivery settings.

        Replaces all of them: a setting that is not given gets its default. Safe to repeat.
        """
        return Call("PUT", f"/channel/{part(self.channel)}/delivery-settings", json=fields)

    @operation
    def update_newsfeed(
        self, newsfeed_id: str, /, **fields: Unpack[NewsfeedInput]
    ) -> Call[NewsfeedOutput]:
        """Replace a newsfeed.

        With another `url`, and when it is enabled again, the next check sends nothing.
        Enables a newsfeed that the service disabled, unless `enabled` is false. Safe to
        repeat.
        """
        return Call(
            "PUT", f"/channel/{part(self.channel)}/newsfeeds/{part(newsfeed_id)}", json=fields
        )

    @operation
    def update_person(
        self, /, *, external_id: str, **fields: Unpack[PersonInput]
    ) -> Call[PersonOutput]:
        """Change a person and all devices of the person.

        All of it or nothing. `opted_out` true ends all devices, and those that register
        later; after false they are active again when they register next. `attributes` and
        tags are changed on each device that the person has now. Safe to repeat.
        """
        return Call(
            "PATCH",
            f"/channel/{part(self.channel)}/person",
            json=fields,
            params={"external_id": external_id},
        )

    @operation
    def update_preferences(self, /, **fields: Unpack[PreferencesInput]) -> Call[PreferencesOutput]:
        """Read and change what a device or a person wants.

        Lists the channel's categories with what the device, or its person, chose, after
        `choices` took effect. For a device that is not known they are the defaults, and
        nothing is stored. A device of a person that proves itself with its `keys` or `auth`
        has the person's choices, and changes them for all devices of the person. Without
        proof, a choice counts for the device alone, until its person chooses. With
        `identity_token` in place of a device it is the person who reads and chooses, and
        who may opt out.
        """
        return Call("POST", "/preferences", json=fields)

    @operation
    def update_provider_credentials(
        self, /, **fields: Unpack[ProvidersInput]
    ) -> Call[MessageOutput]:
        """Update provider credentials.

        Give at least one of the two. A platform that is not given does not change.
        """
        return Call("PUT", f"/channel/{part(self.channel)}/providers", json=fields)

    @operation
    def update_schedule(
        self, schedule_id: str, /, **fields: Unpack[ScheduleInput]
    ) -> Call[ScheduleOutput]:
        """Replace a schedule.

        The content of a template is copied again. Enables a schedule that the service
        disabled, unless `enabled` is false. Safe to repeat.
        """
        return Call(
            "PUT", f"/channel/{part(self.channel)}/schedules/{part(schedule_id)}", json=fields
        )

    @operation
    def update_segment(
        self, segment_id: str, /, **fields: Unpack[SegmentInput]
    ) -> Call[SegmentOutput]:
        """Replace a segment's name and rule.

        Notifications that are `pending` use the new rule; notifications that are
        `processing` keep the old one.
        """
        return Call(
            "PUT", f"/channel/{part(self.channel)}/segments/{part(segment_id)}", json=fields
        )

    @operation
    def update_template(
        self, template_id: str, /, **fields: Unpack[TemplateInput]
    ) -> Call[TemplateOutput]:
        """Replace a template's name and content.

        For sends that are accepted from now on; earlier ones keep their content. Safe to
        repeat.
        """
        return Call(
            "PUT", f"/channel/{part(self.channel)}/templates/{part(template_id)}", json=fields
        )

    @operation
    def update_webhook(
        self, webhook_id: str, /, **fields: Unpack[WebhookUpdate]
    ) -> Call[WebhookOutput]:
        """Replace a webhook's values.

        Its secret stays. Messages that wait are sent to the new address. Safe to repeat.
        """
        return Call(
            "PUT", f"/channel/{part(self.channel)}/webhooks/{part(webhook_id)}", json=fields
        )
