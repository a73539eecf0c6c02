"""Reads the send of a newsfeed, for the API and the console."""

from rest_framework.exceptions import ErrorDetail, ValidationError

from notifications_app.content.entries import EXAMPLE, filled
from notifications_app.content.placeholders import NotATemplate
from notifications_app.content.values import Content, SendRequest
from notifications_app.sends.schema import read_scheduled


def read_newsfeed(data: object) -> SendRequest:
    """The send of a newsfeed, as `read_scheduled`. Its placeholders of entries stay; what they make
    of an entry is checked. Raises DRF's ValidationError."""
    return read_scheduled(data, seen=_with_example)


def _with_example(content: Content) -> Content:
    try:
        return filled(content, EXAMPLE)
    except NotATemplate as error:
        raise ValidationError({error.attr: [ErrorDetail(str(error), "not_a_template")]}) from error
