"""The delivery settings of a channel: over the API and in the console."""

import pytest
from auditlog.models import LogEntry
from django.urls import reverse

from tests.admin.support import make_house, signed_in, submit
from tests.api.support import code, errors

DEFAULTS = {
    "timezone": "UTC",
    "rate_per_minute": None,
    "category_required": False,
    "quiet_hours": None,
    "inbox_days": 0,
    "caps": [],
}
CAPS = [{"limit": 3, "hours": 24}, {"limit": 10, "hours": 168}]
NIGHT = {"from": "22:00", "to": "08:00"}


def call(owner, method, body=None):
    return owner.call(method, f"/channel/{owner.channel.id}/delivery-settings", body)


def read(owner):
    response = call(owner, "GET")
    assert response.status_code == 200, response.content
    return response.json()


def test_a_put_replaces_all_settings_and_each_change_is_audited(alice, bob):
    assert read(alice) == DEFAULTS
    given = {
        "timezone": "europe/berlin",
        "rate_per_minute": 5_000,
        "category_required": True,
        "quiet_hours": NIGHT,
        "inbox_days": 30,
        "caps": CAPS,
    }
    shown = given | {"timezone": "Europe/Berlin"}

    assert call(alice, "PUT", given).json() == shown
    assert call(alice, "PUT", given).json() == read(alice) == shown
    assert call(alice, "PUT", {}).json() == read(alice) == read(bob) == DEFAULTS

    first, last = LogEntry.objects.filter(object_pk=str(alice.channel.pk), action=1).order_by("pk")
    assert first.changes == {
        "timezone": ["UTC", "Europe/Berlin"],
        "rate_per_minute": [None, 5_000],
        "category_required": [False, True],
        "quiet_hours": [None, NIGHT],
        "inbox_days": [0, 30],
        "caps": [None, CAPS],
    }
    assert last.changes["timezone"] == ["Europe/Berlin", "UTC"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"timezone": "Mars/Olympus"}, ("timezone", "not_a_timezone")),
        ({"timezone": 1}, ("timezone", "not_a_string")),
        ({"timezone": ""}, ("timezone", "blank")),
        ({"category_required": "yes"}, ("category_required", "not_a_boolean")),
        ({"quiet_hours": {"from": "22:00"}}, ("quiet_hours.to", "required")),
        ({"quiet_hours": {"from": "9", "to": "10:00"}}, ("quiet_hours.from", "not_a_local_time")),
        ({"quiet_hours": {"from": "09:00", "to": "09:00"}}, ("quiet_hours.to", "out_of_range")),
        ({"inbox_days": 31}, ("inbox_days", "out_of_range")),
        ({"caps": {"limit": 3, "hours": 24}}, ("caps", "not_a_list")),
        ({"caps": CAPS[:1] * 3}, ("caps", "too_many")),
        ({"caps": [{"limit": 3}]}, ("caps.0.hours", "required")),
        ({"caps": [{"limit": 0, "hours": 24}]}, ("caps.0.limit", "out_of_range")),
        ({"caps": [{"limit": 51, "hours": 24}]}, ("caps.0.limit", "out_of_range")),
        ({"caps": [{"limit": 3, "hours": 721}]}, ("caps.0.hours", "out_of_range")),
        ({"caps": [{"limit": 3.5, "hours": 24}]}, ("caps.0.limit", "not_a_number")),
        ({"zone": "UTC"}, ("zone", "unknown_field")),
    ],
)
def test_settings_that_cannot_be_used_are_refused(alice, body, expected):
    assert errors(call(alice, "PUT", body)) == [expected]
    assert read(alice) == DEFAULTS


def test_a_key_of_another_channel_gets_404(alice, bob):
    path = f"/channel/{alice.channel.id}/delivery-settings"
    for method in ("GET", "PUT"):
        assert code(bob.call(method, path, {"category_required": True}), 404) == "channel_not_found"
    assert read(alice) == DEFAULTS


def test_managers_change_them_in_the_console(db):
    house = make_house("Alice")
    page = reverse("admin:channel_delivery", args=[house.channel.pk])
    form = {"timezone": "America/Lima", "rate_per_minute": "60", "category_required": "on"}
    form["inbox_days"] = "7"

    shown = signed_in(house.members["viewer"]).get(page).content.decode()
    assert "<option selected>UTC</option>" in shown
    assert shown.count("America/Lima") == 1  # of 600 zones
    assert signed_in(house.members["editor"]).post(page, form).status_code == 403
    manager = signed_in(house.members["manager"])
    assert submit(manager, page, form | {"timezone": "Mars/Olympus"}).status_code == 400
    assert submit(manager, page, form).status_code == 302

    caps = {"cap_limit_2": "3", "cap_hours_2": "24"}
    assert submit(manager, page, form | {"cap_limit_1": "3"}).status_code == 400
    assert submit(manager, page, form | caps).status_code == 302
    house.channel.refresh_from_db()
    assert house.channel.caps == CAPS[:1]
    shown = manager.get(page).content.decode()
    assert 'name="cap_limit_1" value="3"' in shown
    assert submit(manager, page, form).status_code == 302

    house.channel.refresh_from_db()
    assert house.channel.caps is None
    assert (house.channel.timezone, house.channel.category_required) == ("America/Lima", True)
    assert (house.channel.rate_per_minute, house.channel.inbox_days) == (60, 7)
