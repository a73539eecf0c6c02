"""Which webhooks are called in which turn: none delays the others for long."""

import socket
import threading
import time
from datetime import timedelta
from functools import partial

import pytest
from django.db.models import F
from django.db.models.functions import Now

from channels_app import webhooks
from channels_app.feeds import EVENTS
from channels_app.models import (
    Account,
    Webhook,
    WebhookAttempt,
    WebhookMessage,
)
from notifications_app.webhooks import attempts, calls, turns
from pushsvc.common.store import sql
from pushsvc.common.store.crypto import encrypt
from tests.pipeline import support
from tests.pipeline.hooks import claim, hook, work


def test_one_webhook_has_at_most_four_calls_at_once(channel, receiver):
    row, _ = hook(channel, receiver)
    for _ in range(20):
        webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    receiver.answer = lambda _: time.sleep(0.05) or 204

    support.in_threads(*[work] * 3)
    work()

    assert len(receiver.requests) == 20
    assert receiver.most_at_once <= 4


@pytest.mark.parametrize(("ago", "number"), [(30, 4), (90, 1)])
def test_a_receiver_that_hangs_delays_no_other(
    channel, other_channel, receiver, other_receiver, ago, number
):
    """While all calls of one hang, the messages of the other arrive. It has four calls if it
    responded in the last minute."""
    dead, _ = hook(channel, receiver)
    live, _ = hook(other_channel, other_receiver)
    Webhook.objects.update(last_delivered_at=Now() - timedelta(seconds=ago))
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

    assert arrived == [number]


def hang(channel, receiver, number, *, is_failing):
    """Webhooks of the channel's receiver, which does not respond; each with several messages."""
    for _ in range(number):
        row, _ = hook(channel, receiver)
        if is_failing:
            Webhook.objects.filter(pk=row.pk).update(failing_since=Now(), last_failed_at=Now())
        for _ in range(6):
            message = WebhookMessage.objects.create(
                channel_id=channel.id, type="webhook.test", body=b"{}"
            )
            WebhookAttempt.objects.create(message=message, webhook=row)


@pytest.mark.parametrize("is_failing", [True, False])
def test_many_receivers_that_hang_leave_places_for_others(
    channel, other_channel, receiver, other_receiver, monkeypatch, is_failing
):
    """Failing ones of any account, and those of one account that have not failed yet."""
    monkeypatch.setattr(turns, "CALLS_IN_FLIGHT", 8)
    monkeypatch.setattr(turns, "TROUBLED_IN_FLIGHT", 8)
    is_over = threading.Event()
    receiver.answer = lambda _: is_over.wait(60) and 204
    other_channel.account = Account.objects.create(name="Bob")
    other_channel.save()
    hang(channel, receiver, 10, is_failing=is_failing)
    live, _ = hook(other_channel, other_receiver)
    arrived = []

    def talk():
        support.until(lambda: receiver.requests)
        for _ in range(20):
            webhooks.webhook_test(channel_id=other_channel.id, webhook_id=live.pk)
        support.until(lambda: len(other_receiver.requests) == 20)
        arrived.append(len(receiver.requests))
        is_over.set()

    support.in_threads(partial(work, 10), talk)

    assert arrived == [2]  # a quarter of the places is for one account


def test_webhooks_with_all_their_calls_in_flight_hide_no_others(
    channel, other_channel, receiver, other_receiver, monkeypatch
):
    monkeypatch.setattr(attempts, "_MOST_WEBHOOKS", 2)
    hang(channel, receiver, 2, is_failing=False)
    assert len(claim()) == 2
    live, _ = hook(other_channel, other_receiver)
    Webhook.objects.filter(pk=live.pk).update(served_at=Now())
    webhooks.webhook_test(channel_id=other_channel.id, webhook_id=live.pk)

    assert [each.webhook_id for each in claim()] == [live.pk]


def test_a_claim_does_not_read_all_messages_that_wait_for_a_webhook_that_is_held(channel):
    held, *_ = Webhook.objects.bulk_create(Webhook(channel=channel, url="/") for _ in range(60))
    Webhook.objects.filter(pk=held.pk).update(held_until=Now() + timedelta(minutes=5))
    messages = WebhookMessage.objects.bulk_create(
        WebhookMessage(channel_id=channel.id, type="webhook.test", body=b"{}") for _ in range(2000)
    )
    WebhookAttempt.objects.bulk_create(
        WebhookAttempt(message=each, webhook=held, due_at=Now() - timedelta(seconds=number))
        for number, each in enumerate(messages)
    )
    sql.execute("ANALYZE channels_app_webhook, channels_app_webhookattempt", {})

    assert support.most_rows_read(claim) < 2 * 60


def test_a_failing_webhook_is_tried_ever_more_rarely(channel, receiver):
    row, _ = hook(channel, receiver)
    receiver.answer = lambda _: 500
    hang(channel, receiver, 1, is_failing=False)
    Webhook.objects.exclude(pk=row.pk).update(failing_since=Now() - timedelta(hours=3))

    work()
    support.tick()

    assert len(receiver.requests) == 1
    wait = Webhook.objects.annotate(wait=F("held_until") - Now()).exclude(pk=row.pk).get().wait
    assert timedelta(minutes=4) < wait < timedelta(minutes=5)
    assert support.waiting("hooks") == 0
    receiver.answer = lambda _: 204
    Webhook.objects.update(held_until=Now())
    work()
    assert len(receiver.requests) == 1 + 6 - 1  # the first one waits for its second attempt


def test_a_test_is_sent_at_once_although_calls_fail(channel, receiver):
    row, _ = hook(channel, receiver)
    Webhook.objects.update(failing_since=Now(), held_until=Now() + timedelta(minutes=5))
    webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)

    work()

    assert len(receiver.requests) == 1
    row.refresh_from_db()
    assert (row.failing_since, row.held_until) == (None, None)


def test_slow_receivers_have_the_places_of_failing_ones(channel, receiver):
    row, _ = hook(channel, receiver)
    for seconds, is_troubled in ((6.0, False), (0.1, True), (0.1, False)):
        webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
        [call] = claim()
        assert call.is_troubled is is_troubled
        attempts.record(call, calls.Answer(is_delivered=True, words="204", seconds=seconds))


@pytest.mark.parametrize("is_failing", [True, False])
def test_names_that_never_resolve_delay_no_other(
    channel, other_channel, receiver, monkeypatch, is_failing
):
    """Neither those of failing webhooks nor as many as an account can have at once."""
    monkeypatch.setattr(calls, "CALL_SECONDS", 50.0)
    other_channel.account = Account.objects.create(name="Bob")
    other_channel.save()
    is_over = threading.Event()

    def getaddrinfo(host, port, **_):
        if host != "live.shop.com":
            is_over.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    urls = [f"https://dead{number}.shop.com/" for number in range(110)]
    dead = Webhook.objects.bulk_create(
        Webhook(
            channel=channel,
            url=url,
            events=[],
            secret_encrypted=encrypt("whsec_c2VjcmV0"),
            failing_since=Now() if is_failing else None,
        )
        for url in urls
    )
    for row in dead:
        webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    row, _ = webhooks.webhook_create(
        channel=other_channel, url="https://live.shop.com/", events=EVENTS
    )
    own = WebhookAttempt.objects.filter(webhook=row)
    answers = []

    def talk():
        support.until(lambda: WebhookAttempt.objects.filter(attempts=1).exists())
        webhooks.webhook_test(channel_id=other_channel.id, webhook_id=row.pk)
        try:
            support.until(lambda: own.exclude(answer="").exists(), seconds=40)
            answers.append(own.get().answer)
        finally:
            is_over.set()

    support.in_threads(partial(work, 5), talk)

    assert answers == ["no call: the host's address is not public"]


def test_a_turn_goes_on_until_nothing_is_due(channel, receiver):
    """Even if each message has to wait for the call before it."""
    row, _ = hook(channel, receiver)
    receiver.answer = lambda _: time.sleep(0.6) or 204
    for _ in range(3):
        webhooks.webhook_test(channel_id=channel.id, webhook_id=row.pk)
    Webhook.objects.update(failing_since=Now())

    assert not work()

    assert len(receiver.requests) == 3
