"""The conditions of rules on the ledger: how earlier notifications ended for a device.

The ledger is a table of notifications_app, which this app must not import. So only this module
names the table, in SQL.
"""

from typing import Final

# Who clicked a later correction of the notification `named` has clicked it. ARRAY, so that the
# corrections, of which there are usually none, are looked up once for all rows.
_CLICKED: Final = """(delivery.clicked_at IS NOT NULL OR EXISTS (
  SELECT FROM notifications_app_delivery AS corrected
  WHERE corrected.notification_id = ANY(ARRAY(
      SELECT correction.id FROM notifications_app_notification AS named
      JOIN notifications_app_notification AS correction
        ON correction.root_id = coalesce(named.root_id, named.id) AND correction.id > named.id
      WHERE named.id = {named}))
    AND corrected.subscription_id = delivery.subscription_id AND corrected.clicked_at IS NOT NULL
  OFFSET 0))"""
# Conditions on the row of the ledger `delivery`. Status 1 is delivered, and 2 is bounced.
_CONDITIONS: Final = {
    "delivered": "delivery.status = 1",
    "bounced": "delivery.status = 2",
    "received": "delivery.received_at IS NOT NULL",
    "clicked": _CLICKED,
    "not_clicked": f"delivery.status = 1 AND NOT {_CLICKED}",
    "not_received": "delivery.status = 1 AND delivery.received_at IS NULL",
}


def outcome_part(notification: str, outcome: str) -> str:
    """The condition that the notification ended with `outcome` for the row named `subscription`.
    One lookup in the ledger's primary key, and for clicks one for each correction. `notification`:
    a placeholder for its id."""
    named = f"{notification}::uuid"
    return f"""EXISTS (SELECT FROM notifications_app_delivery AS delivery
  WHERE delivery.notification_id = {named} AND delivery.subscription_id = subscription.id
    AND {_CONDITIONS[outcome].format(named=named)} OFFSET 0)"""


def ledger_window_part(audience: str, outcome: str, columns: str = "") -> str:
    """As `window_part`, for the recipients of an earlier notification that ended with `outcome`;
    `audience`: the text of the condition. The size of a window is the number of recipients that are
    read, whatever became of them, so that its work is bounded. Parameters: those of `audience`,
    `channel`, `platform`, `named` (the notification), `cursor` and `window`."""
    has_ended_so = _CONDITIONS[outcome].format(named="%(named)s::uuid")
    return f"""
        SELECT named.id, push_service, {columns}
          subscription.id IS NOT NULL AND {audience} AS is_recipient
        FROM (
          SELECT subscription_id AS id, {has_ended_so} AS has_ended_so
          FROM notifications_app_delivery AS delivery
          WHERE notification_id = %(named)s AND subscription_id > %(cursor)s
          ORDER BY subscription_id LIMIT %(window)s
        ) AS named LEFT JOIN LATERAL (
          SELECT * FROM subscriptions_app_subscription
          WHERE id = named.id AND named.has_ended_so AND expired_at IS NULL
            AND channel_id = %(channel)s AND platform = %(platform)s OFFSET 0
        ) AS subscription ON true
    """  # noqa: S608 - names of our own


# At most `most` recipients of a notification on all platforms as candidates. OFFSET 0, so that
# PostgreSQL looks up each device by its id, and never reads the channel for a join.
LEDGER_CANDIDATES: Final = """
  SELECT subscription.* FROM (
    SELECT subscription_id AS id FROM notifications_app_delivery
    WHERE notification_id = %(named)s LIMIT %(most)s
  ) AS named LEFT JOIN LATERAL (
    SELECT * FROM subscriptions_app_subscription
    WHERE id = named.id AND expired_at IS NULL OFFSET 0
  ) AS subscription ON true
"""

# How many recipients the notification `named` has after the parameter `cursor`, at most `most`.
COUNTED_RECIPIENTS: Final = """SELECT count(*) FROM (
  SELECT FROM notifications_app_delivery
  WHERE notification_id = {named} AND subscription_id > %(cursor)s
  LIMIT %(most)s
) AS first"""

# The notifications among `ids` that do not belong to the channel.
FOREIGN_NOTIFICATIONS: Final = """
SELECT named.id FROM unnest(%(ids)s::uuid[]) AS named (id)
WHERE NOT EXISTS (SELECT FROM notifications_app_notification AS notification
                  WHERE notification.id = named.id AND channel_id = %(channel)s)
ORDER BY named.id
"""
