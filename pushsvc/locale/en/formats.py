"""`DAY_AND_TIME` is ours; the others are Django's."""

DAY_AND_TIME = "l, j F Y, H:i"
