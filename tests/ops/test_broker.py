"""How processes connect to the broker again."""

import pytest

from pushsvc.celery import app


class Enough(Exception):
    pass


def test_a_process_tries_every_two_seconds_while_the_broker_is_away():
    waits = []

    def fail(error, wait):
        waits.append(wait)
        if len(waits) == 2:
            raise Enough

    with app.connection_for_read("redis://127.0.0.1:1/0") as broker, pytest.raises(Enough):
        broker.ensure_connection(fail, app.conf.broker_connection_max_retries)

    assert waits == [2, 2]
    assert app.conf.broker_connection_max_retries is None
