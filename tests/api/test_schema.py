"""Whatever the OpenAPI document lets a client send is answered as the document says."""

from uuid import UUID

import pytest
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.openapi import from_wsgi

from notifications_app.tracking import make_token
from pushsvc.common.ids import uuid7
from tests.api.document import CHECKS
from tests.factories import make_segment
from tests.segments import attribute

OPERATIONS = [
    found.ok() for found in from_wsgi("/openapi.json", get_wsgi_application()).get_all_operations()
]


@pytest.fixture
def own(alice):
    """What a path may name."""
    sent = alice.send({"body": "x", "url": "https://shop.example/"}).json()
    return {
        "channel_id": str(alice.channel.id),
        "notification_id": sent["notification_id"],
        "segment_id": str(make_segment(alice.channel, attribute("a", "eq", 5)).id),
        "token": make_token(UUID(sent["notification_id"]), uuid7()),
    }


@pytest.mark.django_db(transaction=True)  # as a real server, it closes its connections
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_every_answer_is_one_that_the_document_names(operation, data, alice, own):
    case = data.draw(operation.as_strategy())
    for name in case.path_parameters:
        case.path_parameters[name] = own[name]
    headers = {"Authorization": f"Key {alice.key}", "X-Channel-ID": str(alice.channel.id)}

    case.call_and_validate(headers=headers, checks=CHECKS)
