"""What differs from Django's formats of the language. Fields take ISO 8601, as browsers send it."""

DAY = "j F Y"
DAY_AND_TIME = "l، j F Y، H:i"
WEEKDAY = "l، j F"
# With Western digits, as browsers write them (Intl.NumberFormat).
DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
DATE_INPUT_FORMATS = ["%Y-%m-%d"]
DATETIME_INPUT_FORMATS = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"]
