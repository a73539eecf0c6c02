"""`GET /channel/:channelId/subscriptions`."""

import csv
import io
import json
import re

import pytest
from auditlog.models import LogEntry
from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from pushsvc.common.store import sql
from subscriptions_app.models import Subscription
from tests.api.devices import HERE
from tests.api.support import code, errors, owner_of
from tests.factories import add_crowd, add_subscription, browser, make_channel

pytestmark = pytest.mark.django_db

ACTIVE = Q(expired_at=None)


@pytest.fixture
def alice(db):
    return owner_of(make_channel())


def path(owner, query=""):
    return f"/channel/{owner.channel.id}/subscriptions{query}"


def content(response):
    assert response.status_code == 200, response.content
    return b"".join(response.streaming_content).decode()


def lines(response):
    return [json.loads(line) for line in content(response).splitlines()]


def next_page(response):
    found = re.fullmatch(r'<https?://[^/]+(/[^>]+)>; rel="next"', response.headers.get("Link", ""))
    return found and found[1]


def pages(owner, address):
    while address:
        response = owner.call("GET", address)
        yield lines(response)
        address = next_page(response)


def test_a_row_says_everything_without_the_address(alice):
    alice.subscribe(browser(HERE, attributes={"plan": "gold"}, language="de", tags=["a", "b"]))
    device = Subscription.objects.get()

    response = alice.call("GET", path(alice))

    assert response.headers["Content-Type"] == "application/x-ndjson"
    (row,) = lines(response)
    assert list(row) == [
        "subscription_id",
        "platform",
        "active",
        "external_id",
        "language",
        "timezone",
        "attributes",
        "tags",
        "choices",
        "created_at",
        "last_seen_at",
        "expired_at",
        "expired_code",
    ]
    assert row["subscription_id"] == str(device.pk)
    assert (row["platform"], row["active"], row["language"]) == ("web", True, "de")
    assert (row["attributes"], row["tags"]) == ({"plan": "gold"}, ["a", "b"])
    assert (row["external_id"], row["expired_at"]) == (None, None)
    assert row["created_at"].endswith("Z")
    assert not LogEntry.objects.filter(additional_data__note__icontains="exported").exists()


def test_addresses_are_added_on_request_and_audited_once_an_hour_and_key(alice):
    alice.subscribe(browser(HERE))
    device = Subscription.objects.get()
    for _ in range(2):
        (row,) = lines(alice.call("GET", path(alice, "?include=address")))
    other = owner_of(alice.channel)
    lines(other.call("GET", path(other, "?include=address")))

    assert row["endpoint"] == device.address
    assert row["keys"] == {"p256dh": device.p256dh, "auth": device.auth}
    assert row["vapid_public_key"] == device.vapid_key.public_key
    entries = LogEntry.objects.filter(additional_data__note__icontains="exported")
    assert entries.count() == 2
    assert len({each.additional_data["key"] for each in entries}) == 2
    written = json.dumps(list(LogEntry.objects.values()), default=str)
    assert device.address not in written
    assert device.auth not in written


def test_who_is_there_throughout_is_in_exactly_one_page(alice):
    kept = [add_subscription(alice.channel).pk for _ in range(7)]
    seen, changes = [], iter(kept)
    for page in pages(alice, path(alice, "?limit=2")):
        seen += [row["subscription_id"] for row in page]
        # While it is read, somebody subscribes and another expires.
        if len(seen) < 7:
            add_subscription(alice.channel)
        Subscription.objects.filter(pk=next(changes, None)).update(expired_at=Now())
    assert all(seen.count(str(pk)) == 1 for pk in kept)
    assert seen == sorted(seen)


def test_a_page_at_the_end_costs_as_much_as_one_at_the_start(alice):
    """Counted in the pages that PostgreSQL reads, whatever other channels have."""
    for channel in (make_channel(), alice.channel):
        add_crowd(channel, 6_000, expired_at="CASE n %% 2 WHEN 0 THEN now() END")
    sql.execute("ANALYZE subscriptions_app_subscription", {})
    ids = Subscription.objects.filter(channel=alice.channel).order_by("pk")
    for query in ("", "&state=active", "&state=expired"):
        of_state = {"": Q(), "&state=active": ACTIVE, "&state=expired": ~ACTIVE}[query]
        before_the_end = ids.filter(of_state).reverse()[100].pk
        start, end = (
            pages_read(alice, path(alice, f"?limit=100{query}{after}"), "subscriptions_app_", 2)
            for after in ("", f"&after={before_the_end}")
        )
        assert end <= 1.2 * start, query


def pages_read(owner, address, tables, statements):
    """By the statements that read these tables, for 100 rows."""
    for method in ("seqscan", "bitmapscan", "sort"):  # as if the tables were large
        sql.execute(f"SET LOCAL enable_{method} = off", {})
    with CaptureQueriesContext(connection) as captured:
        assert len(lines(owner.call("GET", address))) == 100
    reads = [each["sql"] for each in captured if tables in each["sql"]]
    assert len(reads) == statements
    plans = [
        sql.rows("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + each.replace("%", "%%"), {})[0][0][0]
        for each in reads
    ]
    return sum(plan["Plan"][f"Shared {kind} Blocks"] for plan in plans for kind in ("Hit", "Read"))


def test_a_state_is_chosen(alice):
    active, ended = add_subscription(alice.channel), add_subscription(alice.channel)
    Subscription.objects.filter(pk=ended.pk).update(expired_at=Now(), expired_code="gone")
    for state, one in {"active": active, "expired": ended}.items():
        (row,) = lines(alice.call("GET", path(alice, f"?state={state}")))
        assert row["subscription_id"] == str(one.pk)
        assert row["active"] == (state == "active")
    assert row["expired_code"] == "gone"


def test_a_csv_is_harmless_to_spreadsheets(alice):
    alice.subscribe(browser(HERE, attributes={"name": "x;=1+1"}, tags=["b", "a"]))
    response = alice.call("GET", path(alice, "?format=csv&include=address"))

    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    (row,) = csv.DictReader(io.StringIO(content(response)))
    assert ";=" not in row["attributes"]
    assert (row["active"], row["tags"]) == ("true", "a b")
    assert row["endpoint"] == Subscription.objects.get().address
    assert row["p256dh"]
    assert row["auth"]
    assert row["vapid_public_key"]


def test_bad_parameters_are_all_named(alice):
    query = "?limit=x&after=1&state=gone&format=xml&include=all"
    assert set(errors(alice.call("GET", path(alice, query)))) == {
        ("limit", "not_a_number"),
        ("after", "not_a_uuid"),
        ("state", "not_a_choice"),
        ("format", "not_a_choice"),
        ("include", "not_a_choice"),
    }


def test_another_channel_and_another_scope_read_nothing(alice):
    bob = owner_of(make_channel())
    add_subscription(alice.channel)
    assert code(bob.call("GET", path(alice)), 404)
    assert lines(bob.call("GET", path(bob))) == []
    weak = owner_of(alice.channel, scopes=("send", "read", "manage"))
    assert code(weak.call("GET", path(weak)), 403) == "missing_scope"
