"""Facts become messages for each webhook that wants them: each fact in exactly one message."""

import threading
from collections import Counter
from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from channels_app import webhooks
from channels_app.feeds import EventKind
from channels_app.models import (
    Channel,
    Feed,
    ProviderCredential,
    Webhook,
    WebhookMessage,
)
from channels_app.pauses import credential_check_record, platform_pause
from channels_app.selectors import channel_totals
from notifications_app.erasure import person_forget
from notifications_app.events import Event, events_record
from notifications_app.pipeline import recording
from notifications_app.reporting.attention import attention
from notifications_app.sends.services import notification_cancel
from notifications_app.webhooks import messages
from pushsvc.common.findings import Kind
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import (
    expired_purge,
    subscription_forget,
    subscription_unsubscribe,
)
from subscriptions_app.devices.values import Login
from subscriptions_app.importing.services import subscriptions_import
from subscriptions_app.importing.values import Row
from subscriptions_app.models import Subscription
from tests import factories
from tests.pipeline import clicks, support
from tests.pipeline.hooks import code_counts, hook, make_due, only_attempt, work
from tests.scrape import scrape


def test_a_finished_notification_is_told_with_its_counts_and_reasons(sandbox, channel, receiver):
    _, secret = hook(channel, receiver, "notifications.finished")
    devices = factories.subscribe_browsers(sandbox, channel, 3)
    sandbox.delete(devices[0][0])

    notification = support.send(channel)
    work()

    [request] = receiver.requests
    said = request.verified(secret)
    assert said["type"] == "notifications.finished"
    assert said["data"]["channel_id"] == str(channel.id)
    [told] = said["data"]["notifications"]
    notification.refresh_from_db()
    assert told == {
        "notification_id": str(notification.id),
        "status": "sent",
        "recipient_count": 3,
        "delivered_count": 2,
        "bounced_count": 1,
        "clicked_count": 0,
        "reasons": [{"code": "endpoint_gone", "count": 1}],
    }
    assert only_attempt().state == "delivered"


def test_a_notification_to_one_person_names_the_person(channel, receiver):
    hook(channel, receiver, "notifications.finished")
    one = factories.make_direct_notification(channel, people=["user-42"])
    two = factories.make_direct_notification(channel, people=["user-42", "user-43"])

    support.plan()
    work()

    told = {each["notification_id"]: each for each in receiver.facts("notifications.finished")}
    assert told[str(one.id)]["external_id"] == "user-42"
    assert "external_id" not in told[str(two.id)]
    assert told[str(one.id)]["recipient_count"] == 0


def test_cancelled_notifications_are_told(channel, receiver):
    hook(channel, receiver, "notifications.cancelled")
    later = factories.make_notification(channel, scheduled_at=Now() + timedelta(hours=1))

    notification_cancel(channel_id=channel.id, notification_id=later.id)
    notification_cancel(channel_id=channel.id, notification_id=later.id)
    work()

    [told] = receiver.facts("notifications.cancelled")
    assert (told["notification_id"], told["status"]) == (str(later.id), "cancelled")


def test_each_click_and_dismissal_is_told_once(channel, receiver):
    hook(channel, receiver, "notifications.clicked", "notifications.dismissed")
    actions = [{"id": "buy", "title": "Buy"}]
    notification, events = clicks.planned(channel, 5, extras={"actions": actions})
    press = Event(events[0].notification_id, events[0].subscription_id, "clicked", "buy")

    events_record([press])
    events_record(events)
    events_record(events)
    events_record([events[1]._replace(kind="dismissed"), events[1]._replace(kind="dismissed")])
    work()

    told = receiver.facts("notifications.clicked")
    assert len(told) == len({each["subscription_id"] for each in told}) == 5
    assert {each["notification_id"] for each in told} == {str(notification.id)}
    assert Counter(each["action"] for each in told) == {None: 4, "buy": 1}
    assert len(receiver.facts("notifications.dismissed")) == 1


def test_created_minus_expired_is_the_number_of_subscribers(sandbox, channel, receiver):
    """However subscriptions come and go: each change of the count is one fact."""
    hook(channel, receiver, "subscriptions.created", "subscriptions.expired")
    rows = [row for _, row in factories.subscribe_browsers(sandbox, channel, 6)]
    addresses = [Address.of(Platform.WEB, row.address) for row in rows]
    subscription_unsubscribe(channel=channel, address=addresses[0])
    subscription_unsubscribe(channel=channel, address=addresses[0])  # nothing more
    subscription_unsubscribe(channel=channel, address=addresses[1])
    keys = {"p256dh": rows[1].p256dh, "auth": rows[1].auth}
    factories.register(channel, address=rows[1].address, **keys)  # active again
    subscription_forget(subscription=rows[2])
    Subscription.objects.filter(pk=rows[0].pk).update(expired_at=Now() - timedelta(days=100))
    expired_purge(10)
    work()

    created = receiver.facts("subscriptions.created")
    expired = receiver.facts("subscriptions.expired")
    assert {each["subscription_id"] for each in created} == {str(row.id) for row in rows}
    assert len(created) == 7
    assert code_counts(expired) == {"unsubscribed": 2, "deleted": 1}
    assert {each["platform"] for each in created + expired} == {"web"}
    count = channel_totals(channel.id).subscribers
    assert len(created) - len(expired) == count


def test_a_pause_its_end_and_a_limit_are_told(channel, receiver):
    hook(channel, receiver, "credential.paused", "credential.resumed", "limit.learned")
    ProviderCredential.objects.create(channel=channel, platform="ios")
    of = {"channel_id": channel.id, "platform": Platform.IOS, "version": 1}

    assert platform_pause(**of, code="apns_403", detail="InvalidProviderToken")
    assert not platform_pause(**of, code="apns_403", detail="InvalidProviderToken")
    credential_check_record(**of, is_accepted=True, code="accepted")
    credential_check_record(**of, is_accepted=True, code="accepted")
    clicks.planned(channel, 1)
    lease = support.claim()
    recording.tell_limit(lease, 1000)
    work()

    told = {each.said["type"]: each.said["data"] for each in receiver.requests}
    assert len(receiver.requests) == len(told) == 3
    paused = told["credential.paused"]
    assert (paused["platform"], paused["code"], paused["detail"]) == (
        "ios",
        "apns_403",
        "InvalidProviderToken",
    )
    assert told["limit.learned"]["detail"].startswith("It accepts about 1,000")
    assert told["credential.resumed"]["code"] == "accepted"


def test_a_channel_without_webhooks_stores_no_facts(sandbox, channel, other_channel, receiver):
    hook(other_channel, receiver)
    factories.subscribe_browsers(sandbox, channel, 2)
    support.send(channel)
    events_record(clicks.planned(channel, 1)[1])

    assert not Feed.objects.filter(channel_id=channel.id).exists()
    assert not WebhookMessage.objects.exists()


def test_facts_are_told_together_and_not_beyond_the_size_of_a_message(
    channel, receiver, monkeypatch
):
    hook(channel, receiver, "notifications.clicked")
    monkeypatch.setattr(messages, "_ROOM", 2_000)
    _, events = clicks.planned(channel, 40)

    events_record(events[:20])
    events_record(events[20:])
    work()

    assert len(receiver.facts("notifications.clicked")) == 40
    assert 1 < len(receiver.requests) < 20
    assert max(len(each.body) for each in receiver.requests) < 2_600


def test_two_workers_at_once_tell_each_fact_in_one_message(channel, receiver):
    hook(channel, receiver, "notifications.clicked")
    notification, events = clicks.planned(channel, 300)
    for at in range(0, 300, 20):
        events_record(events[at : at + 20])

    support.in_threads(*[work] * 3)
    work()

    told = receiver.facts("notifications.clicked")
    assert len(told) == len({each["subscription_id"] for each in told}) == 300
    notification.refresh_from_db()
    assert notification.clicked_count == 300
    assert not Feed.objects.exists()


def test_an_erased_person_is_removed_from_messages_that_were_not_sent(channel, receiver):
    channel.identity = "trust"
    channel.save()
    hook(channel, receiver, "subscriptions.created")
    receiver.answer = lambda _: 500
    for name in ("user-42", 'a"\\b', "user-421"):
        factories.register(channel, login=Login(name))
    work()

    person_forget(channel=channel, external_id="user-42")
    person_forget(channel=channel, external_id='a"\\b')
    receiver.answer = lambda _: 204
    make_due()
    work()

    last = receiver.requests[-1].said["data"]["subscriptions"]
    assert len(receiver.requests[0].said["data"]["subscriptions"]) == len(last)
    assert [each["external_id"] for each in last] == [None, None, "user-421"]


def test_an_erasure_reads_a_message_once_however_often_it_names_the_person(channel, receiver):
    channel.identity = "trust"
    channel.save()
    hook(channel, receiver, "subscriptions.created")
    receiver.answer = lambda _: 500
    for _ in range(30):
        factories.register(channel, login=Login("user-42"))
    work()

    read = support.most_rows_read(lambda: webhooks.person_remove(channel.id, "user-42"))

    assert read == 1
    assert bytes(WebhookMessage.objects.get().body).count(b'"external_id":null') == 30


@pytest.mark.parametrize("ending", ["delete", "disable", "disable by the service"])
def test_an_erased_person_is_removed_from_messages_of_webhooks_that_ended(
    channel, other_channel, receiver, ending
):
    registered(other_channel, receiver)
    registered(channel, receiver)
    receiver.answer = lambda _: 500
    work()
    row = Webhook.objects.get(channel=channel)
    of = {"channel_id": channel.id, "webhook_id": row.pk}
    if ending == "delete":
        webhooks.webhook_delete(**of)
    elif ending == "disable":
        webhooks.webhook_update(**of, url=row.url, events=row.events, enabled=False)
    else:
        webhooks.webhook_disable(row.pk, webhooks.FAILING)

    person_forget(channel=channel, external_id="user-42")

    own, others = (
        WebhookMessage.objects.get(channel_id=each.id) for each in (channel, other_channel)
    )
    assert b'"external_id":null' in bytes(own.body)
    assert b"user-42" in bytes(others.body)
    assert not Feed.objects.exists()


def registered(channel, receiver):
    """A device of user-42, and a webhook that hears of it."""
    channel.identity = "trust"
    channel.save()
    hook(channel, receiver, "subscriptions.created")
    factories.register(channel, login=Login("user-42"))


def test_a_message_that_is_made_during_an_erasure_does_not_name_the_person(
    channel, receiver, monkeypatch
):
    """The worker has read the person when the erasure begins."""
    registered(channel, receiver)
    write, has_read, is_erased = messages._write, threading.Event(), threading.Event()

    def write_later(*arguments):
        has_read.set()
        support.until(lambda: is_erased.is_set() or support.waiting_sessions())
        write(*arguments)

    def erase():
        assert has_read.wait(60)
        person_forget(channel=channel, external_id="user-42")
        is_erased.set()

    monkeypatch.setattr(messages, "_write", write_later)
    support.in_threads(partial(messages.make_messages, lambda: True), erase)
    work()

    [told] = receiver.facts("subscriptions.created")
    assert told["external_id"] is None


def test_no_message_is_made_until_an_erasure_has_ended(channel, receiver):
    registered(channel, receiver)
    erased, made = threading.Barrier(2, timeout=60), threading.Barrier(2, timeout=60)

    def erase():
        with transaction.atomic():
            person_forget(channel=channel, external_id="user-42")
            erased.wait()
            made.wait()

    def make():
        erased.wait()
        messages.make_messages(lambda: True)
        made.wait()

    support.in_threads(erase, make)
    work()

    [told] = receiver.facts("subscriptions.created")
    assert told["external_id"] is None


def test_an_import_is_told_in_numbers(channel, receiver):
    """Created, minus expired, plus what imports changed, is the number of subscribers."""
    hook(
        channel,
        receiver,
        "subscriptions.created",
        "subscriptions.expired",
        "subscriptions.imported",
    )
    Channel.objects.update(android_enabled=True)
    channel.refresh_from_db()
    addresses = [Address.of(Platform.ANDROID, f"token:{number:0140}") for number in range(3)]
    rows = [Row(address, "fcm_v1") for address in addresses]

    subscriptions_import(channel=channel, rows=rows)
    subscriptions_import(channel=channel, rows=rows)
    subscription_unsubscribe(channel=channel, address=addresses[0])
    work()

    [imported] = receiver.facts("subscriptions.imported")
    assert (imported["platform"], imported["created"], imported["expired"]) == ("android", 3, 0)
    assert not receiver.facts("subscriptions.created")
    assert len(receiver.facts("subscriptions.expired")) == 1
    assert channel_totals(channel.id).subscribers == 2


def imported(channel, *codes):
    """Facts of an import; what is not a number of subscriptions cannot be read."""
    row = {"channel_id": channel.id, "kind": "subscriptions.imported", "platform": "web"}
    return Feed.objects.bulk_create(
        [Feed(**row, subject=uuid7(), code=code, at=Now()) for code in codes]
    )


def test_a_fact_that_cannot_be_read_stops_no_other(channel, other_channel, receiver, caplog):
    hook(channel, receiver)
    hook(other_channel, receiver, "notifications.clicked")
    rows = imported(channel, *["1 0"] * 9, "one 0", *["1 0"] * 5, "two 0")
    unknown = [Feed(channel_id=channel.id, kind="a.newer.kind", subject=uuid7(), at=Now())] * 3
    Feed.objects.bulk_create(unknown)
    events_record(clicks.planned(other_channel, 3)[1])

    work()
    support.tick()

    assert sum(each["created"] for each in receiver.facts("subscriptions.imported")) == 14
    assert len(receiver.facts("notifications.clicked")) == 3
    aside = Feed.objects.exclude(unreadable_at=None)
    assert {rows[9].pk, rows[15].pk} < set(aside.values_list("pk", flat=True))
    assert aside.count() == Feed.objects.count() == 5
    logged = [each for each in caplog.records if "webhook.facts_unreadable" in str(each.msg)]
    assert len(logged) == 3
    assert support.waiting("hooks") == 0
    assert scrape()["pushsvc_webhook_lateness_seconds"][()] == 0


def test_facts_that_were_set_aside_are_found_and_can_be_collected_again(channel, receiver):
    hook(channel, receiver)
    imported(channel, "one 0")
    work()
    [finding] = attention_of(channel)
    assert finding.title == "Facts for webhooks that cannot be read: 1"

    Feed.objects.update(code="1 0", unreadable_at=None)
    work()

    assert len(receiver.facts("subscriptions.imported")) == 1
    assert not attention_of(channel)


def attention_of(channel):
    channels = Channel.objects.filter(pk=channel.pk)
    found = attention(channels, now=timezone.now())
    return [each for each in found if each.code == Kind.FACTS_UNREADABLE.code]


def test_each_channel_has_its_turn_although_the_time_is_over_each_time(
    channel, other_channel, receiver
):
    """Even if the facts of the first channels never end."""
    hook(channel, receiver)
    hook(other_channel, receiver)
    collector, told = messages.Collector(), []

    for _ in range(4):
        for each in (channel, other_channel):
            imported(each, "1 0")
        once = iter([True, True, False])
        collector.make_messages(lambda once=once: next(once, False))
        told = list(WebhookMessage.objects.values_list("channel_id", flat=True))

    assert Counter(told) == {channel.id: 2, other_channel.id: 2}


def test_every_frequent_kind_has_a_reader():
    rare = {"credential.paused", "credential.resumed", "limit.learned", "alert.raised"}
    rare |= {"schedule.disabled", "automation.disabled", "newsfeed.disabled", "webhook.test"}
    rare |= {"notification.decided"}
    rare |= {"subscriptions.tagged"}  # only automations follow it

    assert {each.value for each in messages._KINDS} == {each.value for each in EventKind} - rare
