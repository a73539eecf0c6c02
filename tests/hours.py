"""For tests whose rows must all lie in one hour of UTC, or in hours counted back from it."""

import time


def stay_in_one_hour(seconds=20):
    """Waits for the next hour where fewer seconds are left of this one."""
    left = -time.time() % 3600
    if left < seconds:
        time.sleep(left)
