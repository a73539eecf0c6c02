"""The rate of a send over the API: its values, its default, its dry run, and its edit."""

import pytest
from django.urls import reverse

from channels_app.models import Channel
from channels_app.selectors import recent_forget
from notifications_app.models import Notification
from tests.admin.notifications.composing import CHECK, review, send, written
from tests.admin.support import make_house, signed_in
from tests.api.support import accepted, code, errors
from tests.factories import add_crowd

pytestmark = pytest.mark.django_db
LATER = "2999-01-01T00:00:00Z"


def details(owner, notification):
    response = owner.call("GET", f"/notification/{notification.pk}/details")
    assert response.status_code == 200, response.content
    return response.json()


def set_default(owner, rate):
    path = f"/channel/{owner.channel.id}/delivery-settings"
    assert owner.call("PUT", path, {"rate_per_minute": rate}).json()["rate_per_minute"] == rate
    recent_forget()


@pytest.mark.parametrize(
    ("of_channel", "of_send", "shown"),
    [(None, None, None), (None, 60, 60), (100, None, 100), (100, 60, 60), (100, 0, None)],
)
def test_details_have_the_rate_that_counts(alice, of_channel, of_send, shown):
    set_default(alice, of_channel)
    sent = accepted(alice, {"body": "x", "rate_per_minute": of_send, "scheduled_at": LATER})
    assert details(alice, sent)["rate_per_minute"] == shown


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (-1, "out_of_range"),
        (600_001, "out_of_range"),
        ("60", "not_a_number"),
        (1.5, "not_a_number"),
    ],
)
def test_rates_that_cannot_be_kept_are_refused(alice, rate, expected):
    error = [("rate_per_minute", expected)]
    assert errors(alice.send({"body": "x", "rate_per_minute": rate})) == error
    path = f"/channel/{alice.channel.id}/delivery-settings"
    assert errors(alice.call("PUT", path, {"rate_per_minute": rate})) == error
    assert errors(alice.call("PUT", path, {"rate_per_minute": 0})) == [
        ("rate_per_minute", "out_of_range")
    ]


def test_a_dry_run_tells_how_long_it_takes(alice):
    add_crowd(alice.channel, 130)

    def takes(**fields):
        answer = alice.send({"body": "x", "dry_run": True} | fields).json()
        return answer.get("takes_at_least_seconds")

    assert takes() is None
    assert takes(rate_per_minute=60) == 118  # the first ten at once, and two seconds ahead
    assert takes(rate_per_minute=600_000) == 0
    set_default(alice, 60)
    assert takes() == 118
    assert takes(rate_per_minute=0) is None


def test_an_edit_changes_the_rate(alice):
    sent = accepted(alice, {"body": "x", "rate_per_minute": 60, "scheduled_at": LATER})
    path = f"/notification/{sent.pk}"
    for given, shown in ((600, 600), (0, None), (None, None)):
        assert alice.call("PATCH", path, {"rate_per_minute": given}).status_code == 200
        assert details(alice, sent)["rate_per_minute"] == shown
    Notification.objects.filter(pk=sent.pk).update(status="processing")
    assert code(alice.call("PATCH", path, {"rate_per_minute": 60}), 409) == "not_editable"


def test_the_console_tells_how_long_a_send_takes_and_who_is_not_reached():
    house = make_house("Alice")
    add_crowd(house.channel, 1_300)
    Channel.objects.update(rate_per_minute=100)
    client = signed_in(house.members["sender"])
    form = written(house)

    def paced(**fields):
        answer = client.post(CHECK, form | fields).json()
        return answer["pace"], answer["unreached"]

    assert paced() == ("About 100 a minute. 1,300 take about 13 min.", "")
    assert paced(rate_per_minute="0") == ("", "")
    short = {"rate_per_minute": "10", "ttl_number": "1", "ttl_unit": "hours"}
    assert paced(**short)[1] == (
        "At 10 a minute, about 700 of 1,300 are not reached within 1 h, and expire."
    )
    assert "are not reached" in review(client, form | short).content.decode()
    errors = client.post(CHECK, form | {"rate_per_minute": "fast"}).json()["errors"]
    assert errors["rate_per_minute"] == ["Enter a whole number."]

    sent = send(client, form | {"rate_per_minute": "10"})
    assert sent.status_code == 302
    found = Notification.objects.get()
    assert found.rate_per_minute == 10
    page = reverse("admin:notifications_app_notification_change", args=[found.pk])
    assert "At most 10" in client.get(page).content.decode()
