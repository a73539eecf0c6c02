"""One person over the API: read, change, opt out, export, erase."""

import hashlib
import json
from datetime import timedelta

import pytest
from auditlog.models import LogEntry
from django.utils import timezone

from channels_app import audit
from channels_app.selectors import channel_totals
from notifications_app.models import AutomationContact, AutomationEntry, Contact, Once
from pushsvc.common.ids import uuid7
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.models import Person, Subscription, Tag
from tests.api.persons import USER, change, is_active, path, read, row, sign_in
from tests.api.support import NOWHERE, code, errors
from tests.factories import browser, make_automation, make_schedule, phone
from tests.pipeline.support import in_threads

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


# --- read and change ------------------------------------------------------------------------------


def test_a_person_reads_back_with_all_devices(shop):
    first = sign_in(shop, browser("https://fcm.googleapis.com/1", attributes={"plan": "pro"}))
    shop.subscribe(first | {"language": "de-AT", "timezone": "Europe/Berlin", "tags": ["team-7"]})
    sign_in(shop, phone("ios", "a1" * 32))

    person = read(shop)

    assert list(person) == ["external_id", "created_at", "opted_out", "choices", "devices"]
    assert (person["external_id"], person["opted_out"], person["choices"]) == (USER, False, {})
    browser_, iphone = person["devices"]
    assert browser_ == {
        "subscription_id": str(row(first).id),
        "platform": "web",
        "active": True,
        "created_at": browser_["created_at"],
        "last_seen_at": browser_["last_seen_at"],
        "timezone": "Europe/Berlin",
        "language": "de-AT",
        "attributes": {"plan": "pro"},
        "tags": ["team-7"],
    }
    assert (iphone["platform"], iphone["active"], iphone["tags"]) == ("ios", True, [])


def test_an_external_id_is_found_as_it_was_written(shop):
    sign_in(shop, browser(), "anna+1@example.com/ä b")
    address = path(shop, "anna%2B1%40example.com%2F%C3%A4%20b")
    assert shop.call("GET", address).json()["external_id"] == "anna+1@example.com/ä b"


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_somebody_unknown_is_not_found(shop, method):
    body = {} if method == "PATCH" else None
    for external_id in ("nobody", "x" * 500, "%00"):
        assert code(shop.call(method, path(shop, external_id), body), 404) == "not_found"
    address = f"/channel/{shop.channel.id}/person"
    assert errors(shop.call(method, address, body)) == [("external_id", "required")]


def test_attributes_and_tags_change_on_every_device(shop):
    one = sign_in(shop, browser("https://fcm.googleapis.com/1", attributes={"plan": "a", "old": 1}))
    two = sign_in(shop, browser("https://fcm.googleapis.com/2", tags=["match-3"]))
    other = browser("https://fcm.googleapis.com/3")
    shop.subscribe(other)

    changed = {"attributes": {"plan": "pro", "old": None}, "add_tags": ["team-7"]}
    person = change(shop, **changed, remove_tags=["match-3"])

    assert [each["attributes"] for each in person["devices"]] == [{"plan": "pro"}] * 2
    assert [each["tags"] for each in person["devices"]] == [["team-7"]] * 2
    assert row(other).attributes == {}
    assert set(Tag.objects.values_list("subscription_id", flat=True)) == {row(one).id, row(two).id}


def test_a_change_is_made_as_a_whole_or_not_at_all(shop):
    ten = {f"a{n}": n for n in range(10)}
    sign_in(shop, browser("https://fcm.googleapis.com/1"))
    sign_in(shop, browser("https://fcm.googleapis.com/2", attributes=ten))
    before = read(shop)

    fields = {"choices": {"offers": True}, "attributes": {"plan": "pro"}, "opted_out": True}
    assert errors(shop.call("PATCH", path(shop), fields)) == [("attributes", "too_many")]

    assert read(shop) == before
    ten.pop("a0")
    changed = change(shop, attributes={"plan": "pro", "a0": None})
    assert changed["devices"][1]["attributes"] == ten | {"plan": "pro"}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"opted_out": 1}, ("opted_out", "not_a_boolean")),
        ({"choices": {"sports": True}}, ("choices.sports", "category_unknown")),
        ({"attributes": {"a": True}}, ("attributes.a", "not_a_string_or_number")),
        ({"add_tags": ["no blanks"]}, ("add_tags.0", "not_a_tag")),
        ({"external_id": "x"}, ("external_id", "unknown_field")),
    ],
)
def test_an_error_is_named(shop, fields, error):
    sign_in(shop, browser())
    assert errors(shop.call("PATCH", path(shop), fields)) == [error]


def test_the_audit_log_names_a_person_only_by_a_hash_that_needs_the_services_key(shop, settings):
    """Ids can be guessed, and whoever reads the log could try each guess on a plain hash."""
    sign_in(shop, browser())
    change(shop, opted_out=True, attributes={"secret": "sesame"})
    shop.call("GET", path(shop, part="/export"))
    shop.call("DELETE", path(shop))

    entries = LogEntry.objects.filter(content_type__model="person").order_by("pk")

    assert [each.action for each in entries] == [1, 3, 2]
    text = json.dumps(
        [[e.object_repr, e.changes, e.additional_data, e.object_pk] for e in entries], default=str
    )
    assert text.count(audit.id_hash(USER)) == 3
    assert hashlib.sha256(USER.encode()).hexdigest() not in text
    assert USER not in text and "sesame" not in text  # noqa: PT018 (one promise)
    settings.SECRET_KEY = "another"
    assert audit.id_hash(USER) not in text
    assert set(entries[0].changes) == {"opted_out_at"}


# --- opting out -----------------------------------------------------------------------------------


def test_who_opts_out_gets_nothing_on_any_device(shop):
    devices = [sign_in(shop, browser(f"https://fcm.googleapis.com/{n}")) for n in range(2)]

    person = change(shop, opted_out=True)

    assert person["opted_out"] is True
    assert [each["active"] for each in person["devices"]] == [False, False]
    assert {row(each).expired_code for each in devices} == {"opted_out"}
    assert channel_totals(shop.channel.id).web_subscribers == 0
    assert change(shop, opted_out=True)["opted_out"] is True


def test_a_device_that_registers_after_opting_out_is_stored_and_gets_nothing(shop):
    known = sign_in(shop, browser("https://fcm.googleapis.com/1"))
    change(shop, opted_out=True)
    new = browser("https://fcm.googleapis.com/2")

    for device in (known, known | {"external_id": USER}, new | {"external_id": USER}):
        response = shop.subscribe(device)
        assert response.status_code == 200
        assert not is_active(device)
        assert row(device).expired_code == "opted_out"
    assert channel_totals(shop.channel.id).web_subscribers == 0


def test_devices_come_back_when_they_register_after_opting_in(shop):
    device = sign_in(shop, browser())
    change(shop, opted_out=True)

    assert change(shop, opted_out=False)["opted_out"] is False
    assert not is_active(device)
    shop.subscribe(device)

    assert is_active(device)
    assert read(shop)["devices"][0]["active"] is True


def test_a_device_of_somebody_who_opted_out_works_again_after_signing_out(shop):
    device = sign_in(shop, browser())
    change(shop, opted_out=True)
    shop.subscribe(device | {"external_id": None})
    assert is_active(device)


def test_unsubscribing_ends_one_device(shop):
    one, two = (sign_in(shop, browser(f"https://fcm.googleapis.com/{n}")) for n in range(2))
    shop.device("/unsubscribe", {"endpoint": one["endpoint"]})
    assert (is_active(one), is_active(two)) == (False, True)
    assert read(shop)["opted_out"] is False


@pytest.mark.django_db(transaction=True)
def test_nobody_who_opts_out_has_an_active_device_whoever_links_meanwhile(shop):
    devices = [browser(f"https://fcm.googleapis.com/{n}") for n in range(6)]
    sign_in(shop, devices[0])
    in_threads(
        lambda: change(shop, opted_out=True),
        *(lambda device=device: sign_in(shop, device) for device in devices),
    )
    assert not any(is_active(device) for device in devices)
    assert Person.objects.get().active_devices == 0


# --- export and erasure ---------------------------------------------------------------------------


def test_an_export_has_everything_that_is_stored(shop):
    device = sign_in(shop, browser(attributes={"plan": "pro"}, tags=["team-7"]))
    change(shop, choices={"offers": True})

    response = shop.call("GET", path(shop, part="/export"))

    assert response.headers["Cache-Control"] == "no-store"
    known = response.json()
    assert (known["external_id"], known["choices"]) == (USER, {"offers": True})
    (stored,) = known["devices"]
    assert stored["address"] == device["endpoint"]
    assert (stored["p256dh"], stored["auth"]) == (device["keys"]["p256dh"], device["keys"]["auth"])
    assert (stored["attributes"], stored["tags"]) == ({"plan": "pro"}, ["team-7"])


def test_an_export_has_what_contacted_the_person(shop):
    device = row(sign_in(shop, browser()))
    schedule, automation = make_schedule(shop.channel), make_automation(shop.channel)
    now, send, key = timezone.now(), uuid7(), device.person_id
    of = {"expires_on": now.date() + timedelta(days=2)}
    Contact.objects.create(
        key=key, channel_id=shop.channel.pk, times=[now - HOUR, now], sends=[uuid7(), send], **of
    )
    Once.objects.create(schedule=schedule, key=key, send=send, at=now)
    AutomationContact.objects.create(automation=automation, key=device.pk, at=now, **of)
    AutomationEntry.objects.create(
        automation=automation, subscription_id=device.pk, due_at=now + HOUR
    )

    known = shop.call("GET", path(shop, part="/export")).json()

    at, later = (format_timestamp(each) for each in (now, now + HOUR))
    by_automation = {"automation_id": str(automation.pk)}
    assert len(known["contacts"]) == 2
    assert known["contacts"][0] == {"notification_id": str(send), "at": at}
    assert known["schedules"] == [known["contacts"][0] | {"schedule_id": str(schedule.pk)}]
    assert known["automations"] == [by_automation | {"at": at}]
    assert known["waiting"] == [by_automation | {"subscription_id": str(device.pk), "at": later}]


def test_an_erased_person_is_gone_with_all_devices(shop):
    for n in range(3):
        sign_in(shop, browser(f"https://fcm.googleapis.com/{n}", tags=["team-7"]))
    stays = sign_in(shop, browser("https://fcm.googleapis.com/other"), "another")
    shop.device("/unsubscribe", {"endpoint": "https://fcm.googleapis.com/0"})

    response = shop.call("DELETE", path(shop))

    assert (response.status_code, response.json()) == (200, {"erased": {"devices": 3}})
    assert code(shop.call("DELETE", path(shop)), 404) == "not_found"
    assert Subscription.objects.get().pk == row(stays).pk
    assert not Tag.objects.exists()
    totals = channel_totals(shop.channel.id)
    assert (totals.web_subscribers, totals.people, totals.stored_subscriptions) == (1, 1, 1)


def test_somebody_erased_may_come_back_as_somebody_new(shop):
    device = sign_in(shop, browser())
    change(shop, opted_out=True, choices={"offers": True})
    shop.call("DELETE", path(shop))

    sign_in(shop, device)

    assert is_active(device)
    assert read(shop)["choices"] == {}


def test_an_id_of_another_channel_is_erased_by_nobody(shop, bob):
    sign_in(shop, browser())
    assert code(bob.call("DELETE", path(bob)), 404) == "not_found"
    assert code(bob.call("DELETE", f"/channel/{NOWHERE}/person?external_id={USER}"), 404)
    assert len(read(shop)["devices"]) == 1


@pytest.mark.django_db(transaction=True)
def test_an_erasure_leaves_none_of_the_devices_that_are_linked_meanwhile(shop):
    """Whoever is linked after it belongs to somebody new with the same id."""
    devices = [browser(f"https://fcm.googleapis.com/{n}") for n in range(5)]
    sign_in(shop, devices[0])
    in_threads(
        lambda: shop.call("DELETE", path(shop)),
        *(lambda device=device: sign_in(shop, device) for device in devices[1:]),
    )
    left = Subscription.objects.filter(person__isnull=False).count()
    assert left == Subscription.objects.count()
    assert sum(each.active_devices for each in Person.objects.all()) == left
