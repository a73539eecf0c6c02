"""Reads a newsfeed, for the API and the console."""

from typing import Final

from rest_framework.exceptions import ErrorDetail, ValidationError

from notifications_app.content.entries import EXAMPLE, filled
from notifications_app.content.placeholders import NotATemplate
from notifications_app.content.values import Content, SendRequest
from notifications_app.models import (
    LEAST_MINUTES,
    MAX_NEWSFEED_URL,
    MAX_REPEATED_NAME,
    MOST_A_DAY,
    MOST_MINUTES,
)
from notifications_app.sends.schema import read_scheduled
from pushsvc.common.http.fields import Flag, StrictSerializer, Text, WholeNumber

DEFAULT_MINUTES: Final = 15
DEFAULT_A_DAY: Final = 5


class NewsfeedSettings(StrictSerializer):
    """A newsfeed without what it sends."""

    name = Text(min_length=1, max_length=MAX_REPEATED_NAME, help_text="For people.")
    url = Text(
        min_length=1,
        max_length=MAX_NEWSFEED_URL,
        help_text="The https address of an RSS or Atom feed.",
    )
    enabled = Flag(default=True, help_text="false: it is not checked, and sends nothing.")
    every_minutes = WholeNumber(
        min=LEAST_MINUTES,
        max=MOST_MINUTES,
        default=DEFAULT_MINUTES,
        help_text="How often it is checked.",
    )
    daily_limit = WholeNumber(
        min=1,
        max=MOST_A_DAY,
        default=DEFAULT_A_DAY,
        help_text="How many entries are sent on one day of the channel's time zone, the newest"
        " first. Others are never sent.",
    )


def read_newsfeed(data: object) -> SendRequest:
    """The send of a newsfeed, as `read_scheduled`. Its placeholders of entries stay; what they make
    of an entry is checked. Raises DRF's ValidationError."""
    return read_scheduled(data, seen=_with_example)


def _with_example(content: Content) -> Content:
    try:
        return filled(content, EXAMPLE)
    except NotATemplate as error:
        raise ValidationError({error.attr: [ErrorDetail(str(error), "not_a_template")]}) from error
