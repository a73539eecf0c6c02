"""Imported rows: what they store, what they leave alone, and that they count as registrations."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from auditlog.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext

from channels_app.selectors import channel_totals
from pushsvc.common.endpoints import TOKEN_SERVICES
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.devices.registration import subscription_register
from subscriptions_app.devices.services import subscription_unsubscribe
from subscriptions_app.devices.values import Facts
from subscriptions_app.importing import rehearsal, services
from subscriptions_app.importing.services import subscriptions_import
from subscriptions_app.importing.values import Options, Row
from subscriptions_app.models import MOST_DEVICES, Person, Subscription
from subscriptions_app.people import counting
from subscriptions_app.people.proof import Login
from subscriptions_app.people.services import PersonChange, person_change
from subscriptions_app.tags.services import TagChange
from tests.api.devices import ANDROID_TOKEN
from tests.factories import add_crowd, browser_keys, make_category, make_channel, register
from tests.pipeline.support import assert_people_exact

pytestmark = pytest.mark.django_db

LAST_YEAR = datetime(2025, 6, 1, tzinfo=UTC)
LATER = LAST_YEAR + timedelta(days=100)
TAKEOVER = Options(takeover_days=30)
AUTHS = [browser_keys()["auth"] for _ in range(2)]


@pytest.fixture
def channel(db):
    return make_channel(android_enabled=True, ios_enabled=True, identity="trust")


def token(number=0):
    return f"{ANDROID_TOKEN}-{number}"


def android(number=0, **fields):
    address = Address.of(Platform.ANDROID, token(number))
    return Row(address, TOKEN_SERVICES[Platform.ANDROID], **fields)


def browser_row(number=0, **fields):
    address = Address.of(Platform.WEB, f"https://fcm.googleapis.com/fcm/send/{number}")
    return Row(address, "fcm", **{**browser_keys(), **fields})


def outcomes(channel, *rows, **options):
    """The outcome of each row, or the code of its refusal."""
    results = subscriptions_import(channel=channel, rows=rows, options=Options(**options))
    return [result.code or str(result.outcome) for result in results]


def stored(channel, number=0):
    digest = Address.of(Platform.ANDROID, token(number)).digest
    return Subscription.objects.get(channel=channel, address_sha256=digest, is_set_aside=False)


def facts_of(channel):
    """Everything about the channel's subscribers except ids and the moments of this test."""
    rows = Subscription.objects.filter(channel=channel).order_by("address_sha256", "auth")
    return [
        (
            row.address, row.platform, row.p256dh, row.auth, row.push_service, row.attributes,
            row.language, row.timezone, row.choices, row.person and row.person.external_id,
            row.expired_at is None, row.vapid_key and row.vapid_key.public_key,
            sorted(row.tags.values_list("tag", flat=True)),
        )
        for row in rows.select_related("person", "vapid_key")
    ]  # fmt: skip


def totals_of(channel):
    totals = channel_totals(channel.id)
    return {
        name: getattr(totals, name)
        for name in ("subscribers", "stored_subscriptions", "people", "linked_devices")
    }


def some_rows(chance, count=100):
    """Browsers and phones, of which some are of one person, and some have tags."""

    def fields(number):
        return {
            "external_id": chance.choice([None, "user-1", f"user-{number}"]),
            "language": chance.choice([None, "de", "pt-BR"]),
            "timezone": chance.choice([None, "Europe/Berlin"]),
            "attributes": chance.choice([None, {"plan": "pro", "visits": 3}]),
            "tags": chance.choice([None, ["news"], ["news", "sport"]]),
        }

    made = [
        chance.choice([android, browser_row])(number, **fields(number)) for number in range(count)
    ]
    return made + chance.sample(made, 5)  # some addresses come twice


def rows_again(chance, count, *, addresses):
    """Rows that disagree about these phones."""
    return [
        android(
            chance.randrange(addresses),
            external_id=chance.choice([None, "user-1", "user-2", "user-3"]),
            auth=chance.choice(["", *AUTHS, browser_keys()["auth"]]),
            last_seen_at=chance.choice([None, LAST_YEAR, LATER]),
            expired_at=chance.choice([None, None, LATER + timedelta(days=1)]),
            tags=chance.choice([None, ["news"], ["sport"]]),
            attributes=chance.choice([None, {"plan": "pro"}]),
        )
        for _ in range(count)
    ]


def subscribe(channel, row):
    """Registers the row as a device that says the same."""
    facts = Facts(
        row.p256dh, row.auth, None, row.attributes, row.timezone, row.language,
        None if row.tags is None else TagChange(added=row.tags, replaces=True),
        None if row.external_id is None else Login(row.external_id),
    )  # fmt: skip
    subscription_register(channel=channel, address=row.address, facts=facts)


@pytest.mark.parametrize("seed", range(3))
def test_rows_store_and_count_what_as_many_registrations_do(channel, seed, monkeypatch):
    monkeypatch.setattr(services, "SLICE", 40)
    rows = some_rows(random.Random(seed))  # noqa: S311
    outcomes(channel, *rows)
    other = make_channel("Bob's", android_enabled=True, ios_enabled=True, identity="trust")
    for row in rows:
        subscribe(other, row)

    def without_key(facts):
        return [(*each[:11], each[12]) for each in facts]

    assert without_key(facts_of(channel)) == without_key(facts_of(other))
    assert totals_of(channel) == totals_of(other)
    assert_people_exact(channel)


def test_rows_of_one_address_are_written_and_audited_once(channel):
    rows = [android(attributes={"visits": number}) for number in range(5)]
    assert outcomes(channel, *rows, android(1)) == ["created", *["updated"] * 4, "created"]
    assert stored(channel).attributes == {"visits": 4}
    (entry,) = LogEntry.objects.filter(additional_data__note__icontains="imported")
    assert entry.additional_data["note"] == "Subscribers imported: 2 created, 0 updated."


@pytest.mark.parametrize("takeover_days", [0, 30])
@pytest.mark.parametrize("seed", range(3))
def test_rows_of_one_address_count_in_their_order(channel, seed, takeover_days, monkeypatch):
    """As if each was imported for itself."""
    other = make_channel("Bob's", android_enabled=True, identity="trust")
    rows = rows_again(random.Random(seed), 60, addresses=8)  # noqa: S311
    for each in (channel, other):
        register(each, "android", token(0), auth=AUTHS[0], login=Login("user-1"))
        register(each, "android", token(0), auth=AUTHS[1])  # sets the first one aside
        register(each, "android", token(1), auth=AUTHS[1], login=Login("user-3"))
        person_change(channel=each, external_id="user-3", change=PersonChange(opted_out=True))
    together = outcomes(channel, *rows, takeover_days=takeover_days)
    monkeypatch.setattr(services, "SLICE", 1)
    assert together == outcomes(other, *rows, takeover_days=takeover_days)
    assert facts_of(channel) == facts_of(other)
    assert totals_of(channel) == totals_of(other)
    assert_people_exact(channel)


def test_importing_twice_is_importing_once(channel):
    make_category(channel)
    rows = [
        *some_rows(random.Random(7), 30)[:30],  # noqa: S311
        android(90, created_at=LAST_YEAR, last_seen_at=LATER, choices={"offers": True}),
        android(91, created_at=LAST_YEAR, external_id="user-1"),
        android(92, expired_at=LATER, last_seen_at=LAST_YEAR),
    ]
    assert set(outcomes(channel, *rows, takeover_days=30)) == {"created"}
    before, totals = list(Subscription.objects.order_by("id").values()), totals_of(channel)
    assert set(outcomes(channel, *rows, takeover_days=30)) == {"unchanged"}
    assert (list(Subscription.objects.order_by("id").values()), totals_of(channel)) == (
        before,
        totals,
    )


def test_a_corrected_file_changes_its_rows(channel):
    outcomes(channel, android(created_at=LAST_YEAR, tags=["news"]))
    corrected = android(created_at=LAST_YEAR, external_id="user-1", tags=["sport"], language="de")
    assert outcomes(channel, corrected) == ["updated"]
    row = stored(channel)
    assert (row.person.external_id, row.language, row.created_at) == ("user-1", "de", LAST_YEAR)
    assert list(row.tags.values_list("tag", flat=True)) == ["sport"]
    assert_people_exact(channel)


def test_what_the_device_said_since_it_was_last_seen_stays(channel):
    register(channel, "android", token(), language="pt", attributes={"plan": "gold"})
    row = android(
        last_seen_at=LAST_YEAR, language="de", attributes={"plan": "free"}, timezone="Europe/Berlin"
    )
    assert outcomes(channel, row) == ["updated"]
    kept = stored(channel)
    assert (kept.language, kept.attributes, kept.timezone) == (
        "pt",
        {"plan": "gold"},
        "Europe/Berlin",
    )
    assert outcomes(channel, android(language="de")) == ["unchanged"]


def test_a_newer_row_replaces_what_the_device_said(channel):
    register(channel, "android", token(), language="pt")
    Subscription.objects.update(registered_at=LAST_YEAR)
    assert outcomes(channel, android(last_seen_at=LATER, language="de")) == ["updated"]
    assert (stored(channel).language, stored(channel).registered_at) == ("de", LATER)


def test_a_browser_whose_endpoint_another_had_meanwhile_is_found_by_its_auth(channel):
    mine, another = browser_row(language="de"), browser_row()
    subscribe(channel, mine)
    subscribe(channel, another)
    # The other browser has got another endpoint since.
    elsewhere = Address.of(Platform.WEB, "https://fcm.googleapis.com/fcm/send/elsewhere")
    Subscription.objects.filter(auth=another.auth).update(
        address=elsewhere.text, address_sha256=elsewhere.digest
    )

    assert outcomes(channel, mine) == ["updated"]

    row = Subscription.objects.get(auth=mine.auth)
    assert (row.is_set_aside, row.language) == (False, "de")


def test_who_unsubscribed_here_stays_unsubscribed(channel):
    row = android(last_seen_at=LAST_YEAR)
    register(channel, "android", token())
    subscription_unsubscribe(channel=channel, address=row.address)
    assert outcomes(channel, row, android()) == ["unchanged", "unchanged"]
    assert stored(channel).expired_code == "unsubscribed"


def test_who_signed_out_stays_nobodys(channel):
    register(channel, "android", token(), login=Login("user-1"))
    register(channel, "android", token(), login=Login(None))
    assert outcomes(channel, android(external_id="user-1")) == ["unchanged"]


def test_a_person_who_opted_out_gets_no_device(channel):
    register(channel, "android", token(), login=Login("user-1"))
    person_change(channel=channel, external_id="user-1", change=PersonChange(opted_out=True))
    assert outcomes(channel, android(1, external_id="user-1")) == ["created"]
    assert stored(channel, 1).expired_code == "opted_out"
    assert_people_exact(channel)


def test_a_person_with_too_many_devices_costs_only_its_own_rows(channel):
    rows = [android(number, external_id="user-1") for number in range(MOST_DEVICES + 2)]
    found = outcomes(channel, *rows, android(900, external_id="user-2"))
    assert found[:MOST_DEVICES] == ["created"] * MOST_DEVICES
    assert found[MOST_DEVICES:] == ["too_many_devices"] * 2 + ["created"]
    assert_people_exact(channel)


def test_a_person_with_too_many_devices_costs_an_address_only_that_row(channel):
    rows = [android(number, external_id="user-1") for number in range(MOST_DEVICES)]
    last = [
        android(900, language="de"),
        android(900, external_id="user-1"),
        android(900, tags=["a"]),
    ]
    found = outcomes(channel, *rows, *last)
    assert found[MOST_DEVICES:] == ["created", "too_many_devices", "updated"]
    kept = stored(channel, 900)
    assert (kept.person, kept.language, kept.tags.get().tag) == (None, "de", "a")


def test_a_full_channel_refuses_rows_and_deletes_none(channel):
    channel.max_subscriptions = 2
    channel.save()
    found = outcomes(channel, *[android(number) for number in range(3)])
    assert found == ["created", "created", "subscriptions_full"]
    assert outcomes(channel, android(0), android(9)) == ["unchanged", "subscriptions_full"]


def test_what_the_channel_does_not_have_is_refused(channel):
    channel.ios_enabled = False
    channel.save()
    phone = Row(Address.of(Platform.IOS, "a" * 64), TOKEN_SERVICES[Platform.IOS])
    found = outcomes(
        channel, phone, browser_row(vapid_public_key="another"), android(choices={"none": True})
    )
    assert found == ["platform_not_enabled", "vapid_key_unknown", "category_unknown"]
    assert not Subscription.objects.exists()


def test_a_dry_run_has_the_same_results_and_stores_nothing(channel):
    outcomes(channel, android(1), android(2))
    rows = [android(0, external_id="user-1"), android(1), android(2, language="de")]
    before = totals_of(channel)
    assert outcomes(channel, *rows, dry_run=True) == ["created", "unchanged", "updated"]
    assert (totals_of(channel), Person.objects.count()) == (before, 0)
    assert outcomes(channel, *rows) == ["created", "unchanged", "updated"]


@pytest.mark.parametrize("seed", range(4))
def test_a_dry_run_knows_the_rows_before(channel, seed, monkeypatch):
    """Addresses that come again in other slices, persons with too many devices, a full channel."""
    monkeypatch.setattr(services, "SLICE", 7)
    monkeypatch.setattr(counting, "MOST_DEVICES", 3)
    monkeypatch.setattr(rehearsal, "MOST_DEVICES", 3)
    chance = random.Random(seed)  # noqa: S311
    outcomes(channel, *some_rows(chance, 10))
    channel.max_subscriptions = 38
    channel.save()
    again = rows_again(chance, 120, addresses=50)
    rehearsed = outcomes(channel, *again, dry_run=True)
    assert rehearsed == outcomes(channel, *again)
    expected = {"created", "updated", "unchanged", "too_many_devices", "subscriptions_full"}
    assert expected <= set(rehearsed)


def test_an_import_of_another_channel_changes_nothing_here(channel):
    outcomes(channel, android(language="de"))
    other = make_channel("Bob's", android_enabled=True)
    assert outcomes(other, android(language="pt")) == ["created"]
    assert stored(channel).language == "de"


def test_an_import_reads_only_its_own_addresses(channel):
    """Not all subscriptions of the channel for each slice, as a hash join would."""
    add_crowd(channel, 3_000, platform="android")
    sql.execute("ANALYZE subscriptions_app_subscription", {})
    with CaptureQueriesContext(connection) as captured:
        outcomes(channel, *(android(number) for number in range(200)))
    (find,) = [each["sql"] for each in captured if "AS given (platform, digest)" in each["sql"]]
    plan = sql.rows("EXPLAIN (ANALYZE, FORMAT JSON) " + find.replace("%", "%%"), {})[0][0][0]
    assert most_rows_of_a_step(plan["Plan"]) <= 200


def most_rows_of_a_step(node):
    return max([node["Actual Rows"], *map(most_rows_of_a_step, node.get("Plans", []))])
