"""A newsfeed of a channel: a site publishes entries, and each becomes a notification."""

from tests.faults.processes import until
from tests.pipeline.newsfeeds import item, rss

_SEND = {"title": "{{ entry.title }}", "body": "Read it.", "target_platforms": ["web"]}
# What a killed worker held is free after five seconds, instead of a minute.
_CHECK = """
UPDATE notifications_app_newsfeed SET next_at = statement_timestamp(),
  lease_until = CASE WHEN lease_until > statement_timestamp() + interval '55 s' THEN lease_until END
WHERE channel_id = %s AND found IS NULL
"""
_READ = """
SELECT coalesce(min(entry_count), 0) FROM notifications_app_newsfeed
WHERE channel_id = %s AND found IS NULL AND checked_at IS NOT NULL
"""
_MADE = """
SELECT id, title FROM notifications_app_notification
WHERE channel_id = %s AND title LIKE 'Title %%'
"""


class Feed:
    """The newsfeed of a channel, and what its site has published."""

    def __init__(self, channel, site):
        self._channel = channel
        self._site = site
        self._items = [item(0)]
        self._serve()
        body = {"name": "News", "url": f"{site.origin}/{channel.id}", "daily_limit": 50}
        body["notification"] = _SEND | {"cap": "ignore"}
        made = channel._call("POST", f"/channel/{channel.id}/newsfeeds", body)
        assert made.status == 201, made
        self._wait_until_read()  # what it finds at first is not sent

    def publish(self):
        """One more entry, which is to be found soon."""
        self._items.append(item(len(self._items)))
        self._serve()
        self._channel.system.rows(_CHECK, [self._channel.id])

    def wait_until_sent(self):
        """Waits until every entry was read. Returns the notifications, one of each entry."""
        self._wait_until_read()
        made = self._channel.system.rows(_MADE, [self._channel.id])
        titles = [f"Title {number}" for number in range(1, len(self._items))]
        assert sorted(title for _, title in made) == sorted(titles)
        return [id_ for id_, _ in made]

    def _serve(self):
        self._site.serve(rss(*self._items))

    def _wait_until_read(self):
        def is_read():
            self._channel.system.rows(_CHECK, [self._channel.id])
            return self._channel.system.value(_READ, [self._channel.id]) == len(self._items)

        until(is_read, "the newsfeed is read")
