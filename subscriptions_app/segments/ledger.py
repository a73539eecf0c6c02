"""The conditions of rules on the ledger: how earlier notifications ended for a device.

The ledger is a table of notifications_app, which this app must not import. So only this module
names the table, in SQL.
"""

from typing import Final

# Conditions on a row of the ledger. Status 1 is delivered, and 2 is bounced.
_CONDITIONS: Final = {
    "delivered": "status = 1",
    "bounced": "status = 2",
    "received": "received_at IS NOT NULL",
    "clicked": "clicked_at IS NOT NULL",
    "not_clicked": "status = 1 AND clicked_at IS NULL",
    "not_received": "status = 1 AND received_at IS NULL",
}


def outcome_part(notification: str, outcome: str) -> str:
    """The condition that the notification ended with `outcome` for the row named `subscription`.
    One lookup in the ledger's primary key. `notification`: a placeholder for its id."""
    return f"""EXISTS (SELECT FROM notifications_app_delivery AS delivery
  WHERE delivery.notification_id = {notification}::uuid
    AND delivery.subscription_id = subscription.id AND {_CONDITIONS[outcome]} OFFSET 0)"""


# The notifications among `ids` that do not belong to the channel.
FOREIGN_NOTIFICATIONS: Final = """
SELECT named.id FROM unnest(%(ids)s::uuid[]) AS named (id)
WHERE NOT EXISTS (SELECT FROM notifications_app_notification AS notification
                  WHERE notification.id = named.id AND channel_id = %(channel)s)
ORDER BY named.id
"""
