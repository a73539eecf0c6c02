"""The rate that the push service allows each sender.

Chrome's push service responds with 429 to more than a number of messages a minute of a site with
little engagement (https://developer.chrome.com/blog/web-push-rate-limits). It does not publish how
it counts. Here a minute begins with the first message after the last minute ended.
"""

import math
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Minute:
    began: float
    messages: int = 0


@dataclass(slots=True)
class RateLimit:
    """`messages` for each VAPID key in `seconds`. `retry_after`: whether a rejection states the
    rest of the minute. Only the sandbox's loop may call `rejects`."""

    messages: int
    retry_after: bool = False
    seconds: float = 60.0
    _minutes: dict[str, _Minute] = field(default_factory=dict)

    def rejects(self, key: str, now: float) -> dict[str, str] | None:
        """Counts a message of the key. Returns None if it is allowed, and the headers of the
        rejection if not. `now` is Unix time in seconds."""
        minute = self._minutes.get(key)
        if minute is None or now >= minute.began + self.seconds:
            minute = self._minutes[key] = _Minute(now)
        if minute.messages < self.messages:
            minute.messages += 1
            return None
        wait = math.ceil(minute.began + self.seconds - now)
        return {"Retry-After": str(wait)} if self.retry_after else {}
