"""Notes when devices clicked last."""


def last_clicks_part(source: str) -> str:
    """An INSERT for the rows of the CTE `source` (subscription_id, clicked), after those of the CTE
    `counted` were locked, in the order of subscriptions. It notes the first click of a day (UTC);
    other clicks of the day only read a row.

    Subscriptions are locked against deletion first. Otherwise the foreign key would lock them at
    the end of the statement, after the channel's totals."""
    return f"""INSERT INTO subscriptions_app_lastclick AS last (subscription_id, clicked_at)
  SELECT clicker.id, statement_timestamp() FROM (
    SELECT id FROM subscriptions_app_subscription AS subscription
    WHERE (SELECT count(*) FROM counted) > 0
      AND id IN (SELECT subscription_id FROM {source} WHERE clicked)
      AND NOT EXISTS (
      SELECT FROM subscriptions_app_lastclick AS known
      WHERE known.subscription_id = subscription.id
        AND known.clicked_at >= date_trunc('day', statement_timestamp(), 'UTC'))
    ORDER BY id FOR KEY SHARE
  ) AS clicker
  ON CONFLICT (subscription_id) DO UPDATE SET clicked_at = excluded.clicked_at
  WHERE last.clicked_at < date_trunc('day', excluded.clicked_at, 'UTC')"""  # noqa: S608 - a constant
