"""The message of FCM against Google's own description of its API, the discovery document of v1."""

import json
from importlib import resources

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifications_app.content.fields import VISIBILITIES
from tests.delivery.fcm.test_request import ACTIONS, ANDROID, request_for

DOCUMENTS = resources.files("googleapiclient.discovery_cache.documents")

_OTHER = ("format", "id")  # `id` is a name there, and an address in JSON Schema


def as_json_schema(node):
    """The discovery document is of JSON Schema draft 3, without what it does not say: that no other
    names are allowed. Google's reference spells the names with underscores, too."""
    if isinstance(node, list):
        return [as_json_schema(each) for each in node]
    if not isinstance(node, dict):
        return node
    made = {name: as_json_schema(value) for name, value in node.items() if name not in _OTHER}
    if "$ref" in node:
        made["$ref"] = f"#/definitions/{node['$ref']}"
    if "enum" in node:
        made["enum"] = node["enum"]
    if isinstance(node.get("properties"), dict):
        made["properties"] = {snake(name): each for name, each in made["properties"].items()}
        made["additionalProperties"] = False
    return made


def snake(name):
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


@pytest.fixture(scope="module")
def check():
    document = json.loads((DOCUMENTS / "fcm.v1.json").read_text())
    definitions = as_json_schema(document["schemas"])
    schema = {"definitions": definitions, "$ref": "#/definitions/SendMessageRequest"}
    return jsonschema.Draft4Validator(schema).validate


def checked(check, **content):
    request = json.loads(request_for(**content).body)
    check(request)
    return request["message"]


def test_a_plain_message_is_of_googles_type(check):
    checked(check, data={"city": "Bern"}, topic="rain", image="https://example.com/rain.png")


@pytest.mark.parametrize("name", ANDROID)
def test_each_field_for_android_is_of_googles_type(check, name):
    assert len(checked(check, android={name: ANDROID[name]})["android"]["notification"]) <= 2


@pytest.mark.parametrize("visibility", VISIBILITIES)
def test_each_visibility_is_one_of_googles(check, visibility):
    checked(check, android={"visibility": visibility})


@pytest.mark.parametrize("data_only", [False, True])
def test_all_fields_together_are_of_googles_type(check, data_only):
    checked(check, android=ANDROID | {"data_only": data_only}, actions=ACTIONS, urgency="low")


TEXT = st.text(min_size=1, max_size=20)


@given(st.dictionaries(st.sampled_from(["channel_id", "sound", "tag", "click_action"]), TEXT))
def test_any_text_is_of_googles_type(check, android):
    checked(check, android=android)


@pytest.mark.parametrize(
    "wrong",
    [
        {"message": {"android": {"notification": {"chanel_id": "orders"}}}},
        {"message": {"android": {"notification": {"notification_count": "3"}}}},
        {"message": {"android": {"notification": {"visibility": "hidden"}}}},
        {"message": {"data": {"a": 5}}},
    ],
)
def test_the_description_refuses_what_google_refuses(check, wrong):
    with pytest.raises(jsonschema.ValidationError):
        check(wrong)
