"""A message with texts for one recipient is the message that everybody gets with these texts."""

import time
from uuid import uuid4

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from notifications_app.content.personal import values_of
from notifications_app.content.values import Content
from notifications_app.delivery.apns import payload as apns
from notifications_app.delivery.fcm import payload as fcm
from notifications_app.delivery.fcm.message import request_body
from notifications_app.delivery.messages import Messages
from notifications_app.delivery.types import Destination, Message
from notifications_app.delivery.webpush import payload as webpush
from pushsvc.common.platforms import Platform

PAYLOADS = {Platform.WEB: webpush, Platform.ANDROID: fcm, Platform.IOS: apns}
DESTINATIONS = [Destination(uuid4(), address, "t") for address in ('a"b', "cdEf_-0123456789abcdef")]
URL = "https://shop.example/"
PLACES = [
    {"body": "{{ a }} and {{ b }}"},
    {"title": "{{ a }}", "body": "{{ a }}", "icon": f"{URL}i.png"},
    {"title": "{{ a }}", "body": "same", "data": {"x": "same"}},
    {"url": f"{URL}{{{{ a }}}}", "image": f"{URL}{{{{ b }}}}", "icon": f"{URL}{{{{ a }}}}"},
    {"title": "{{ a }}", "data": {"title": "{{ b }}", "x": "y"}},
    {"actions": [{"id": "buy", "title": "{{ a }}", "url": f"{URL}{{{{ b }}}}"}]},
    {"ios": {"subtitle": "{{ a }}"}, "title": "{{ b }}"},
    {"title": "{{ a }}", "android": {"data_only": True}},
]
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


def encoded(platform, message):
    """The payload, and what FCM gets of it."""
    bodies = [PAYLOADS[platform].payload(message, "t")]
    if platform == Platform.ANDROID:
        bodies += [request_body(message, destination, 60) for destination in DESTINATIONS]
    return bodies


@pytest.mark.parametrize("platform", PAYLOADS)
@pytest.mark.parametrize("fields", PLACES, ids=lambda each: "-".join(each))
@example(a="", b="")
@example(a='"},"x":"', b="\\u0000body\\u0000")
@example(a='\\"', b="{{ a }}")
@given(a=texts, b=texts)
def test_texts_of_one_recipient_stand_where_those_of_all_would(platform, fields, a, b):
    personal = Content(**{"title": "T", "body": "B", "ttl": 60, "personalize": True} | fields)
    messages = Messages(uuid4(), personal, platform, expires_at=time.monotonic() + 60)
    values = values_of(platform=platform, notification_id="", attributes={"a": a, "b": b})
    message = messages.filled("", values)

    for_all = Message(message.notification_id, message.whole, message.expires_at)
    assert encoded(platform, message) == encoded(platform, for_all)
