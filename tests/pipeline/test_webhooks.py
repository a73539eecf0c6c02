"""Messages become signed requests: each message reaches its webhook at least once, or fails
visibly."""

import threading
from datetime import timedelta
from itertools import repeat

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from standardwebhooks.webhooks import WebhookVerificationError

from channels_app import webhooks
from channels_app.feeds import EVENTS, EventKind, message_add
from channels_app.models import (
    Feed,
    Webhook,
    WebhookAttempt,
    WebhookMessage,
)
from notifications_app import tasks
from notifications_app.events import events_record
from notifications_app.webhooks import attempts, calls
from pushsvc.common.store.redis_client import redis_client
from sandbox.certificate import server_chain
from tests.pipeline import clicks, support
from tests.pipeline.hooks import claim, hook, make_due, only_attempt, work
from tests.pipeline.receivers import running_receiver
from tests.scrape import scrape


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


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        ("1800", timedelta(minutes=30)),
        ("86400", timedelta(days=1)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", timedelta(days=1)),
        ("9" * 400, timedelta(days=1)),
    ],
)
def test_a_receiver_that_asks_for_a_pause_gets_it(channel, receiver, asked, granted):
    """Its message waits for up to a day; its other messages for up to an hour."""
    row, _ = hook(channel, receiver)
    receiver.answer = lambda _: (429, {"Retry-After": asked}, b"")
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)

    work()

    wait = WebhookAttempt.objects.annotate(wait=F("due_at") - Now()).get().wait
    assert granted - timedelta(minutes=1) < wait <= granted
    held = Webhook.objects.annotate(wait=F("held_until") - Now()).get().wait
    assert timedelta(minutes=29) < held <= timedelta(hours=1)
    assert Webhook.objects.get().last_answer == "429"


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


def test_a_message_that_was_made_while_the_webhook_was_disabled_is_not_sent_later(
    channel, receiver
):
    row, _ = hook(channel, receiver)
    own = {"channel_id": channel.id, "webhook_id": row.pk, "url": row.url, "events": EVENTS}
    with transaction.atomic():
        message_add(EventKind.ALERT, channel.id)
        support.in_threads(lambda: webhooks.webhook_update(**own, enabled=False))

    webhooks.webhook_update(**own)
    work()

    assert receiver.requests == []
    assert only_attempt().state == "failed"


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


def test_days_without_a_call_do_not_count_as_failures(channel, receiver):
    """A webhook that gets a message each month is not disabled by one failed call."""
    row, _ = hook(channel, receiver)
    receiver.answer = lambda _: 500
    month = Now() - timedelta(days=30)
    Webhook.objects.update(failing_since=month, last_failed_at=month)
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)

    work()

    row.refresh_from_db()
    assert row.is_enabled
    assert row.failing_since == row.last_failed_at


def test_a_failure_that_waits_for_a_delivery_begins_a_new_time_of_failures(channel, receiver):
    row, _ = hook(channel, receiver)
    for _ in range(2):
        webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    Webhook.objects.update(last_delivered_at=Now())
    first, second = claim()
    Webhook.objects.update(failing_since=Now() - timedelta(days=5), last_failed_at=Now())
    delivered = calls.Answer(is_delivered=True, words="204")
    failed = calls.Answer(is_delivered=False, words="500")

    with support.waits_for(
        lambda: attempts.record(first, delivered), lambda: attempts.record(second, failed)
    ):
        pass

    row.refresh_from_db()
    assert row.is_enabled
    assert row.failing_since == row.last_failed_at


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
    [lost] = claim()
    assert claim() == []
    WebhookAttempt.objects.update(lease_until=Now() - timedelta(seconds=1))
    [held] = claim()

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


def test_a_replay_of_failed_messages_ends_the_wait_of_others(channel, receiver):
    """A receiver that asked for a day's pause works again."""
    row, _ = hook(channel, receiver)
    receiver.answer = lambda _: (503, {"Retry-After": "86400"}, b"")
    of = {"channel_id": channel.id, "webhook_id": row.pk}
    webhooks.webhook_test(**of)
    work()
    receiver.answer = lambda _: 204

    assert webhooks.webhook_replay(**of, since=row.created_at, state="delivered") == 0
    assert webhooks.webhook_replay(**of, since=row.created_at) == 1
    work()

    assert (only_attempt().state, only_attempt().attempts) == ("delivered", 1)


def test_a_deleted_webhook_gets_nothing_more(channel, receiver):
    row, _ = hook(channel, receiver)
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    webhooks.webhook_delete(channel_id=channel.id, webhook_id=row.pk)

    work()

    assert not receiver.requests


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


def test_nothing_is_sent_without_a_signature(channel, receiver):
    """If no key decrypts the secret. The message is kept until the key is back."""
    row, secret = hook(channel, receiver)
    stored = Webhook.objects.get().secret_encrypted
    Webhook.objects.update(secret_encrypted="unreadable")
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    work()
    assert only_attempt().answer == "no call: the secret cannot be read"
    assert not receiver.requests

    Webhook.objects.update(secret_encrypted=stored)
    make_due()
    work()

    assert receiver.requests[0].verified(secret)


def test_a_second_rotation_ends_the_first_secret(channel, receiver):
    row, first = hook(channel, receiver)
    of = {"channel_id": channel.id, "webhook_id": row.pk}
    _, second = webhooks.webhook_rotate_secret(**of)
    _, third = webhooks.webhook_rotate_secret(**of)
    webhooks.webhook_test(**of)

    work()

    [request] = receiver.requests
    assert request.verified(second) == request.verified(third)
    with pytest.raises(WebhookVerificationError):
        request.verified(first)


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
    Webhook.objects.update(is_slow=True)  # then it waits for its receiver
    assert scrape()["pushsvc_webhook_lateness_seconds"][()] == 0
    assert scrape()["pushsvc_webhook_messages"] == {(): 1}
    work()
    _, events = clicks.planned(channel, 1)
    events_record(events)
    Feed.objects.update(at=Now() - timedelta(minutes=3))
    assert scrape()["pushsvc_webhook_lateness_seconds"][()] >= 180
