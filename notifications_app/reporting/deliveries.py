"""Reads a notification's deliveries for the export, a bounded number at a time."""

from collections.abc import Iterator
from typing import Final
from uuid import UUID

from notifications_app.models import Notification
from notifications_app.selectors import OUTCOMES
from pushsvc.common.store.lines import Kind, Page, csv_lines, json_lines, page_read, texts

FIELDS: Final = {
    "subscription_id": Kind.PLAIN,
    "external_id": Kind.TEXT,
    "platform": Kind.TEXT,
    "outcome": Kind.PLAIN,
    "code": Kind.TEXT,
    "detail": Kind.TEXT,
    "attempts": Kind.NUMBER,
    "action": Kind.TEXT,
    "finished_at": Kind.MOMENT,
    "received_at": Kind.MOMENT,
    "clicked_at": Kind.MOMENT,
    "dismissed_at": Kind.MOMENT,
}
_MOST_READ: Final = 5_000
_STATUSES: Final = {name: status for status, name in OUTCOMES.items()}


def deliveries_page(
    notification_id: UUID, *, after: UUID, limit: int, outcome: str | None = None
) -> Page:
    """The notification's next recipients. It reads a bounded number of them, however few have the
    outcome."""
    parameters = {
        "notification": notification_id,
        "after": after,
        "status": None if outcome is None else _STATUSES[outcome].value,
    }
    return page_read(_PAGE, parameters, limit=limit, most=limit if outcome is None else _MOST_READ)


def delivery_texts(
    notification: Notification, page: Page, *, is_csv: bool = False, is_named: bool = False
) -> Iterator[str]:
    """The rows of the page as lines, in the order of ids. `is_named`: with the `notification_id`,
    in NDJSON."""
    parameters = {
        "notification": notification.pk,
        "actions": [each["id"] for each in notification.content.actions],
    }
    statement = _CSV if is_csv else _NAMED if is_named else _JSON
    return texts(statement, parameters, page)


# Raw, because PostgreSQL writes the lines.
_PAGE: Final = """
SELECT subscription_id AS id, %(status)s::smallint IS NULL OR status = %(status)s AS is_meant
FROM notifications_app_delivery
WHERE notification_id = %(notification)s AND subscription_id > %(after)s
ORDER BY subscription_id LIMIT %(read)s
"""
_OUTCOME: Final = " ".join(
    f"WHEN {status.value} THEN '{name}'" for status, name in OUTCOMES.items()
)
# OFFSET 0, so that PostgreSQL looks up each row by its key, and never reads a table for a join.
_ROWS: Final = f"""
SELECT given.id, given.id AS subscription_id, %(notification)s AS notification_id,
  person.external_id, batch.platform, CASE own.status {_OUTCOME} END AS outcome,
  nullif(own.code, '') AS code, nullif(own.detail, '') AS detail, own.attempts,
  (%(actions)s::text[])[own.clicked_action + 1] AS action,
  own.finished_at, own.received_at, own.clicked_at, own.dismissed_at
FROM unnest(%(ids)s::uuid[]) AS given (id)
CROSS JOIN LATERAL (
  SELECT * FROM notifications_app_delivery
  WHERE notification_id = %(notification)s AND subscription_id = given.id OFFSET 0
) AS own
LEFT JOIN LATERAL (
  SELECT platform FROM notifications_app_batch WHERE id = own.batch_id OFFSET 0
) AS batch ON true
LEFT JOIN LATERAL (
  SELECT person_id FROM subscriptions_app_subscription WHERE id = given.id OFFSET 0
) AS device ON true
LEFT JOIN LATERAL (
  SELECT external_id FROM subscriptions_app_person WHERE id = device.person_id OFFSET 0
) AS person ON true
"""  # noqa: S608 - names of our own
_JSON: Final = json_lines(_ROWS, FIELDS)
_CSV: Final = csv_lines(_ROWS, FIELDS)
_NAMED: Final = json_lines(_ROWS, {"notification_id": Kind.PLAIN, **FIELDS})
