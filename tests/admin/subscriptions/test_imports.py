"""The console's import: who may, whose channel, and what its requests respond. The browser's side
is in tests/browser/console/test_importing.py."""

import pytest
from auditlog.models import LogEntry
from django.urls import reverse

from subscriptions_app.models import Person, Subscription
from tests.admin.support import signed_in
from tests.api.devices import FID

pytestmark = pytest.mark.django_db

TABLE = f"platform,token,external_id\nandroid,{FID},user-1\nios,none,\n"
NAMES = ("", "_look", "_rows", "_part")


def address(house, name="_part"):
    return reverse(f"admin:subscribers_import{name}", args=[house.channel.pk])


def send(client, house, name="_part", body=TABLE, **parameters):
    query = {"format": "tokens_csv", "line": "2", **parameters}
    return client.post(address(house, name), body, content_type="text/csv", query_params=query)


@pytest.fixture(autouse=True)
def enabled(alice):
    alice.channel.android_enabled = alice.channel.ios_enabled = True
    alice.channel.save()


@pytest.mark.parametrize("role", ["viewer", "sender", "editor"])
def test_only_managers_import(alice, role):
    client = signed_in(alice.members[role])
    for name in NAMES:
        ask = client.post if name else client.get
        assert ask(address(alice, name)).status_code == 403
    for page in (
        reverse("admin:channels_app_channel_change", args=[alice.channel.pk]),
        reverse("admin:subscriptions_app_subscription_changelist"),
    ):
        assert address(alice, "") not in client.get(page, follow=True).content.decode()
    assert not Subscription.objects.exists()


def test_the_channel_of_another_account_is_not_found(alice, bob):
    client = signed_in(alice.members["owner"])
    for name in NAMES:
        ask = client.post if name else client.get
        assert ask(address(bob, name)).status_code == 404
    assert send(client, bob).status_code == 404


def test_the_channel_and_the_list_of_subscribers_lead_to_the_import(alice):
    client = signed_in(alice.members["manager"])
    channel = reverse("admin:channels_app_channel_change", args=[alice.channel.pk])
    subscribers = reverse("admin:subscriptions_app_subscription_changelist")

    assert address(alice, "") in client.get(channel).content.decode()
    # Above the list, and as a button in its place.
    assert client.get(subscribers, follow=True).content.decode().count(address(alice, "")) == 2
    narrowed = f"{subscribers}?channel__id__exact={alice.channel.pk}&state=expired"
    assert client.get(narrowed).content.decode().count(address(alice, "")) == 1


def test_a_part_is_imported_and_recorded(alice):
    manager = alice.members["manager"]
    found = send(signed_in(manager), alice, line="1001").json()
    (refusal,) = found.pop("refusals")
    assert (refusal["line"], refusal["code"]) == (1002, "not_a_token")
    assert found == {
        "created": 1, "updated": 0, "unchanged": 0, "refused": 1, "attributes_dropped": [],
    }  # fmt: skip
    assert Subscription.objects.get().channel == alice.channel
    entry = LogEntry.objects.get(additional_data__note__startswith="Subscribers imported")
    assert (entry.actor, entry.additional_data["channel"]) == (manager, str(alice.channel.pk))
    assert FID not in str(entry.changes) + entry.additional_data["note"]


def test_the_first_rows_are_shown_and_not_stored(alice):
    client = signed_in(alice.members["manager"])
    good, bad = send(client, alice, "_rows").json()["rows"]
    assert (good["line"], good["outcome"], good["external_id"]) == (2, "created", "user-1")
    assert (bad["line"], bad["outcome"], bad["code"]) == (3, "refused", "not_a_token")
    many = "platform,token\n" + "ios,x\n" * 11
    assert send(client, alice, "_rows", many).status_code == 400
    assert not Subscription.objects.exists()


@pytest.mark.parametrize(
    ("name", "body", "parameters", "words"),
    [
        ("_part", 'platform,token\nios,"a"b\n', {"line": "900"}, "Line 900, column 8: After"),
        ("_part", TABLE, {"format": "xlsx"}, "Must be one of"),
        ("_part", TABLE, {"takeover_days": "91"}, "Must be 0 to 90."),
        ("_look", "a,a\n", {"format": ""}, "Line 1, column 2: Two columns"),
        ("_look", "[{}]\n", {"format": ""}, "Line 1, column 1: The file is one JSON array."),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(alice, name, body, parameters, words):
    response = send(signed_in(alice.members["manager"]), alice, name, body, **parameters)
    assert response.status_code == 400
    assert words in response.json()["detail"]
    assert not Subscription.objects.exists()


def test_people_are_guessed_and_shown(alice):
    client, body = signed_in(alice.members["manager"]), '{"external_id": "a", "opted_out": true}\n'
    assert send(client, alice, "_look", body, format="").json()["format"] == "people_ndjson"
    people = {"format": "people_ndjson", "line": "1"}
    (row,) = send(client, alice, "_rows", body, **people).json()["rows"]
    assert (row["outcome"], row["external_id"], row["attributes"]) == ("created", "a", {})
    assert not Person.objects.exists()
    assert send(client, alice, body=body, **people).json()["created"] == 1
    assert Person.objects.get().opted_out_at is not None
