"""`DAY`, `DAY_AND_TIME` and `WEEKDAY` are ours; the others are Django's."""

DAY = "j F Y"
DAY_AND_TIME = "l, j F Y, H:i"
WEEKDAY = "l, j F"
