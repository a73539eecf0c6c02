"""Sends errors of the log to Sentry, if SENTRY_DSN is set.

Texts of exceptions and databases, local variables, requests, and arguments of other packages'
messages are not sent, because they may name people or contain secrets. The log has them, under the
same ids.
"""

import logging
from typing import Any, Final

import sentry_sdk
from sentry_sdk.utils import event_from_exception
from typing_extensions import override

from pushsvc.common.logs import fields_of

# The fields that are sent.
_IDS: Final = ("request_id", "trace_id", "woken_by", "notification", "channel", "batch", "plan")
_NAMES: Final = ("route", "code", "kind", "error", "platform", "service", "queue", "step", "limit")
_FIELDS: Final = frozenset({*_IDS, *_NAMES, "notifications", "batches", "plans"})
_OPTIONS: Final[dict[str, Any]] = {
    "default_integrations": False,
    "auto_enabling_integrations": False,
    "send_default_pii": False,
    "include_local_variables": False,
    "max_breadcrumbs": 0,
    "max_request_body_size": "never",
    "traces_sample_rate": None,
}
_SECONDS_AT_END: Final = 2.0


class SentryHandler(logging.Handler):
    """For events of level ERROR and above. Sentry's own thread sends them."""

    def __init__(self, dsn: str) -> None:
        super().__init__(logging.ERROR)
        sentry_sdk.init(dsn=dsn, **_OPTIONS)

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(("sentry_sdk", "urllib3")):
            return
        try:
            sentry_sdk.capture_event(_event(record))
        except Exception:  # noqa: BLE001 (logging must not fail because of this)
            self.handleError(record)

    @override
    def close(self) -> None:
        """Sends the rest when the process ends."""
        sentry_sdk.flush(_SECONDS_AT_END)
        super().close()


def _event(record: logging.LogRecord) -> Any:
    event: dict[str, Any] = {
        "level": record.levelname.lower(),
        "logger": record.name,
        # The message as it is in the code, without its arguments.
        "logentry": {"message": str(record.msg)},
        "tags": {
            name: str(value) for name, value in fields_of(record).items() if _may(name, value)
        },
    }
    if record.exc_info and record.exc_info[0] is not None:
        options = sentry_sdk.get_client().options
        raised, _ = event_from_exception(record.exc_info, client_options=options)
        values = raised["exception"]["values"]
        event["exception"] = {"values": [{**each, "value": ""} for each in values]}
    return event


def _may(name: str, value: object) -> bool:
    """Whether the field may be sent. `error` may be a database's text instead of an exception's
    name."""
    return name in _FIELDS and (name != "error" or str(value).isidentifier())
