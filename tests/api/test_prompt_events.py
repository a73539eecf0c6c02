"""POST /prompt-events: counts of what visitors do with prompts, and where the owner sees them."""

from datetime import UTC, timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from channels_app.counters import prompt_hours_merge
from channels_app.models import PromptHour
from channels_app.selectors import prompt_figures
from notifications_app import retention
from tests.admin.support import make_house, signed_in
from tests.api.support import NOWHERE, code
from tests.hours import stay_in_one_hour

pytestmark = pytest.mark.django_db


def figures(owner):
    return [
        (each.kind, each.shown, each.accepted, each.refused, each.blocked)
        for each in prompt_figures(owner.channel, days=30)
    ]


def report(owner, kind, *events):
    for event in events:
        response = owner.device("/prompt-events", {"kind": kind, "event": event})
        assert (response.status_code, response.content) == (204, b"")


def test_events_are_counted_by_kind_for_their_channel_alone(alice, bob):
    report(alice, "slide-in", "shown", "shown", "shown", "accepted", "refused")
    report(alice, "bell", "shown", "blocked")
    report(bob, "bell", "shown")

    assert figures(alice) == [("slide-in", 3, 1, 1, 0), ("bell", 1, 0, 0, 1)]
    assert figures(bob) == [("bell", 1, 0, 0, 0)]


def test_a_repeated_event_makes_no_further_row(alice):
    stay_in_one_hour()
    report(alice, "bell", *["shown"] * 20)

    row = PromptHour.objects.get()
    assert (row.shown, row.hour.minute, row.hour.second) == (20, 0, 0)


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({"kind": "pop-up", "event": "shown"}, "kind"),
        ({"kind": "bell", "event": "failed"}, "event"),
        ({"kind": "bell"}, "event"),
        ({"kind": "bell", "event": "shown", "visitor": "42"}, "visitor"),
    ],
)
def test_anything_else_is_refused_and_not_stored(alice, body, attr):
    response = alice.device("/prompt-events", body)

    assert code(response, 400) == "validation_error"
    assert [each["attr"] for each in response.json()["errors"]] == [attr]
    assert not PromptHour.objects.exists()


def test_an_unknown_channel_has_no_counts(client):
    headers = {"X-Channel-ID": str(NOWHERE)}
    body = {"kind": "bell", "event": "shown"}
    response = client.post("/prompt-events", body, "application/json", headers=headers)

    assert code(response, 404) == "channel_not_found"
    assert not PromptHour.objects.exists()


def test_shares_of_past_hours_are_merged_and_the_sums_stay(alice):
    stay_in_one_hour()
    now = timezone.now().astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    for hours in (0, 5):
        for shard in range(4):
            for kind in ("bell", "button"):
                hour = now - timedelta(hours=hours)
                PromptHour.objects.create(
                    channel=alice.channel, hour=hour, kind=kind, shard=shard, shown=shard + 1
                )
    before = figures(alice)

    retention.purge()

    assert figures(alice) == before == [("bell", 20, 0, 0, 0), ("button", 20, 0, 0, 0)]
    assert PromptHour.objects.filter(hour=now).count() == 8
    assert PromptHour.objects.exclude(hour=now).count() == 2
    assert prompt_hours_merge(100) == 0


def test_the_owner_sees_which_prompt_visitors_accept():
    house = make_house("Alice")
    channel = house.channel
    page = signed_in(house.members["viewer"])
    address = reverse("admin:channel_prompt", args=[channel.pk])
    assert "will appear here" in page.get(address).content.decode()
    now = timezone.now()
    PromptHour.objects.create(
        channel=channel, hour=now, kind="bell", shard=0, shown=1200, accepted=300
    )
    PromptHour.objects.create(
        channel=channel, hour=now - timedelta(days=31), kind="button", shard=0, shown=7
    )

    text = page.get(address).content.decode()

    assert '<th scope="row">bell</th><td class="ps-number">1,200</td>' in text
    assert "25.0 %" in text
    assert '<th scope="row">button</th>' not in text
