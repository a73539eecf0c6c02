"""Names and labels of sends: what is accepted, and where they are shown."""

import csv
import json
from io import StringIO

import pytest
from auditlog.models import LogEntry
from django.urls import reverse

from notifications_app.models import Notification
from tests.admin.notifications.composing import CHECK, send, written
from tests.admin.support import make_house, signed_in
from tests.api.support import accepted, errors
from tests.factories import subscribe_browsers
from tests.pipeline.support import deliver, plan

pytestmark = pytest.mark.django_db
LATER = "2999-01-01T00:00:00Z"
NAMED = {"name": "Sale, reminder", "labels": ["spring-sale", "Newsletter A"]}


def details(owner, notification):
    found = owner.call("GET", f"/notification/{notification.pk}/details").json()
    return {name: found[name] for name in NAMED}


def listed(owner, **query):
    path = f"/notifications/{owner.channel.pk}"
    return [
        each["notification_id"]
        for each in owner.client.get(
            path, query, headers={"Authorization": f"Key {owner.key}"}
        ).json()
    ]


def test_a_send_has_a_name_and_labels(alice):
    plain = accepted(alice, {"body": "x"})
    sent = accepted(alice, {"body": "x", "title": "{{ first_name }}"} | NAMED)

    assert details(alice, plain) == {"name": "", "labels": []}
    assert details(alice, sent) == NAMED
    assert Notification.objects.get(pk=plain.pk).labels is None
    twice = accepted(alice, {"body": "x", "labels": ["a", "b", "a"]})
    assert details(alice, twice)["labels"] == ["a", "b"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": "x" * 101}, ("name", "too_long")),
        ({"name": " \u200b"}, ("name", "blank")),
        ({"labels": list("abcdef")}, ("labels", "too_many")),
        ({"labels": "sale"}, ("labels", "not_a_list")),
        ({"labels": [""]}, ("labels.0", "blank")),
        ({"labels": ["a", "x" * 51]}, ("labels.1", "too_long")),
        ({"labels": ["a,b"]}, ("labels.0", "malformed")),
        ({"labels": [" a"]}, ("labels.0", "malformed")),
        ({"labels": ["a\nb"]}, ("labels.0", "malformed")),
    ],
)
def test_names_and_labels_that_no_list_could_show_are_refused(alice, fields, expected):
    assert errors(alice.send({"body": "x"} | fields)) == [expected]


def test_the_list_is_filtered_by_label(alice, bob):
    first = accepted(alice, {"body": "x"} | NAMED)
    accepted(alice, {"body": "x", "labels": ["spring"]})
    second = accepted(alice, {"body": "x", "labels": ["spring-sale"]})
    accepted(bob, {"body": "x"} | NAMED)

    assert listed(alice, label="spring-sale") == [str(second.pk), str(first.pk)]
    assert listed(alice, label="Newsletter A") == [str(first.pk)]
    assert listed(alice, label="spring-sale", status="sent") == []
    assert listed(alice, label="nothing") == []


def test_an_edit_changes_them(alice):
    sent = accepted(alice, {"body": "x", "scheduled_at": LATER} | NAMED)
    path = f"/notification/{sent.pk}"

    assert alice.call("PATCH", path, {"body": "y"}).status_code == 200
    assert details(alice, sent) == NAMED
    changes = {"name": "Sale", "labels": ["spring-sale"]}
    assert alice.call("PATCH", path, changes).status_code == 200
    assert details(alice, sent) == changes
    assert alice.call("PATCH", path, {"name": None, "labels": None}).status_code == 200
    assert details(alice, sent) == {"name": "", "labels": []}


def test_no_device_gets_them(sandbox, alice):
    ((device, _),) = subscribe_browsers(sandbox, alice.channel, 1)

    accepted(alice, {"body": "x"} | NAMED)
    plan()
    deliver()

    (receipt,) = device.receipts
    assert json.loads(receipt.plaintext)["body"] == "x"
    assert not any(text in receipt.plaintext for text in (b"Sale", b"sale", b"Newsletter"))


def test_the_console_shows_the_name_in_place_of_the_title():
    house = make_house("Alice")
    client = signed_in(house.members["sender"])
    form = written(house) | {
        "send_name": " Sale, reminder ",
        "labels": "spring-sale, Newsletter A,",
    }

    send(client, form | {"title": "{{ first_name }}"})

    sent = Notification.objects.get()
    assert (sent.name, sent.labels) == ("Sale, reminder", NAMED["labels"])
    page = reverse("admin:notifications_app_notification_changelist")
    found = client.get(page, {"label": "spring-sale"}).text
    assert "Sale, reminder" in found
    assert "Newsletter A" in found
    assert "{{ first_name }}" not in found
    assert "Sale, reminder" not in client.get(page, {"label": "other"}).text
    assert "Sale, reminder" in client.get(page, {"q": "reminder"}).text
    own = reverse("admin:notifications_app_notification_change", args=[sent.pk])
    assert "?label=spring-sale" in client.get(own).text
    table = client.get(reverse("admin:notification_export")).getvalue().decode()
    (row,) = csv.DictReader(StringIO(table))
    assert (row["name"], row["labels"]) == ("Sale, reminder", "spring-sale, Newsletter A")
    assert LogEntry.objects.filter(object_pk=str(sent.pk)).first().object_repr == "Sale, reminder"


def test_the_form_shows_the_errors_of_labels():
    house = make_house("Alice")
    client = signed_in(house.members["sender"])

    found = client.post(CHECK, written(house) | {"labels": "a,b,c,d,e,f"}).json()["errors"]

    assert list(found) == ["labels"]
