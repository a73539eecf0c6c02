"""Alerts: mails to the managers and owners of an account, and messages to webhooks and chats."""

import json
import re
import socket
from datetime import timedelta

import pytest
from auditlog.models import LogEntry
from django.db.models import F
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.formats import date_format

from channels_app.feeds import encoded
from channels_app.models import (
    Alert,
    ApiKey,
    Mail,
    Membership,
    ProviderCredential,
    Role,
    Webhook,
    WebhookAttempt,
)
from channels_app.pauses import credential_check_record, platform_pause
from channels_app.services import api_key_issue
from channels_app.sign_in import mailing, mails
from channels_app.webhooks import webhook_create, webhook_replay, webhook_update
from notifications_app import alerts, tasks
from notifications_app.deletion import deletion_ask
from notifications_app.models import Schedule
from notifications_app.webhooks import chats, turns
from pushsvc.common.ids import uuid7, uuid7_at
from pushsvc.common.mail_server import MailServer, Security
from pushsvc.common.platforms import Platform
from tests import factories
from tests.admin.sign_in import mail_server
from tests.admin.sign_in.mail_server import PUBLIC, running_mail_server
from tests.admin.support import signed_in
from tests.pipeline import support
from tests.pipeline.rate_model import make_known
from tests.pipeline.receivers import running_receiver

PAGE = reverse("admin:own_alerts")
ALERTED = ["alice-manager@example.com", "alice-owner@example.com"]


@pytest.fixture(scope="module")
def _server(tmp_path_factory):
    with running_mail_server(tmp_path_factory.mktemp("mail")) as server:
        yield server


@pytest.fixture
def server(_server, settings):
    _server.mails.clear()
    _server.refusal = ""
    mail_server.use(settings, _server)
    return _server


@pytest.fixture
def alice(alice):
    """Every member has an e-mail address."""
    for user in alice.members.values():
        user.email = f"{user.username}@example.com"
        user.save()
    return alice


def pause(house, platform=Platform.ANDROID, detail="It is <!channel> invalid."):
    ProviderCredential.objects.get_or_create(
        channel=house.channel, platform=platform, defaults={"secret_encrypted": "x"}
    )
    about = {"channel_id": house.channel.pk, "platform": platform, "version": 1}
    assert platform_pause(**about, code="service_account_refused", detail=detail)


def resume(house, platform=Platform.ANDROID):
    credential_check_record(
        channel_id=house.channel.pk, platform=platform, version=1, is_accepted=True, code="ok"
    )


def mailed(server):
    """(recipient, subject) of the mails that arrive now."""
    before = len(server.mails)
    tasks.housekeeping()
    mailing.send_due()
    return sorted((mail["To"], mail["Subject"].strip()) for mail in server.mails[before:])


def later(**wait):
    Alert.objects.update(told_at=F("told_at") - timedelta(**wait))


def test_managers_and_owners_get_a_mail_with_the_problem_its_time_its_remedy_and_a_link(
    alice, bob, server
):
    pause(alice)

    subject = "Android is paused: Google refused the credentials (Alice's channel)"
    assert mailed(server) == [(address, subject) for address in ALERTED]
    text = server.mails[0].get_content()
    since = ProviderCredential.objects.get().paused_at
    assert f"Since: {since.day} {since:%B %Y, %H:%M} UTC" in text
    assert "service_account_refused: It is <!channel> invalid." in text
    assert "store other credentials" in text
    assert f"{PUBLIC}/admin/?channel={alice.channel.pk}" in text
    assert f"{PUBLIC}{PAGE}" in text
    dashboard = signed_in(alice.members["owner"]).get(f"/admin/?channel={alice.channel.pk}")
    assert "Android is paused" in dashboard.content.decode()


def test_each_member_gets_the_same_problems_in_the_own_language(alice, server):
    """English for who never chose one."""
    mails.language_keep(user=alice.members["manager"], language="de")
    pause(alice)
    key, _ = api_key_issue(channel=alice.channel, name="shop", expires_at=Now() + timedelta(days=9))
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=Now())

    (manager, german), (owner, english) = mailed(server)

    assert [manager, owner] == ALERTED
    assert german.endswith(
        ": Android ist angehalten: Google hat die Zugangsdaten abgelehnt"
        " (Alice's channel) und weitere"
    )
    assert english.startswith("2 problems: Android is paused: Google refused the credentials")
    text = next(mail.get_content() for mail in server.mails if mail["To"] == manager)
    since = ProviderCredential.objects.get().paused_at
    with translation.override("de"):
        assert f"Seit: {date_format(since, 'DAY')}, {since:%H:%M} UTC" in text
    assert "läuft in 8 Tagen ab" in text
    assert not re.search(r"^(Channel|Since|Response|You get)", text, re.MULTILINE)


def test_a_problem_is_mailed_once_a_day_even_if_it_ends_and_begins_again(alice, server):
    pause(alice)
    assert len(mailed(server)) == 2

    resume(alice)
    pause(alice)
    later(hours=23)
    assert mailed(server) == []

    later(hours=2)
    assert len(mailed(server)) == 2


def test_a_key_that_expires_soon_is_mailed_once_a_week(alice, server):
    key, _ = api_key_issue(channel=alice.channel, name="shop", expires_at=Now() + timedelta(days=9))
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=Now())

    assert {subject for _, subject in mailed(server)} == {
        "The API key “shop” expires in 8 days (Alice's channel)"
    }
    later(days=6)
    assert mailed(server) == []
    later(days=1)
    assert len(mailed(server)) == 2


def test_a_problem_that_begins_again_after_a_day_is_mailed_again(alice, server):
    """Even if one that lasts would be mailed after a week."""
    schedule = factories.make_schedule(alice.channel, "Digest")
    own = Schedule.objects.filter(pk=schedule.pk)
    own.update(is_enabled=False, disabled_code="not_found")
    assert len(mailed(server)) == 2
    later(days=2)
    assert mailed(server) == []

    own.update(is_enabled=True, disabled_code="")
    assert mailed(server) == []
    own.update(is_enabled=False, disabled_code="category_archived")

    assert len(mailed(server)) == 2


def test_a_limit_that_lasts_is_not_mailed_again_because_redis_was_away(alice, server, settings):
    make_known("fcm", alice.channel.pk, 1_000)
    assert len(mailed(server)) == 2
    later(days=2)

    at_home, settings.REDIS_URL = settings.REDIS_URL, "redis://127.0.0.1:1/0"
    assert mailed(server) == []
    settings.REDIS_URL = at_home

    assert mailed(server) == []
    later(days=5)
    assert len(mailed(server)) == 2


def test_a_problem_from_the_time_without_a_mail_server_is_mailed_when_there_is_one(
    alice, server, settings
):
    used, settings.MAIL_SERVER = settings.MAIL_SERVER, None
    pause(alice)
    tasks.housekeeping()

    settings.MAIL_SERVER = used

    assert [address for address, _ in mailed(server)] == ALERTED


def test_a_problem_is_mailed_when_somebody_gets_alerts(alice, server):
    Membership.objects.update(gets_alerts=False)
    pause(alice)
    assert mailed(server) == []

    Membership.objects.update(gets_alerts=True)

    assert [address for address, _ in mailed(server)] == ALERTED


def test_an_account_whose_alerts_fail_delays_no_other(alice, bob, server, monkeypatch, caplog):
    bob.members["owner"].email = "bob-owner@example.com"
    bob.members["owner"].save()
    for house in (bob, alice):
        pause(house)
    alert = mails.alert

    def fail_for_bob(*, account_id, **given):
        if account_id == bob.account.pk:
            raise ValueError
        alert(account_id=account_id, **given)

    monkeypatch.setattr(mails, "alert", fail_for_bob)

    assert [address for address, _ in mailed(server)] == ALERTED
    assert "alert.failed" in caplog.text
    assert set(Alert.objects.values_list("channel__account__name", flat=True)) == {"Alice"}


def test_a_kind_that_cannot_be_read_hides_no_other(alice, server, monkeypatch):
    pause(alice)
    monkeypatch.delattr(ApiKey, "objects")

    assert len(mailed(server)) == 2


def test_a_kind_whose_statement_is_cancelled_hides_no_other(alice, server, transactional_db):
    pause(alice)

    with support.cancelled_statements("channels_app_apikey"):
        tasks.housekeeping()

    assert len(mailed(server)) == 2


def test_old_problems_of_others_hide_no_new_one(alice, bob, server):
    """However many there are, and however long they last."""
    webhook_create(channel=bob.channel, url="https://shop.example.com/", events=["alert.raised"])
    row = Webhook.objects.get()
    Webhook.objects.bulk_create(
        Webhook(channel=bob.channel, url=row.url, disabled_code="gone", is_enabled=False)
        for _ in range(1_100)
    )
    tasks.housekeeping()
    hook, _ = webhook_create(channel=alice.channel, url=row.url, events=["alert.raised"])
    Webhook.objects.filter(pk=hook.pk).update(failing_since=Now() - timedelta(hours=2))

    tasks.housekeeping()

    found = Alert.objects.filter(code="webhook_failing").values_list("subject", flat=True)
    assert list(found) == [str(hook.pk)]


def test_alerts_are_mailed_in_the_order_in_which_they_became_due(alice, bob, server):
    """Those of an account do not always come after those of another, whatever they are called."""
    bob.members["owner"].email = "bob-owner@example.com"
    bob.members["owner"].save()
    pause(bob, Platform.IOS)
    tasks.housekeeping()
    pause(alice)
    tasks.housekeeping()
    Mail.objects.filter(user=bob.members["owner"]).update(due_at=Now() - timedelta(minutes=5))

    mailing.send_due()

    assert server.mails[0]["To"] == "bob-owner@example.com"


def test_an_alert_survives_an_outage_of_the_mail_server_of_a_day(alice, server):
    server.refusal = "450 try later"
    pause(alice)
    tasks.housekeeping()
    for _ in range(30):
        Mail.objects.update(due_at=Now())
        mailing.send_due()
    assert Mail.objects.count() == 2
    server.refusal = ""
    Mail.objects.update(due_at=Now())

    mailing.send_due()

    assert len(server.mails) == 2


def test_an_alert_that_nobody_accepts_is_given_up_after_a_day(alice, server):
    server.refusal = "450 try later"
    pause(alice)
    tasks.housekeeping()
    last = Mail.objects.last()
    Mail.objects.all().delete()
    last.pk, last.attempts = uuid7_at(timezone.now() - timedelta(hours=25)), 10
    last.save(force_insert=True)

    mailing.send_due()

    assert not Mail.objects.exists()


def test_a_channel_that_is_being_deleted_has_no_alerts(alice, server):
    pause(alice)
    deletion_ask(channel_id=alice.channel.pk)

    assert mailed(server) == []


def test_problems_of_one_minute_are_in_one_mail(alice, server):
    pause(alice, Platform.IOS)
    pause(alice)
    make_known("fcm", alice.channel.pk, 1_000)
    hook, _ = webhook_create(
        channel=alice.channel, url="https://shop.example.com/", events=["notifications.finished"]
    )
    Webhook.objects.filter(pk=hook.pk).update(failing_since=Now() - timedelta(hours=2))
    schedule = factories.make_schedule(alice.channel, "Digest")
    Schedule.objects.filter(pk=schedule.pk).update(is_enabled=False, disabled_code="not_found")

    arrived = mailed(server)

    assert [address for address, _ in arrived] == ALERTED
    assert arrived[0][1].startswith("5 problems: ")
    text = server.mails[0].get_content()
    for title in (
        "Android is paused",
        "iOS is paused",
        "Chrome limits this channel",
        "Calls of the webhook https://shop.example.com fail",
        "The schedule “Digest” was disabled: not_found",
    ):
        assert title in text


def test_each_problem_is_mailed_once_although_two_processes_look(alice, server, transactional_db):
    for n in range(20):
        house_channel = factories.make_channel(f"Channel {n}", account=alice.account)
        ProviderCredential.objects.create(
            channel=house_channel, platform="ios", secret_encrypted="x", paused_at=Now()
        )

    support.in_threads(*[alerts.raise_due] * 4)
    mailing.send_due()

    texts = [mail.get_content() for mail in server.mails if mail["To"] == ALERTED[0]]
    told = [line for text in texts for line in text.splitlines() if line.startswith("Channel: ")]
    assert sorted(told) == sorted(f"Channel: Channel {n}" for n in range(20))


def hidden(page):
    """The fields with which the form says what it showed."""
    return {
        name: re.findall(rf'name="{name}" value="([^"]+)"', page.content.decode())
        for name in ("shown", "was")
    }


def test_a_member_opts_out_and_in_and_the_audit_log_has_it(alice, server):
    owner = signed_in(alice.members["owner"])
    assert "checked" in owner.get(PAGE).content.decode()

    assert owner.post(PAGE, hidden(owner.get(PAGE))).status_code == 302
    pause(alice)
    assert [address for address, _ in mailed(server)] == ALERTED[:1]
    members = owner.get(reverse("admin:channels_app_account_change", args=[alice.account.pk]))
    assert "no alerts" in members.content.decode()

    owner.post(PAGE, hidden(owner.get(PAGE)) | {"account": str(alice.account.pk)})
    later(days=2)
    assert len(mailed(server)) == 2
    entries = LogEntry.objects.filter(content_type__model="membership").order_by("id")
    assert [(entry.actor, entry.changes) for entry in entries] == [
        (alice.members["owner"], {"gets_alerts": [True, False]}),
        (alice.members["owner"], {"gets_alerts": [False, True]}),
    ]


def test_a_form_changes_only_the_own_choice(alice, bob, server):
    owner, viewer = (signed_in(alice.members[role]) for role in ("owner", "viewer"))
    form = hidden(owner.get(PAGE))
    owner.post(PAGE, form)
    viewer.post(PAGE, form)

    out = Membership.objects.filter(gets_alerts=False)
    assert list(out.values_list("user__username", flat=True)) == ["alice-owner"]


def test_a_page_of_before_undoes_no_choice_that_was_made_meanwhile(alice, bob, server):
    """It shows Alice's account with alerts, and not Bob's, which the owner joined later."""
    user = alice.members["owner"]
    client = signed_in(user)
    old = hidden(client.get(PAGE))
    Membership.objects.filter(user=user).update(gets_alerts=False)
    Membership.objects.create(account=bob.account, user=user, role=Role.MANAGER)

    page = client.post(PAGE, old | {"account": str(alice.account.pk)}, follow=True)

    assert hidden(page)["was"] == [str(bob.account.pk)]
    assert Membership.objects.filter(user=user, gets_alerts=True).get().account == bob.account


def test_who_left_after_a_mail_was_queued_does_not_get_it(alice, server):
    pause(alice)
    tasks.housekeeping()
    Membership.objects.filter(user=alice.members["manager"]).delete()

    mailing.send_due()

    assert [mail["To"] for mail in server.mails] == ALERTED[1:]
    assert not Mail.objects.exists()


def test_links_to_set_a_password_are_mailed_before_alerts(alice, server):
    pause(alice)
    tasks.housekeeping()
    mails.ask_for_link(address="alice-viewer@example.com", asked_from="192.0.2.1")

    mailing.send_due()

    assert server.mails[0]["Subject"] == "A link to set a new password"


def test_without_a_mail_server_nothing_is_queued_and_the_page_says_so(alice):
    pause(alice)
    tasks.housekeeping()

    assert not Mail.objects.exists()
    page = signed_in(alice.members["owner"]).get(PAGE).content.decode()
    assert "no mail server" in page


def test_a_line_break_in_a_channels_name_breaks_no_mail(alice, server):
    alice.channel.name = "Shop\nBcc: mallory@example.com"
    alice.channel.save()
    pause(alice)

    assert [address for address, _ in mailed(server)] == ALERTED
    assert server.mails[0]["Bcc"] is None


def test_a_mail_server_that_hangs_delays_neither_ticks_nor_housekeeping(alice, settings):
    settings.PUBLIC_BASE_URL = PUBLIC
    pause(alice)
    with socket.create_server(("localhost", 0)) as silent:
        settings.MAIL_SERVER = MailServer(
            "localhost", silent.getsockname()[1], Security.STARTTLS, "push", "secret"
        )
        tasks.housekeeping()
        tasks.tick()
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has called it
            silent.accept()
    assert Mail.objects.count() == 2


def test_a_failed_alert_is_not_an_invitation_in_the_audit_log(alice, server):
    server.refusal = "550 no such mailbox"
    pause(alice)

    assert mailed(server) == []

    server.refusal = ""
    assert not Mail.objects.exists()
    notes = [entry.additional_data["note"] for entry in LogEntry.objects.all()]
    assert not [note for note in notes if "could not be sent" in note]


# --- webhooks and chats ---------------------------------------------------------------------------


@pytest.fixture
def receiver(settings):
    with running_receiver() as running:
        settings.WEBHOOK_TRUSTED_ORIGINS = frozenset({running.origin})
        settings.PUBLIC_BASE_URL = PUBLIC
        yield running


def hook(house, receiver, format_):
    return webhook_create(
        channel=house.channel, url=f"{receiver.origin}/", events=["alert.raised"], format=format_
    )


def bodies(receiver):
    tasks.housekeeping()
    turns.work(seconds=20)
    return [json.loads(request.body) for request in receiver.requests]


def test_a_webhook_gets_a_signed_message_once(alice, receiver):
    _, secret = hook(alice, receiver, "standard")
    pause(alice)

    (said,) = bodies(receiver)
    assert len(bodies(receiver)) == 1

    assert receiver.requests[0].verified(secret) == said
    assert said["type"] == "alert.raised"
    data = said["data"]
    assert data.pop("since").endswith("Z")
    assert data.pop("remedy").endswith("tries it at once.")
    assert data == {
        "channel_id": str(alice.channel.pk),
        "code": "platform_paused",
        "severity": "error",
        "channel_name": "Alice's channel",
        "platform": "android",
        "title": "Android is paused: Google refused the credentials",
        "quote": "service_account_refused: It is <!channel> invalid.",
        "url": f"{PUBLIC}/admin/?channel={alice.channel.pk}",
    }


def test_a_chat_gets_a_text_in_which_nobody_is_called(alice, receiver):
    hook(alice, receiver, "slack")
    pause(alice)

    (body,) = bodies(receiver)

    assert list(body) == ["text"]
    lines = body["text"].split("\n")
    assert lines[0] == "Android is paused: Google refused the credentials (Alice's channel)"
    assert "service_account_refused: It is &lt;!channel&gt; invalid." in lines
    assert lines[-1] == f"{PUBLIC}/admin/?channel={alice.channel.pk}"


def test_texts_of_others_are_neither_calls_nor_links_nor_lines_in_a_chat(alice, receiver):
    alice.channel.name = "Shop\n@channel &amp;"
    alice.channel.save()
    hook(alice, receiver, "slack")
    pause(alice, detail="@all [Sign in](https://mallory.example)")

    (body,) = bodies(receiver)

    lines = body["text"].split("\n")
    assert lines[0].endswith("(Shop @\u200bchannel &amp;amp;)")
    assert "service_account_refused: @\u200ball [Sign in]\u200b(https://mallory.example)" in lines
    assert lines[-1] == f"{PUBLIC}/admin/?channel={alice.channel.pk}"


@pytest.mark.parametrize("format_", ["slack", "teams"])
def test_a_text_for_a_chat_is_as_long_as_every_chat_takes(format_):
    data = dict.fromkeys(("title", "channel_name", "since", "quote", "remedy"), "<" * 9_000)
    message = encoded("alert.raised", uuid7(), {**data, "url": PUBLIC}, at=timezone.now())

    body = json.loads(chats.body_for(format_, message))

    text = body.get("text", "").replace("&lt;", "<")
    assert len(text) < 4_096
    assert len(json.dumps(body)) < 28 * 1024
    assert PUBLIC in json.dumps(body)


def test_a_webhook_that_becomes_a_chat_gets_no_other_messages(alice, receiver):
    """Neither those that wait nor those of a replay."""
    webhook, _ = webhook_create(
        channel=alice.channel, url=f"{receiver.origin}/", events=["credential.paused"]
    )
    pause(alice)
    of = {"channel_id": alice.channel.pk, "webhook_id": webhook.pk}
    webhook_update(**of, url=webhook.url, events=["alert.raised"], format="slack")

    assert webhook_replay(**of, since=webhook.created_at) == 0
    assert [body["text"].partition(":")[0] for body in bodies(receiver)] == ["Android is paused"]
    ended = WebhookAttempt.objects.get(message__type="credential.paused")
    assert (ended.state, ended.answer) == ("failed", "not sent: a chat gets only alerts")


def test_teams_gets_a_card(alice, receiver):
    hook(alice, receiver, "teams")
    pause(alice)

    (body,) = bodies(receiver)

    assert body["type"] == "message"
    (attachment,) = body["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    texts = [line["text"] for block in card["body"] for line in block["inlines"]]
    assert texts[0] == "Android is paused: Google refused the credentials (Alice's channel)"
    assert "service_account_refused: It is <!channel> invalid." in texts
    assert card["actions"] == [
        {
            "type": "Action.OpenUrl",
            "title": "Open the dashboard",
            "url": f"{PUBLIC}/admin/?channel={alice.channel.pk}",
        }
    ]
    assert "TextBlock" not in {block["type"] for block in card["body"]}  # it has Markdown


def test_a_test_of_a_chat_is_a_text(alice, receiver):
    webhook, _ = hook(alice, receiver, "slack")
    manager = signed_in(alice.members["manager"])

    manager.post(
        reverse("admin:channel_webhook", args=[alice.channel.pk, webhook.pk]), {"do": "test"}
    )

    assert bodies(receiver) == [{"text": "This is a test. Alerts about the channel arrive here."}]
