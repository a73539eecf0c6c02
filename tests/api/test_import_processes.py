"""Imports that are killed, and imports that run at the same time."""

import json
import subprocess
import sys

import pytest
from django.db import transaction

from channels_app.selectors import channel_totals
from pushsvc.common.endpoints import TOKEN_SERVICES
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.importing.services import SLICE, SLOTS, subscriptions_import
from subscriptions_app.importing.values import Outcome, Row
from subscriptions_app.models import Person, Subscription
from subscriptions_app.people.services import people_get_or_create
from tests.api.devices import ANDROID_TOKEN
from tests.factories import make_channel
from tests.forked import CHECKOUT
from tests.pipeline.processes import environment
from tests.pipeline.support import (
    assert_people_exact,
    in_threads,
    until,
    waiting_sessions,
    waits_for,
)

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = 2 * SLICE + 10
IN_SECOND_SLICE = f"user-{SLICE}"


@pytest.fixture
def channel(transactional_db):
    return make_channel(android_enabled=True, identity="trust")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tokens.csv"
    rows = (f"android,{ANDROID_TOKEN}-{each},user-{each},news\n" for each in range(ROWS))
    path.write_text(f"platform,token,external_id,tags\n{''.join(rows)}")
    return path


def start(channel, file, *arguments):
    command = ["manage.py", "import_subscribers", str(channel.pk), str(file), "--json"]
    return subprocess.Popen(
        [sys.executable, *command, "--format=tokens_csv", *arguments],
        cwd=CHECKOUT,
        env=environment(),
        stdout=subprocess.PIPE,
    )


def run(channel, file, *arguments):
    """What it prints as JSON."""
    out, _ = start(channel, file, *arguments).communicate(timeout=300)
    return json.loads(out)


def counted(channel):
    totals = channel_totals(channel.pk)
    return totals.subscribers, totals.stored_subscriptions, totals.people, totals.linked_devices


def test_an_import_that_is_killed_goes_on_with_nothing_twice_and_nothing_lost(channel, file):
    people_get_or_create(channel.pk, [IN_SECOND_SLICE])
    with transaction.atomic():
        # So the import waits after it wrote the rows of its second slice, before it counts them.
        list(Person.objects.select_for_update(no_key=True))
        process = start(channel, file)
        until(waiting_sessions)
        process.kill()
        process.communicate()
    until(lambda: not sql.rows(_OTHERS, {}))
    assert counted(channel) == (SLICE,) * 4
    assert_people_exact(channel)

    found = run(channel, file, f"--resume={SLICE - 98}")
    assert (found["unchanged"], found["created"]) == (100, ROWS - SLICE)
    assert counted(channel) == (ROWS,) * 4
    assert run(channel, file)["unchanged"] == ROWS
    assert Subscription.objects.filter(tags__tag="news").count() == ROWS
    assert_people_exact(channel)


def test_eight_imports_at_once_store_each_row_once(channel):
    """Half of the rows of each file are in the next file, too, in the opposite order."""

    def row(number):
        address = Address.of(Platform.ANDROID, f"{ANDROID_TOKEN}-{number}")
        return Row(
            address,
            TOKEN_SERVICES[Platform.ANDROID],
            external_id=f"user-{number % 400}",
            tags=["news"],
        )

    def imports(number):
        rows = [row(number * SLICE // 2 + each) for each in range(SLICE)]
        given = rows if number % 2 else rows[::-1]
        return [each.outcome for each in subscriptions_import(channel=channel, rows=given)]

    results = in_threads(*[lambda number=number: imports(number) for number in range(8)])

    rows = 9 * SLICE // 2
    outcomes = [each for result in results for each in result]
    assert outcomes.count(Outcome.CREATED) == rows
    assert outcomes.count(Outcome.UNCHANGED) == 8 * SLICE - rows
    assert counted(channel) == (rows, rows, 400, rows)
    assert_people_exact(channel)


def test_imports_leave_most_of_postgresqls_table_of_locks_to_others(channel):
    def take_all_slots():
        ((slots,),) = sql.rows(f"SELECT {SLOTS}", {})
        ((most,),) = sql.rows(_MOST_LOCKS, {})
        assert slots * SLICE <= most / 3
        for slot in range(slots):
            sql.rows(
                "SELECT pg_advisory_xact_lock(hashtextextended(%(slot)s, 0))",
                {"slot": f"import {slot}"},
            )

    row = Row(Address.of(Platform.ANDROID, ANDROID_TOKEN), TOKEN_SERVICES[Platform.ANDROID])
    with waits_for(take_all_slots, lambda: subscriptions_import(channel=channel, rows=[row])):
        assert not Subscription.objects.exists()


_OTHERS = """
SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_MOST_LOCKS = """
SELECT current_setting('max_locks_per_transaction')::int * current_setting('max_connections')::int
"""
