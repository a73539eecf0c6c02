"""Every request that the OpenAPI document allows is answered as the document says.

schemathesis makes the requests and judges the answers: `call_and_validate` raises the failures of
`CHECKS`.
"""

from uuid import UUID

import pytest
from django.core.wsgi import get_wsgi_application
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.core.failures import FailureGroup
from schemathesis.openapi import from_dict, from_wsgi

from channels_app.webhooks import webhook_create
from notifications_app.content.tracking import make_token
from pushsvc.common.ids import uuid7
from tests.api.document import CHECKS
from tests.factories import (
    make_automation,
    make_newsfeed,
    make_schedule,
    make_segment,
    make_template,
)
from tests.segments import attribute

OPERATIONS = [
    found.ok() for found in from_wsgi("/openapi.json", get_wsgi_application()).get_all_operations()
]


@pytest.fixture
def own(alice):
    """Ids that exist, for the parameters of paths."""
    sent = alice.send({"body": "x", "url": "https://shop.example/"}).json()
    return {
        "channel_id": str(alice.channel.id),
        "notification_id": sent["notification_id"],
        "segment_id": str(make_segment(alice.channel, attribute("a", "eq", 5)).id),
        "template_id": str(make_template(alice.channel).id),
        "token": make_token(UUID(sent["notification_id"]), uuid7()),
        "tag": "team-7",
        "category_key": "offers",
        "identity_key_id": str(uuid7()),
        "webhook_id": str(make_webhook(alice)),
        "schedule_id": str(make_schedule(alice.channel).pk),
        "newsfeed_id": str(make_newsfeed(alice.channel).pk),
        "automation_id": str(make_automation(alice.channel).pk),
    }


def make_webhook(owner):
    events = ["notifications.finished"]
    url = "https://backend.shop.com/"
    return webhook_create(channel=owner.channel, url=url, events=events)[0].pk


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
def test_every_answer_is_named_by_the_document(operation, data, alice, own):
    case = data.draw(operation.as_strategy())
    for name in case.path_parameters:
        case.path_parameters[name] = own[name]
    headers = {"Authorization": f"Key {alice.key}", "X-Channel-ID": str(alice.channel.id)}

    case.call_and_validate(headers=headers, checks=CHECKS)


@pytest.mark.django_db(transaction=True)
def test_an_answer_that_the_document_does_not_name_fails(alice):
    """The checks of the test above can fail: here the document lacks the answer that is given."""
    path = "/channel/{channel_id}"
    document = Client().get("/openapi.json").json()
    del document["paths"][path]["get"]["responses"]["404"]
    schema = from_dict(document)
    schema.app = get_wsgi_application()
    case = schema[path]["GET"].Case(path_parameters={"channel_id": str(uuid7())})

    with pytest.raises(FailureGroup, match="Undocumented status code"):
        case.call_and_validate(headers={"Authorization": f"Key {alice.key}"}, checks=CHECKS)
