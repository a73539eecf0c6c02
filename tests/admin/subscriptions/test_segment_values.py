"""The values that the segment builder suggests: counted in the channel, and in no other."""

import pytest
from django.urls import reverse

from subscriptions_app.audiences import values
from subscriptions_app.models import Subscription
from tests.admin.support import signed_in
from tests.factories import add_each, add_subscriptions, add_tags

pytestmark = pytest.mark.django_db

ZONES = ("America/New_York", "Europe/Berlin", "Europe/Busingen", "UTC")


@pytest.fixture
def ask(alice):
    client = signed_in(alice.members["viewer"])

    def ask(subject, house=alice, **query):
        path = reverse("admin:segment_values", args=[house.channel.pk])
        return client.get(path, {"subject": subject, **query})

    return ask


@pytest.fixture
def devices(alice, bob):
    own = [
        {"attributes": {"plan": "pro", "app_version": "2.10"}, "timezone": "Europe/Berlin"},
        {"attributes": {"plan": "pro", "size": 5}, "timezone": "Europe/Busingen"},
        {"attributes": {"plan": "free"}, "timezone": "America/New_York", "language": "en"},
        {"attributes": {"plan": ""}, "timezone": "UTC", "platform": "ios"},
    ]
    add_each(alice.channel, own)
    add_each(bob.channel, [{"attributes": {"plan": "secret"}}])
    add_tags(Subscription.objects.filter(channel=alice.channel)[:3], "team-7")
    add_tags(Subscription.objects.filter(channel=alice.channel)[:1], "team-8")
    add_tags(add_subscriptions(bob.channel, 1), "secret")


@pytest.mark.parametrize(
    ("subject", "name", "found"),
    [
        ("attribute", "plan", [("pro", 2), ("free", 1)]),
        ("attribute", "size", [("5", 1)]),
        ("attribute", "nothing", []),
        ("attribute", "\x00", []),
        ("app_version", "", [("2.10", 1)]),
        ("country", "", [("DE", 2), ("US", 1)]),
        ("language", "", [("en", 1)]),
        ("timezone", "", [(each, 1) for each in ZONES]),
        ("tag", "", [("team-7", 3), ("team-8", 1)]),
        ("platform", "", []),
        ("created_at; --", "", []),
    ],
)  # fmt: skip
def test_values_are_counted_in_the_channel(ask, devices, subject, name, found):
    answer = ask(subject, name=name).json()
    assert [(each["value"], each["devices"]) for each in answer["values"]] == found
    assert not answer["is_estimated"]


def test_expired_devices_do_not_count(ask, alice, devices):
    Subscription.objects.filter(attributes__plan="free").update(expired_at="2026-01-01T00:00Z")
    assert ask("attribute", name="plan").json()["values"] == [{"value": "pro", "devices": 2}]


def test_the_counts_of_a_large_channel_are_estimated_from_a_sample(ask, alice, monkeypatch):
    monkeypatch.setattr(values, "VALUE_ROWS", 100)
    add_each(alice.channel, [{"attributes": {"plan": "pro"}}] * 400)
    assert ask("attribute", name="plan").json() == {
        "values": [{"value": "pro", "devices": 400}],
        "is_estimated": True,
    }


def test_the_channel_of_another_account_is_not_found(ask, bob, devices):
    assert ask("attribute", bob, name="plan").status_code == 404
