"""No page treats hostile text as HTML, wherever others can write it."""

import json
from html.parser import HTMLParser

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from channels_app.checks import check_settings
from channels_app.models import (
    Channel,
    ProviderCredential,
    Webhook,
    WebhookAttempt,
    WebhookMessage,
)
from channels_app.services import api_key_issue, api_key_revoke, provider_credentials_store
from channels_app.webhooks import webhook_create, webhook_test
from notifications_app.content.entries import EXAMPLE
from notifications_app.models import (
    Automation,
    AutomationDay,
    AutomationEvent,
    HourlyStat,
    Newsfeed,
)
from notifications_app.sends.services import notification_cancel
from subscriptions_app.models import Person, Subscription
from subscriptions_app.segments.services import segment_create, segment_update
from tests.admin.console.test_scope import addresses, text_of
from tests.admin.support import signed_in
from tests.api.credentials import GOOGLE
from tests.factories import (
    add_crowd,
    make_automation,
    make_newsfeed,
    make_schedule,
    make_sent_notification,
    make_template,
    make_waiting,
)

EVIL = "\"'><img src=x onerror=alert(1)></script><script>alert(2)</script>{{7*7}}<!--"
SHORT = "'\"><b onclick=x>{{7*7}}"
SCRIPTS = ("/static/", "/admin/jsi18n/")


class Page(HTMLParser):
    """Collects every element that none of our templates has."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        is_ours = (given.get("src") or "").startswith(SCRIPTS)
        if tag == "script" and not is_ours and given.get("type") != "application/json":
            self.found.append((tag, attrs))
        if any(name.startswith("on") for name in given) or given.get("src") == "x":
            self.found.append((tag, attrs))
        for name in ("href", "src", "action", "formaction"):
            if (given.get(name) or "").strip().lower().startswith(("javascript:", "data:text")):
                self.found.append((tag, attrs))


@pytest.fixture
def house(alice):
    """Alice's account, with hostile text in every column that takes text."""
    channel, account = alice.channel, alice.account
    add_crowd(channel, 2)
    account.name = channel.name = EVIL
    account.save()
    Channel.objects.filter(pk=channel.pk).update(name=EVIL, vapid_subject=f"mailto:{SHORT}@x.io")
    channel.refresh_from_db()
    for role, user in alice.members.items():
        User.objects.filter(pk=user.pk).update(username=f"{SHORT} {role}", email=SHORT)
        user.refresh_from_db()
    Subscription.objects.filter(channel=channel).update(attributes={EVIL[:50]: EVIL})
    rule = {"attribute": EVIL[:50], "operator": "eq", "value": EVIL}
    segment = segment_create(channel=channel, name="plain", rule=rule)
    segment = segment_update(
        channel_id=channel.pk, segment_id=segment.pk, name=EVIL[:100], rule=rule
    )
    more = {"title": EVIL[:100], "body": EVIL, "url": f"https://x.example/{EVIL}", "icon": EVIL}
    more |= {"data": {EVIL: EVIL}, "image": EVIL, "topic": SHORT, "segment_id": segment.pk}
    more["target_platforms"] = ["web", "android", "ios"]
    more["extras"] = {
        "actions": [{"id": "a", "title": EVIL}],
        "translations": {"de": {"title": EVIL, "body": EVIL}},
        "web": {"title": EVIL, "tag": EVIL},
    }
    staff = {"name": EVIL[:100], "labels": [SHORT]}
    waiting = make_sent_notification(channel, status="pending", **more, **staff)
    waiting.scheduled_at = timezone.now()
    waiting.save()
    make_sent_notification(channel, status="processing", finished_at=None, **more)
    gone = make_sent_notification(channel, status="pending", **more)
    notification_cancel(channel_id=channel.pk, notification_id=gone.pk)
    key, _ = api_key_issue(channel=channel, name=EVIL)
    api_key_revoke(api_key=api_key_issue(channel=channel, name=EVIL)[0])
    provider_credentials_store(channel=channel, fcm_service_account=json.dumps(GOOGLE))
    ProviderCredential.objects.update(
        paused_at=timezone.now(), paused_code=SHORT, paused_detail=EVIL, facts={"project_id": EVIL}
    )
    HourlyStat.objects.create(
        channel=channel, platform="web", hour=timezone.now(), recipients=200, bounced=190
    )
    backend = "https://backend.shop.com/"
    webhook, _ = webhook_create(channel=channel, url=backend, events=[], description=EVIL)
    webhook_test(channel_id=channel.pk, webhook_id=webhook.pk)
    WebhookMessage.objects.update(body=json.dumps({"type": EVIL}).encode())
    WebhookAttempt.objects.update(answer=EVIL)
    Webhook.objects.update(last_answer=EVIL)
    automation = make_automation(channel, EVIL[:100], title=EVIL, body=EVIL)
    clicked = {"name": EVIL[:100], "label": EVIL[:40], "action": EVIL[:32]}
    Automation.objects.update(event=AutomationEvent.CLICKED, about=clicked)
    AutomationDay.objects.create(
        automation=automation,
        begins_at=timezone.now(),
        ends_at=timezone.now(),
        notification_id=waiting.pk,
    )
    newsfeed = make_newsfeed(channel)
    Newsfeed.objects.update(
        name=EVIL[:100],
        last_error=EVIL[:300],
        latest={**EXAMPLE, "title": EVIL, "summary": EVIL},
        last_notification_id=waiting.pk,
    )
    alice.rows = {
        "channel": channel,
        "webhook": webhook,
        "key": key,
        "segment": segment,
        "subscription": Subscription.objects.filter(channel=channel)[0],
        "person": Person.objects.create(
            channel=channel, external_id=EVIL[:128], left_at=timezone.now()
        ),
        "notification": waiting,
        "schedule": make_schedule(channel, EVIL[:100]),
        "automation": automation,
        "newsfeed": newsfeed,
        "draft": make_waiting(
            channel,
            alice.members["editor"],
            title=EVIL,
            note=EVIL,
            body=EVIL,
            platforms=["web"],
            **{"translations.de.title": EVIL},
        ),
        "template": make_template(
            channel, EVIL[:100], {"title": EVIL, "body": EVIL, "url": EVIL, **more["extras"]}
        ),
    }
    return alice


def judged(response, path):
    text = text_of(
        response
    )  # Reads the response to its end: a streamed log keeps its place until then.
    if "html" not in response.headers.get("Content-Type", ""):
        return
    assert Page(text).found == [], path
    for raw in ("<img src=x", "<script>alert", "<b onclick", "49<!--"):
        assert raw not in text, (path, raw)


@pytest.mark.parametrize("who", ["owner", "root"])
def test_no_page_renders_a_name_or_a_message_as_html(house, root, who):
    client = signed_in(root if who == "root" else house.members["owner"])
    channel = house.channel.pk
    for name, path in addresses(house):
        if name == "logout":
            continue
        judged(client.get(path), path)
        judged(client.get(path, {"channel__id__exact": channel, "channel": channel}), path)
        judged(client.get(path, {"q": EVIL, "channel": EVIL, "days": EVIL, "next": EVIL}), path)
        judged(client.get(path, {"seen": "pending", "from": house.rows["notification"].pk}), path)


def test_no_error_message_renders_the_input_that_it_repeats_as_html(house, root):
    fields = [
        "name", "username", "email", "title", "body", "url", "icon", "image", "topic", "urgency",
        "ttl_number", "ttl_unit", "segment_id", "local_time", "time_zone", "platforms", "scopes",
        "data_name", "data_value", "rule", "do", "role", "platform", "key", "vapid_subject",
        "android-text", "test_device", "test_known_as", "new_password", "code", "expires_at",
        "enabled", "sends_per_second", "next",
    ]  # fmt: skip
    typed = dict.fromkeys(fields, EVIL) | {"channel": str(house.channel.pk), "when": "later"}
    rule = json.dumps({"all": [{"attribute": EVIL, EVIL: EVIL, "operator": EVIL}], EVIL: 1})
    every_page = signed_in(root)
    for client in (every_page, signed_in(house.members["owner"]), Client()):
        for name, path in addresses(house):
            if name == "logout":
                continue
            judged(client.post(path, typed), path)
            if client is not every_page:
                continue
            for do in ("add", "change", "rename"):
                judged(client.post(path, typed | {"do": do, "rule": rule}), path)
            judged(client.post(path, typed | {"ios-text": EVIL, "step": "edit"}), path)


def test_a_javascript_address_is_refused_as_url_icon_and_image(alice):
    client = signed_in(alice.members["sender"])
    page = reverse("admin:notification_compose")
    form = {"channel": str(alice.channel.pk), "body": "b", "ttl_number": "1", "ttl_unit": "days"}
    form |= {"platforms": ["web"], "when": "now", "step": "send", "key": "console x"}

    for field in ("url", "icon", "image"):
        for url in ("javascript:alert(1)", "data:text/html,x", "//x", " https://x", "https:/x"):
            response = client.post(page, form | {field: url})
            assert response.status_code == 400, (field, url)
            judged(response, page)


@pytest.mark.parametrize(
    "base_url",
    [
        'https://push.example"><script>alert(1)</script>',
        "https://push.example/sdk",
        "https://push.example?x",
        "https://push.example#x",
        "https://user@push.example",
        "javascript:alert(1)",
        "https://push.example\\evil",
    ],
)
def test_no_snippet_is_made_of_an_address_that_is_no_origin(settings, base_url):
    """The snippet quotes the address unchanged. No process starts with such a setting."""
    settings.PUBLIC_BASE_URL = base_url

    assert "pushsvc.E009" in [error.id for error in check_settings()]
