"""For tests whose rows must lie in one hour of UTC, or at whole hours before it."""

import time


def stay_in_one_hour(seconds=20):
    """Waits for the next hour if fewer than this many seconds are left of the current one."""
    left = -time.time() % 3600
    if left < seconds:
        time.sleep(left)
