"""Facts become signed messages at each webhook that wants them: each fact in exactly one message,
each message at least once or visibly failed."""

import threading
import time
from collections import Counter
from datetime import timedelta
from functools import partial
from itertools import repeat

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from standardwebhooks.webhooks import WebhookVerificationError

from channels_app import webhooks
from channels_app.feeds import EVENTS, EventKind
from channels_app.models import (
    Channel,
    Feed,
    ProviderCredential,
    Webhook,
    WebhookAttempt,
    WebhookMessage,
)
from channels_app.pauses import credential_check_record, platform_pause
from channels_app.selectors import channel_totals
from notifications_app import tasks
from notifications_app.erasure import person_forget
from notifications_app.events import Event, events_record
from notifications_app.pipeline import recording
from notifications_app.sends.services import notification_cancel
from notifications_app.webhooks import attempts, calls, messages, turns
from pushsvc.common.platforms import Platform
from pushsvc.common.store.redis_client import redis_client
from sandbox.certificate import server_chain
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
from tests.pipeline.receivers import running_receiver
from tests.scrape import scrape


@pytest.fixture
def receiver(settings):
    with running_receiver() as running:
        settings.WEBHOOK_TRUSTED_ORIGINS = frozenset({running.origin})
        yield running


@pytest.fixture
def other_receiver(receiver, settings):
    with running_receiver() as running:
        settings.WEBHOOK_TRUSTED_ORIGINS |= {running.origin}
        yield running


def hook(channel, receiver, *events, path="/"):
    """A webhook that wants these events, or all; its row and its secret."""
    return webhooks.webhook_create(
        channel=channel, url=f"{receiver.origin}{path}", events=events or EVENTS
    )


def work(seconds=20):
    return turns.work(seconds=seconds)


def only_attempt():
    return WebhookAttempt.objects.get()


def make_due():
    WebhookAttempt.objects.filter(state="waiting").update(due_at=Now())


def code_counts(facts):
    return Counter(each["code"] for each in facts)


# --- what is told ---------------------------------------------------------------------------------


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


# --- how it is sent -------------------------------------------------------------------------------


def test_requests_have_signatures_of_both_secrets_while_rotating(channel, receiver):
    row, old = hook(channel, receiver)
    _, new = webhooks.webhook_rotate_secret(channel_id=channel.id, webhook_id=row.pk)
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    work()
    Webhook.objects.update(old_secret_until=Now())
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    work()

    during, after = receiver.requests
    assert during.verified(old) == during.verified(new)
    assert after.verified(new)["type"] == "webhook.test"
    with pytest.raises(WebhookVerificationError):
        after.verified(old)


def test_a_failed_message_is_repeated_unchanged_until_it_is_accepted(channel, receiver):
    row, secret = hook(channel, receiver)
    answers = iter([(500, {}, b"out of\norder"), 404, 204])
    receiver.answer = lambda _: next(answers)
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)

    work()
    first = only_attempt()
    assert (first.state, first.attempts, first.answer) == ("waiting", 1, "500: out of order")
    work()
    assert len(receiver.requests) == 1
    make_due()
    work()
    assert only_attempt().answer == "404"
    make_due()
    work()

    done = only_attempt()
    assert (done.state, done.attempts) == ("delivered", 3)
    assert len({each.message_id for each in receiver.requests}) == 1
    assert len({each.body for each in receiver.requests}) == 1
    assert all(each.verified(secret) for each in receiver.requests)
    health = Webhook.objects.get()
    assert health.failing_since is None
    assert health.last_delivered_at > health.last_failed_at


def test_waits_grow_as_promised():
    waits = [attempts.wait_after(number, None) for number in range(1, 11)]

    hours = [2, 5, 10, 14, 20, 24]
    promised = [timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30)]
    promised += [timedelta(hours=each) for each in hours]
    assert waits[9] is None
    assert all(
        0.9 * usual <= wait <= 1.1 * usual for usual, wait in zip(promised, waits[:9], strict=True)
    )
    assert attempts.wait_after(1, 120.0) == timedelta(seconds=120)
    assert attempts.wait_after(1, 10**7) == timedelta(days=1)
    assert attempts.wait_after(9, 1.0) > timedelta(hours=20)


def test_the_tenth_failure_is_the_last(channel, receiver):
    row, _ = hook(channel, receiver)
    receiver.answer = lambda _: 503
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)

    for _ in range(11):
        make_due()
        work()

    assert len(receiver.requests) == 10
    assert (only_attempt().state, only_attempt().attempts) == ("failed", 10)


def test_a_receiver_that_asks_for_a_pause_gets_it(channel, receiver):
    row, _ = hook(channel, receiver)
    receiver.answer = lambda _: (429, {"Retry-After": "3600"}, b"")
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)

    work()

    wait = WebhookAttempt.objects.annotate(wait=F("due_at") - Now()).get().wait
    assert timedelta(minutes=59) < wait < timedelta(minutes=61)


def test_a_webhook_that_is_gone_is_disabled_at_once(channel, receiver):
    row, _ = hook(channel, receiver)
    receiver.answer = lambda _: 410
    for _ in range(2):
        webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)

    work()

    row.refresh_from_db()
    assert (row.is_enabled, row.disabled_code) == (False, "gone")
    assert set(WebhookAttempt.objects.values_list("state", flat=True)) == {"failed"}


def test_messages_that_wait_while_the_webhook_is_disabled_keep_their_last_answer(channel, receiver):
    row, _ = hook(channel, receiver)
    receiver.answer = lambda _: (500, {}, b"out of order")
    of = {"channel_id": channel.id, "webhook_id": row.pk}
    webhooks.webhook_test(**of)
    work()
    webhooks.webhook_test(**of)

    webhooks.webhook_update(**of, url=row.url, events=EVENTS, enabled=False)

    ended = WebhookAttempt.objects.order_by("message_id").values_list("state", "answer")
    assert list(ended) == [
        ("failed", "500: out of order"),
        ("failed", "not sent: the webhook is disabled"),
    ]


def test_a_webhook_that_fails_for_five_days_is_disabled(channel, receiver):
    row, _ = hook(channel, receiver)
    receiver.answer = lambda _: 500
    for days in (4, 5):
        webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
        Webhook.objects.update(failing_since=Now() - timedelta(days=days))
        assert Webhook.objects.get().is_enabled
        make_due()
        work()

    row.refresh_from_db()
    assert (row.is_enabled, row.disabled_code) == (False, "failing")


def test_one_webhook_has_at_most_four_calls_at_once(channel, receiver):
    row, _ = hook(channel, receiver)
    for _ in range(20):
        webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    receiver.answer = lambda _: time.sleep(0.05) or 204

    support.in_threads(*[work] * 3)
    work()

    assert len(receiver.requests) == 20
    assert receiver.most_at_once <= 4


def test_a_receiver_that_hangs_delays_no_other(
    channel, other_channel, receiver, other_receiver, monkeypatch
):
    """While all calls of one hang, the messages of the other arrive."""
    dead, _ = hook(channel, receiver)
    live, _ = hook(other_channel, other_receiver)
    is_over = threading.Event()
    receiver.answer = lambda _: is_over.wait(60) and 204
    for _ in range(50):
        webhooks.webhook_test(channel_id=channel.id, webhook_id=dead.pk)
    arrived = []

    def talk():
        support.until(lambda: receiver.requests)
        for _ in range(20):
            webhooks.webhook_test(channel_id=other_channel.id, webhook_id=live.pk)
        support.until(lambda: len(other_receiver.requests) == 20)
        arrived.append(len(receiver.requests))
        is_over.set()

    support.in_threads(partial(work, 10), talk)

    assert arrived == [4]


def test_a_silent_receiver_fails_after_the_time_of_a_call(channel, receiver, monkeypatch):
    monkeypatch.setattr(calls, "CALL_SECONDS", 0.3)
    row, _ = hook(channel, receiver)
    is_over = threading.Event()
    receiver.answer = lambda _: is_over.wait(30) and 204
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)

    work()
    is_over.set()

    assert only_attempt().state == "waiting"
    assert "no response" in only_attempt().answer


@pytest.mark.parametrize(
    ("status", "state", "answer"),
    [(500, "waiting", "500: " + "x" * 200), (200, "delivered", "200")],
)
def test_an_endless_body_is_not_read_to_its_end(channel, receiver, status, state, answer):
    row, _ = hook(channel, receiver)
    receiver.answer = lambda _: (status, {}, repeat(b"x" * 1_000))
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)

    work()

    assert (only_attempt().state, only_attempt().answer) == (state, answer)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(channel, receiver, other_receiver, status):
    """Not even to an address that the operator trusts."""
    row, _ = hook(channel, receiver)
    receiver.answer = lambda _: (status, {"Location": f"{other_receiver.origin}/inside"}, b"")
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)

    work()

    assert (only_attempt().state, only_attempt().answer) == ("waiting", str(status))
    assert len(receiver.requests) == 1
    assert not other_receiver.requests


def test_a_receiver_of_the_operators_authority_is_called_over_tls(channel, settings, tmp_path):
    chain, authority = server_chain("127.0.0.1")
    for name, pem in (("chain", chain), ("authority", authority.encode())):
        (tmp_path / name).write_bytes(pem)
    with running_receiver(certificate=tmp_path / "chain") as receiver:
        settings.WEBHOOK_TRUSTED_ORIGINS = frozenset({receiver.origin})
        row, secret = hook(channel, receiver)
        webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
        work()
        assert only_attempt().answer == "the TLS handshake failed"
        assert not receiver.requests

        settings.PROVIDER_CA_FILE = str(tmp_path / "authority")
        make_due()
        work()

        [request] = receiver.requests
        assert request.verified(secret)["type"] == "webhook.test"
    assert only_attempt().state == "delivered"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://localtest.shop.com/", "the host's address is not public"),
        ("http://127.0.0.1:1/", "no call: The address must be an https URL."),
    ],
)
def test_an_address_inside_is_not_called(channel, receiver, url, words, monkeypatch):
    """Even if the name resolved elsewhere when the webhook was made, or the operator trusted it."""
    row, _ = hook(channel, receiver)
    Webhook.objects.update(url=url)

    async def inward(_self, _host, port):
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(calls.SeparateResolver, "look_up", inward)
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)

    work()

    assert words in only_attempt().answer
    assert not receiver.requests


def test_a_worker_that_lost_its_lease_writes_nothing(channel, receiver):
    row, _ = hook(channel, receiver)
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    [lost] = attempts.claim(10)
    assert attempts.claim(10) == []
    WebhookAttempt.objects.update(lease_until=Now() - timedelta(seconds=1))
    [held] = attempts.claim(10)

    attempts.record(lost, calls.Answer(is_delivered=False, words="late"))
    assert only_attempt().answer == ""
    attempts.record(held, calls.Answer(is_delivered=True, words="204"))
    attempts.record(lost, calls.Answer(is_delivered=False, words="late"))

    done = only_attempt()
    assert (done.state, done.answer) == ("delivered", "204")


def test_a_replayed_message_has_the_same_id_and_bytes(channel, receiver):
    row, _ = hook(channel, receiver)
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    work()
    since = WebhookMessage.objects.get().created_at

    count = webhooks.webhook_replay(
        channel_id=channel.id, webhook_id=row.pk, since=since, state="delivered"
    )
    work()

    assert count == 1
    first, again = receiver.requests
    assert (first.message_id, first.body) == (again.message_id, again.body)


def test_a_deleted_webhook_gets_nothing_more(channel, receiver):
    row, _ = hook(channel, receiver)
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    webhooks.webhook_delete(channel_id=channel.id, webhook_id=row.pk)

    work()

    assert not receiver.requests


# --- the tick and the person ----------------------------------------------------------------------


def test_a_tick_wakes_the_worker_for_facts_and_for_due_messages(channel, receiver):
    row, _ = hook(channel, receiver, "notifications.clicked")
    support.tick()
    assert support.waiting("hooks") == 0
    _, events = clicks.planned(channel, 1)
    events_record(events)

    support.tick()
    assert support.waiting("hooks") > 0
    redis_client().delete("hooks")
    tasks.send_webhooks()
    assert len(receiver.requests) == 1
    support.tick()
    assert support.waiting("hooks") == 0
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    support.tick()
    assert support.waiting("hooks") > 0


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


def registered(channel, receiver):
    """A device of user-42, and a webhook that hears of it."""
    channel.identity = "trust"
    channel.save()
    hook(channel, receiver, "subscriptions.created")
    factories.register(channel, login=Login("user-42"))


def test_neither_address_nor_secret_nor_body_is_logged(channel, receiver, caplog):
    row, secret = hook(channel, receiver, path="/of-the-owner")
    answers = iter([500, 410])
    receiver.answer = lambda _: next(answers)
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    work()
    make_due()
    work()

    logged = str([record.__dict__ for record in caplog.records])
    assert "webhook.disabled" in logged
    for hidden in ("of-the-owner", receiver.origin, secret, "webhook.test"):
        assert hidden not in logged


def test_messages_and_facts_that_wait_are_measured(channel, receiver):
    row, _ = hook(channel, receiver)
    assert scrape()["pushsvc_webhook_messages"] == {(): 0}
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    WebhookAttempt.objects.update(due_at=Now() - timedelta(minutes=2))
    assert scrape()["pushsvc_webhook_messages"] == {(): 1}
    assert scrape()["pushsvc_webhook_lateness_seconds"][()] >= 120
    work()
    _, events = clicks.planned(channel, 1)
    events_record(events)
    Feed.objects.update(at=Now() - timedelta(minutes=3))
    assert scrape()["pushsvc_webhook_lateness_seconds"][()] >= 180


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


def test_every_frequent_kind_has_a_reader():
    rare = {"credential.paused", "credential.resumed", "limit.learned", "alert.raised"}
    rare.add("webhook.test")

    assert {each.value for each in messages._KINDS} == {each.value for each in EventKind} - rare
