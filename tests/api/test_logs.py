"""Lines of the log, as `pushsvc.common.logs` writes them."""

import logging

from pushsvc.common.logs import EventFormatter


def line_of(**extra):
    record = logging.makeLogRecord({"name": "x", "levelname": "INFO", "msg": "request.failed"})
    vars(record).update(extra)
    return EventFormatter().format(record)


def test_an_event_is_followed_by_its_fields_in_order():
    assert line_of(status=500, path="/channel").endswith(
        " INFO x request.failed path=/channel status=500"
    )


def test_what_a_client_chose_cannot_write_lines_of_its_own():
    line = line_of(path="/x\n2026-11-20 ERROR forged\x1b[31m\u2028")

    assert line.isprintable()
    assert r"path='/x\n2026-11-20 ERROR forged\x1b[31m\u2028'" in line
