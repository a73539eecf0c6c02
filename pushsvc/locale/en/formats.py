"""`DAY` and `DAY_AND_TIME` are ours; the others are Django's."""

DAY = "j F Y"
DAY_AND_TIME = "l, j F Y, H:i"
