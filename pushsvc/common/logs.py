"""One line for each event: time, level, event name, then its `extra` fields as key=value."""

import logging

from typing_extensions import override

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "data"}


class EventFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    @override
    def formatMessage(self, record: logging.LogRecord) -> str:
        extra = {k: v for k, v in vars(record).items() if k not in _STANDARD}
        fields = "".join(f" {key}={value}" for key, value in sorted(extra.items()))
        return super().formatMessage(record) + fields
