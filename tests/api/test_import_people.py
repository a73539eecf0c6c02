"""The format `people_ndjson`: opt-outs and choices move, also of people without a device."""

import json
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest
from auditlog.models import LogEntry
from django.core.management import call_command

from subscriptions_app.categories.consent import refusing
from subscriptions_app.categories.services import category_archive
from subscriptions_app.importing import running
from subscriptions_app.importing.services import subscriptions_import
from subscriptions_app.models import OPTED_OUT, Person, Subscription
from subscriptions_app.people.linking import devices_link
from tests.api.support import owner_of
from tests.api.test_import_request import post
from tests.api.test_import_rows import android, stored
from tests.factories import make_category, make_channel, make_person
from tests.pipeline.support import (
    assert_people_exact,
    closing_connection,
    until,
    waiting_sessions,
    waits_for,
)

pytestmark = pytest.mark.django_db

OUT = {"external_id": "out", "choices": {}, "opted_out": True}
CHOSEN = {"external_id": "ä", "choices": {"offers": False, "old": False}, "opted_out": False}


@pytest.fixture
def alice(db):
    channel = make_channel(android_enabled=True, ios_enabled=True)
    for key in ("offers", "old"):
        make_category(channel, key, default=True)
    category_archive(channel_id=channel.pk, key="old")
    return owner_of(channel)


def bring(owner, *rows, **parameters):
    body = "\n".join(json.dumps(row) for row in rows)
    options = {"kind": "application/x-ndjson", "format": "people_ndjson", **parameters}
    answer = post(owner, body, **options)
    assert answer.status_code == 200, answer.content
    return answer.json()


def counts(found):
    return {name: found[name] for name in ("created", "updated", "unchanged", "refused")}


def people():
    rows = Person.objects.order_by("external_id")
    return {row.external_id: (row.choices, row.opted_out_at is not None) for row in rows}


def test_opt_outs_and_choices_are_kept_until_a_device_comes(alice):
    assert bring(alice, OUT, CHOSEN)["created"] == 2
    rows = [android(0, external_id="out"), android(1, external_id="ä")]
    subscriptions_import(channel=alice.channel, rows=rows)

    assert stored(alice.channel, 0).expired_code == OPTED_OUT
    one = stored(alice.channel, 1)
    assert one.expired_at is None
    for key in ("offers", "old"):
        assert refusing(alice.channel.pk, key, [one.pk]) == {one.pk}
    assert_people_exact(alice.channel)


def test_importing_twice_is_importing_once(alice):
    bring(alice, OUT, CHOSEN)
    before = list(Person.objects.order_by("id").values())
    assert counts(bring(alice, OUT, CHOSEN)) == {
        "created": 0, "updated": 0, "unchanged": 2, "refused": 0,
    }  # fmt: skip
    assert list(Person.objects.order_by("id").values()) == before


def test_what_people_said_here_stays(alice):
    """A row adds an opt-out and missing choices. It opts nobody in."""
    make_person(alice.channel, "in")
    Person.objects.update(choices={"offers": True})
    bring(alice, OUT)
    found = bring(
        alice,
        {"external_id": "in", "choices": {"offers": False, "old": False}},
        {"external_id": "out", "choices": {}, "opted_out": False},
        {"external_id": "nobody", "choices": {}, "opted_out": False},
    )
    assert counts(found) == {"created": 0, "updated": 1, "unchanged": 2, "refused": 0}
    assert people() == {
        "in": ({"offers": True, "old": False}, False),
        "out": ({}, True),
    }


def test_what_a_device_refused_here_stays_refused(alice):
    """The choice of the person counts before that of the device."""
    rows = [android(0, external_id="ada"), android(1, external_id="bob")]
    subscriptions_import(channel=alice.channel, rows=rows)
    Subscription.objects.filter(person__external_id="ada").update(choices={"offers": False})
    wanted = [{"external_id": name, "choices": {"offers": True}} for name in ("ada", "bob")]

    assert counts(bring(alice, *wanted)) == {
        "created": 0, "updated": 1, "unchanged": 1, "refused": 0,
    }  # fmt: skip

    ids = [stored(alice.channel, number).pk for number in (0, 1)]
    assert refusing(alice.channel.pk, "offers", ids) == {ids[0]}
    assert bring(alice, *wanted)["unchanged"] == 2


@pytest.mark.django_db(transaction=True)
def test_what_a_device_refuses_during_the_import_stays_refused(alice):
    subscriptions_import(channel=alice.channel, rows=[android(0, external_id="ada")])

    def refuse():
        Subscription.objects.update(choices={"offers": False})

    wanted = {"external_id": "ada", "choices": {"offers": True}}
    with waits_for(refuse, lambda: bring(alice, wanted)):
        assert people() == {"ada": ({}, False)}
    assert people() == {"ada": ({}, False)}


@pytest.mark.django_db(transaction=True)
def test_an_import_and_a_device_that_gets_one_of_its_new_people_do_not_block_each_other(alice):
    rows = [android(number, external_id="ada") for number in (0, 1)]
    subscriptions_import(channel=alice.channel, rows=rows)
    first, second = Subscription.objects.order_by("pk")
    wanted = [{"external_id": name, "choices": {"offers": True}} for name in ("ada", "bob")]

    def link():
        devices_link(channel=alice.channel, links={second.pk: "bob"})

    with ThreadPoolExecutor(1) as pool:
        with waits_for(Subscription.objects.filter(pk=first.pk), lambda: bring(alice, *wanted)):
            linking = pool.submit(closing_connection(link))
            until(lambda: linking.done() or waiting_sessions() == 2)
        linking.result(timeout=60)

    assert people() == {"ada": ({"offers": True}, False), "bob": ({"offers": True}, False)}
    assert_people_exact(alice.channel)


def test_an_opt_out_ends_the_devices(alice):
    rows = [android(0, external_id="out"), android(1, external_id="other")]
    subscriptions_import(channel=alice.channel, rows=rows)
    assert bring(alice, OUT)["updated"] == 1
    assert stored(alice.channel, 0).expired_code == OPTED_OUT
    assert stored(alice.channel, 1).expired_at is None
    assert_people_exact(alice.channel)


def test_rows_that_are_wrong_are_refused(alice):
    found = bring(
        alice,
        {"choices": {}},
        {"external_id": "a", "choices": {"none": True}},
        {"external_id": "a", "opted_out": "yes"},
        OUT,
    )
    assert [(each["line"], each["code"], each["attr"]) for each in found["refusals"]] == [
        (1, "required", "external_id"),
        (2, "category_unknown", "choices.none"),
        (3, "not_a_boolean", "opted_out"),
    ]
    assert found["created"] == 1


def test_a_channel_gets_no_more_people_than_it_may_have_subscribers(alice):
    alice.channel.max_subscriptions = 2
    alice.channel.save()
    make_person(alice.channel, "known")
    found = bring(alice, CHOSEN, OUT, {"external_id": "known", "opted_out": True})
    assert counts(found) == {"created": 1, "updated": 1, "unchanged": 0, "refused": 1}
    assert found["refusals"][0]["code"] == "people_full"
    assert bring(alice, OUT)["refusals"][0]["code"] == "people_full"


def test_an_erasure_deletes_them(alice):
    bring(alice, OUT)
    path = f"/channel/{alice.channel.pk}/person?external_id=out"
    assert alice.call("DELETE", path).status_code == 200
    assert people() == {}


def test_a_dry_run_stores_nothing(alice):
    assert bring(alice, OUT, CHOSEN, OUT, dry_run="true")["created"] == 2
    assert people() == {}
    assert not LogEntry.objects.filter(additional_data__note__icontains="imported").exists()


@pytest.mark.parametrize("most", [2, 3])
def test_a_dry_run_knows_the_people_before(alice, most, monkeypatch):
    """People who come again in other slices, and a channel that has room for two or three."""
    monkeypatch.setattr(running, "SLICE", 2)
    alice.channel.max_subscriptions = most
    alice.channel.save()
    rows = [OUT, CHOSEN, OUT, CHOSEN | {"opted_out": True}, CHOSEN, {**OUT, "external_id": "new"}]
    rehearsed = bring(alice, *rows, dry_run="true")
    assert rehearsed == bring(alice, *rows)
    assert counts(rehearsed) == {
        "created": most, "updated": 1, "unchanged": 2, "refused": 3 - most,
    }  # fmt: skip


def test_the_command_imports_them_into_its_channel_alone(alice, tmp_path):
    bob = make_channel("Bob's")
    make_person(bob, "out")
    file = tmp_path / "people.ndjson"
    file.write_text(json.dumps(OUT) + "\n")
    out = StringIO()
    given = ["--format=people_ndjson", "--json"]
    call_command("import_subscribers", str(alice.channel.pk), str(file), *given, stdout=out)
    assert json.loads(out.getvalue())["created"] == 1
    assert Person.objects.get(channel=bob).opted_out_at is None
    (entry,) = LogEntry.objects.filter(additional_data__note__icontains="imported")
    assert entry.additional_data["note"] == "People imported: 1 created, 0 updated."
    assert not Subscription.objects.exists()
