"""Flows of requests that the OpenAPI document allows get answers that it names.

`make test` makes a few hundred requests in this process. `make fuzz` makes many to a web process on
a socket (tests/fuzz/long.py).
"""

import os

import pytest
from django.core.wsgi import get_wsgi_application
from schemathesis.openapi import from_url, from_wsgi

from notifications_app import tasks
from notifications_app.pipeline import planning
from pushsvc.common.store.redis_client import redis_client
from tests.fuzz.cast import make_cast
from tests.fuzz.machine import Tally, machine_of, run
from tests.pipeline.processes import running_web

SEED = int(os.environ.get("FUZZ_SEED", "1"))
CASES = int(os.environ.get("FUZZ_CASES", "0"))
SHORT_CASES = 250


def work(cast):
    """Starts and ends due notifications, so that some are too late to cancel. No device is
    called: the subscriptions are made up. Limits that were reached are lifted."""
    planning.work(seconds=1)
    tasks.tick()
    if cast.mostly(0.3):
        forget_limits()


def forget_limits():
    for key in redis_client().scan_iter("limit:*"):
        redis_client().delete(key)


def fuzz(schema, least):
    tally = Tally()
    cast = make_cast(SEED)
    machine = machine_of(schema, cast, tally, between=lambda: work(cast))
    number = SEED
    while tally.cases < least:
        run(machine, number=number)
        number += 1
        print(f"{tally.cases} cases, {tally.error_count} errors", flush=True)  # noqa: T201 (for `make fuzz`)
    print(tally.report())  # noqa: T201 (pytest shows it where a test failed, `make fuzz` always)
    return tally


def assert_no_error(tally):
    told = "\n\n".join(f"{words}\n{case}" for words, case in tally.errors.items())
    assert not tally.errors, f"\n{told}"


@pytest.fixture(autouse=True)
def _no_leftovers():
    """Removes limits of other tests."""
    redis_client().flushdb()


@pytest.mark.django_db(transaction=True)
def test_every_answer_in_a_flow_is_named_by_the_document():
    tally = fuzz(from_wsgi("/openapi.json", get_wsgi_application()), SHORT_CASES)

    assert_no_error(tally)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(not CASES, reason="many requests, over sockets: make fuzz")
def test_every_answer_of_a_web_process_is_named_by_the_document(tmp_path):
    with running_web(tmp_path / "web.log") as address:
        tally = fuzz(from_url(f"{address}/openapi.json"), CASES)

    assert_no_error(tally)
