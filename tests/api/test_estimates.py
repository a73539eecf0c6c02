"""What estimates of audiences may cost others: threads, statements and rows.

Over real sockets, with statements that wait for a lock that only they need.
"""

import json
import selectors
from uuid import uuid4

import pytest
from django.db import connection, transaction

from channels_app.models import Account
from pushsvc.common.errors import Busy
from pushsvc.common.store import estimates
from pushsvc.common.store.estimates import OF_ACCOUNT, Client, ClientLeft, TooSlow
from pushsvc.web.bulkhead import ESTIMATES, OF_KEY_IN_ESTIMATES, Bulkhead
from subscriptions_app.audiences import sizes
from subscriptions_app.audiences.sizes import (
    Size,
    audience_size,
    segment_sample,
)
from tests import factories
from tests.api.support import owner_of
from tests.api.test_bulkhead import assert_serves, first_answered, get, locked, statuses
from tests.api.test_web_process import ask
from tests.api.test_web_process import post as sending
from tests.factories import make_channel, make_segment
from tests.pipeline.processes import running_web
from tests.pipeline.support import in_threads, until, waiting_sessions
from tests.segments import attribute

UNTAGGED = {"not": {"tag": "vip"}}
DRY_RUN = json.dumps({"body": "x", "dry_run": True, "rule": UNTAGGED})
TAGS = "subscriptions_app_tag"


@pytest.fixture(scope="module")
def service(django_db_setup, tmp_path_factory):
    """A web process whose estimates may wait for as long as a test."""
    log = tmp_path_factory.mktemp("web") / "log"
    with running_web(log, ESTIMATE_SECONDS="600") as address:
        yield address


@pytest.fixture
def owner(transactional_db):
    return shop()


def shop():
    """The owner of a channel with three browsers, in an account of its own."""
    found = owner_of(make_channel(account=Account.objects.create(name=f"A shop {uuid4()}")))
    factories.add_crowd(found.channel, 3)
    return found


def dry_run(owner, body=DRY_RUN):
    return sending(owner.key, body).encode()


def assert_reads(port, owner):
    path, header = f"/channel/{owner.channel.id}", f"Authorization: Key {owner.key}"
    assert ask(port, get(path, header).decode())[0] == 200


def test_sixteen_dry_runs_of_one_key_hold_one_thread(web, opened, owner):
    other, third = shop(), shop()  # before the lock, whose transaction would hide their keys
    with locked(TAGS):
        held = opened(16, dry_run(owner))
        until(lambda: waiting_sessions() == OF_KEY_IN_ESTIMATES.threads, seconds=60)
        for each in (other, owner):
            assert_serves(web, each)
            assert_reads(web, each)
        held += opened(1, dry_run(other))
        until(lambda: waiting_sessions() == ESTIMATES.threads, seconds=60)
        more = opened(3, dry_run(third))
        assert_serves(web, other)
        assert waiting_sessions() == ESTIMATES.threads
    assert statuses(held + more) == {200}


def test_sizes_of_segments_leave_the_reads_their_threads(web, opened, owner):
    segment = make_segment(owner.channel, UNTAGGED)
    size = get(
        f"/channel/{owner.channel.id}/segments/{segment.id}/size",
        f"Authorization: Key {owner.key}",
    )
    with locked(TAGS):
        held = opened(8, size)
        until(lambda: waiting_sessions() == OF_KEY_IN_ESTIMATES.threads, seconds=60)
        assert_reads(web, owner)
        assert waiting_sessions() == OF_KEY_IN_ESTIMATES.threads
    assert statuses(held) == {200}


def test_a_client_that_leaves_ends_its_statement_and_no_other(web, opened, owner):
    other = shop()
    with locked(TAGS):
        (left,) = opened(1, dry_run(owner))
        until(lambda: waiting_sessions() == 1, seconds=60)
        (stays,) = opened(1, dry_run(other))
        until(lambda: waiting_sessions() == 2, seconds=60)
        left.close()
        until(lambda: waiting_sessions() == 1, seconds=60)
        assert_serves(web, owner)
    assert statuses([stays]) == {200}


def test_clients_that_left_while_they_waited_are_not_served(web, opened, owner):
    with locked(TAGS):
        (first,) = opened(1, dry_run(owner))
        until(lambda: waiting_sessions() == 1, seconds=60)
        for each in opened(OF_KEY_IN_ESTIMATES.waiting, dry_run(owner)):
            each.close()
        first.close()
        until(lambda: waiting_sessions() == 0, seconds=60)
        last = until(lambda: served(opened, owner), seconds=60)
    assert statuses([last]) == {200}


def served(opened, owner):
    """The connection of a dry run that runs, or None if it is refused: the service has not noticed
    yet that the clients before it left."""
    (tried,) = opened(1, dry_run(owner))
    with selectors.DefaultSelector() as selector:
        selector.register(tried, selectors.EVENT_READ)
        until(lambda: selector.select(0) or waiting_sessions() == 1, seconds=60)
        return None if selector.select(0) else tried


def test_a_key_has_a_limited_number_of_waiting_estimates(web, opened, owner):
    with locked(TAGS):
        held = opened(sum(OF_KEY_IN_ESTIMATES) + 1, dry_run(owner))
        (refused,) = first_answered(held)
        assert statuses([refused]) == {503}
    held.remove(refused)
    assert statuses(held) == {200}


def test_a_statement_that_takes_too_long_is_refused(owner, settings):
    settings.ESTIMATE_SECONDS = 1

    def refused():
        with pytest.raises(Busy):
            audience_size(*_untagged(owner))

    with locked(TAGS):
        in_threads(refused)
    assert audience_size(*_untagged(owner))["web"] == Size(3, estimated=False)


def _untagged(owner):
    return owner.channel.id, UNTAGGED, ["web"]


def test_a_time_limit_ends_with_its_statement(owner, settings):
    settings.ESTIMATE_SECONDS = 7
    for own in (transaction.atomic, lambda: transaction.atomic(durable=False)):
        with own():
            assert limit_of(estimates.rows) == "7s"
            assert limit_of(shown) == "0"
    assert limit_of(estimates.rows) == "7s"
    assert limit_of(shown) == "0"


def limit_of(read):
    return read("SHOW statement_timeout", {})[0][0]


def shown(statement, _):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def test_a_transaction_goes_on_after_an_estimate_that_took_too_long(owner, settings):
    settings.ESTIMATE_SECONDS = 1
    with transaction.atomic():
        with pytest.raises(TooSlow):
            estimates.rows("SELECT pg_sleep(600)", {})
        assert limit_of(shown) == "0"


def test_an_account_runs_two_estimates_at_once(owner, settings):
    settings.ESTIMATE_SECONDS = 600
    second = make_channel(account=owner.channel.account)
    other = shop()
    with estimates.share_of(owner.channel.account_id), estimates.share_of(second.account_id):
        assert OF_ACCOUNT == 2
        for read in (audience_size, lambda *each: segment_sample(*each[:2])):
            with pytest.raises(Busy):
                read(*_untagged(owner))
        with pytest.raises(Busy):
            audience_size(second.id, UNTAGGED, ["web"])
        assert audience_size(*_untagged(other))["web"].size == 3
        assert audience_size(owner.channel.id, None, ["web"])["web"].size == 3
    assert audience_size(*_untagged(owner))["web"].size == 3


def test_a_rule_that_costs_more_is_estimated_from_fewer_rows(owner, monkeypatch):
    factories.add_crowd(owner.channel, 100)
    cheap = {"all": [attribute("plan", "ne", "x")]}
    dear = {"all": [attribute(f"a{n}", "ne", "x") for n in range(50)]}
    monkeypatch.setattr(sizes, "_MOST_WORK", 20 * 110)

    assert audience_size(owner.channel.id, cheap, ["web"])["web"] == Size(103, estimated=False)
    assert audience_size(owner.channel.id, dear, ["web"])["web"] == Size(103, estimated=True)
    tags = {"all": [{"not": {"tag": f"t{n}"}} for n in range(50)]}
    assert audience_size(owner.channel.id, tags, ["web"])["web"].estimated


def test_fifty_conditions_decompress_the_attributes_of_a_row_once(owner):
    """Counted in the pages that PostgreSQL reads: each time, long attributes cost several."""
    long = "(SELECT jsonb_object_agg('a' || k, (SELECT string_agg(md5(n::text || k || j), '')"
    long += " FROM generate_series(1, 60) j)) FROM generate_series(0, 9) k)"
    factories.add_crowd(owner.channel, 200, long)
    many = [attribute(f"a{n % 10}", "in", [f"v{n}-{k}" for k in range(60)]) for n in range(50)]
    one = pages_read(owner, {"all": [{"not": each} for each in many[:1]]})
    fifty = pages_read(owner, {"all": [{"not": each} for each in many]})
    assert fifty <= one * 1.2


def pages_read(owner, rule):
    query = sizes._Query(owner.channel.id, rule)
    text = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + sizes._SAMPLE.format(**query._fragments)
    parameters = {**query._parameters, "platform": "web", "most": 20_000}
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        plan = cursor.fetchone()[0][0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


@pytest.mark.parametrize(
    ("method", "path", "body", "is_estimate"),
    [
        ("POST", "/send-notification", DRY_RUN.encode(), True),
        ("POST", "/send-notification/", DRY_RUN.encode(), True),
        ("POST", "/send-notification", rb'{"body": "x", "dry\u005frun": true}', True),
        ("POST", "/send-notification", b'{"body": "x"}', False),
        ("POST", "/send-notification", rb'{"body": "\u00e9\ud83d\ude00\u000a"}', False),
        ("POST", "/subscribe", DRY_RUN.encode(), False),
        ("GET", "/channel/1/segments/2/size", b"", True),
        ("GET", "/channel/1/segments/2/size/", b"", True),
        ("GET", "/channel/1/segments/2", b"", False),
    ],
)
def test_what_estimates_has_threads_of_its_own(method, path, body, is_estimate):
    found = Bulkhead(None).queue(method, path, body)
    assert (found.kind == "estimate") == is_estimate


def test_a_client_that_left_starts_no_statement(owner):
    client = Client()
    client.leave()
    with pytest.raises(ClientLeft), client.served():
        pytest.fail("it was served")
