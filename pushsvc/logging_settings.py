"""The configuration of the standard library's logging. `settings.py` imports it."""

from typing import Any


def logging_settings(*, log_format: str, sentry_dsn: str) -> dict[str, Any]:
    """`log_format`: `text` or `json`. Without a DSN, nothing is sent to Sentry."""
    handlers = {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": log_format,
            "filters": ["no_addresses", "context"],
        }
    }
    if sentry_dsn:
        handlers["sentry"] = {
            "()": "pushsvc.common.telemetry.sentry.SentryHandler",
            "dsn": sentry_dsn,
            "filters": ["no_addresses", "context"],
        }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {"()": "pushsvc.common.logs.TextFormatter"},
            "json": {"()": "pushsvc.common.logs.JsonFormatter"},
        },
        "filters": {
            "no_addresses": {"()": "pushsvc.common.logs.NoAddresses"},
            "context": {"()": "pushsvc.common.logs.WithContext"},
        },
        "handlers": handlers,
        "root": {"handlers": [*handlers], "level": "INFO"},
        "loggers": _LOGGERS,
    }


_LOGGERS = {
    "django": {"handlers": [], "level": "INFO", "propagate": True},
    "django.request": {"level": "ERROR"},  # refused requests are not logged
    "django.security.DisallowedHost": {"level": "CRITICAL"},  # scanners cause it; they get 400
    "django.server": {"handlers": [], "propagate": True},
    "axes": {"level": "WARNING"},
    "celery": {"level": "INFO"},
    "celery.app.trace": {"level": "WARNING"},  # it logs two lines for every wakeup
    "celery.worker.strategy": {"level": "WARNING"},
    "celery.beat": {"level": "WARNING"},
    "django_celery_beat": {"level": "WARNING"},
}
