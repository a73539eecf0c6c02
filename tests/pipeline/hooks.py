"""Webhooks of tests, and a worker that sends to them."""

from collections import Counter

from django.db.models.functions import Now

from channels_app import webhooks
from channels_app.feeds import EVENTS
from channels_app.models import Webhook, WebhookAttempt
from notifications_app.webhooks import attempts, turns


def hook(channel, receiver, *events, path="/"):
    """A webhook that wants these events, or all; its row and its secret."""
    return webhooks.webhook_create(
        channel=channel, url=f"{receiver.origin}{path}", events=events or EVENTS
    )


def work(seconds=20):
    return turns.work(seconds=seconds)


def claim(most=40):
    """Claims for healthy and for troubled webhooks."""
    return [
        call
        for is_troubled in (False, True)
        for call in attempts.claim(most, is_troubled=is_troubled)
    ]


def only_attempt():
    return WebhookAttempt.objects.get()


def make_due():
    Webhook.objects.update(held_until=None)
    WebhookAttempt.objects.filter(state="waiting").update(due_at=Now())


def code_counts(facts):
    return Counter(each["code"] for each in facts)
