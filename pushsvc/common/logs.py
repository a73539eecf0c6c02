"""One line for each event: time, level, event name, then its `extra` fields as key=value."""

import logging

from typing_extensions import override

# `taskName` is new in Python 3.12; `data` is Celery's, a whole message.
_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "data"}


class EventFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    @override
    def formatMessage(self, record: logging.LogRecord) -> str:
        extra = {k: v for k, v in vars(record).items() if k not in _STANDARD}
        fields = "".join(f" {key}={_on_one_line(value)}" for key, value in sorted(extra.items()))
        return super().formatMessage(record) + fields


def _on_one_line(value: object) -> str:
    """A path may hold line ends, and would write lines of its own."""
    text = str(value)
    return text if text.isprintable() else ascii(text)
