"""Hooks of drf-spectacular that improve the OpenAPI document for generators of clients.

They do not change what is allowed, only where a shape is, its name and its description.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

Document = dict[str, Any]
Shape = dict[str, Any]

_PATH_IDS: Final = {
    "channel_id": "The channel's id.",
    "tag": "1 to 64 characters of `A-Z a-z 0-9 _ . : -`.",
    "notification_id": "The notification's id, as the send returned it.",
    "segment_id": "The segment's id.",
    "template_id": "The template's id.",
    "schedule_id": "The schedule's id.",
    "automation_id": "The automation's id.",
    "newsfeed_id": "The newsfeed's id.",
    "webhook_id": "The webhook's id.",
    "identity_key_id": "The identity key's id.",
}
_ENUMS: Final = {
    "AudienceKind": "Whom a notification is for.",
    "AutomationEvent": "What an automation follows. See docs/automations.md.",
    "AutomationRecipient": "Who gets what an automation sends. See docs/automations.md.",
    "CapChoice": "Whether caps of the channel count for a send. See docs/caps.md.",
    "ClickBehavior": "What a click in a browser does with a link of the site. See docs/content.md.",
    "CredentialKind": "What a platform's push service knows the channel by.",
    "DeliveryOutcome": "The outcome of a recipient.",
    "ExplainStep": "A decision about a device. See docs/explain.md.",
    "ExplainVerdict": "What becomes, or became, of the message for a device. See docs/explain.md.",
    "HandOverEnd": "Until the first delivery, or until every recipient had an outcome.",
    "IdentityAlgorithm": "How an identity key signs.",
    "DeviceEvent": "What a device reports. See docs/events.md.",
    "InterruptionLevel": "How much an iPhone lets the notification disturb.",
    "NotificationStatus": "As docs/states.md explains.",
    "OnMissing": "What becomes of a recipient without a value. See docs/content.md.",
    "Platform": "What a device receives push by.",
    "PromptEvent": "What a visitor did with a prompt. See docs/prompts.md.",
    "PromptKind": "How a prompt appears. See docs/prompts.md.",
    "StatisticsInterval": "How long each step is, in UTC. See docs/statistics.md.",
    "TargetState": "What became of one that a send names. See docs/direct.md.",
    "TestMetric": "What a test of variants compares. See docs/ab-tests.md.",
    "TextDirection": "Which way a browser writes the texts.",
    "Urgency": "Which devices that save energy are woken (RFC 8030 section 5.3).",
    "WebhookEvent": "What a webhook is told. See docs/webhooks.md.",
    "WebhookFormat": "What a webhook gets: signed messages, or texts for a chat.",
    "WebhookState": "What became of a message at a webhook.",
    "ReplayState": "Which messages are sent again.",
    "Visibility": "What Android shows on the lock screen.",
}
_DOCUMENT: Final = re.compile(r"docs/([a-z-]+)\.md")


def name_shapes(result: Document, **_: Any) -> Document:
    """Moves each shape with a title to a component of that name.

    Generators use the name of a component; for other shapes they invent a name.
    """
    named: dict[str, Shape] = {}
    schemas = result["components"]["schemas"]
    for name, schema in list(schemas.items()):
        schemas[name] = _lifted({**schema}, named)
    for name, schema in named.items():
        if schemas.setdefault(name, schema) != schema:
            raise ValueError(f"two shapes are called {name}")
    result["components"]["schemas"] = dict(sorted(schemas.items()))
    return result


def _lifted(node: Any, named: dict[str, Shape]) -> Any:
    if isinstance(node, list):
        return [_lifted(each, named) for each in node]
    if not isinstance(node, dict):
        return node
    shape = {key: _lifted(value, named) for key, value in node.items()}
    if _is_wrapped(shape):
        shape = shape | shape.pop("allOf")[0]
    title = shape.get("title")
    if not isinstance(title, str):
        return shape
    del shape["title"]
    if named.setdefault(title, shape) != shape:
        raise ValueError(f"two shapes are called {title}")
    return {"$ref": f"#/components/schemas/{title}"}


def _is_wrapped(shape: Shape) -> bool:
    """Whether allOf has one member without a reference, which can replace it."""
    members = shape.get("allOf")
    return isinstance(members, list) and len(members) == 1 and "$ref" not in members[0]


def say_defaults(result: Document, **_: Any) -> Document:
    """Moves defaults to descriptions, because generators treat a property with a default as
    required."""
    for shape in _properties(result):
        if "default" in shape:
            told = f"Default: `{json.dumps(shape.pop('default'))}`."
            shape["description"] = f"{shape.get('description', '')} {told}".strip()
    return result


def _properties(result: Document) -> Iterator[Shape]:
    for schema in result["components"]["schemas"].values():
        yield from schema.get("properties", {}).values()


def place_nulls(result: Document, **_: Any) -> Document:
    """Moves `nullable` into the referenced shape, because in OpenAPI 3.0 a reference cannot add
    it. It stays at references to an enumeration, which generators refuse with null, and to a shape
    of responses or of required fields; generators also understand it there."""
    schemas = result["components"]["schemas"]
    nullable = [each for each in _properties(result) if each.get("nullable") and "allOf" in each]
    uses = Counter(_references(result))
    own = Counter(name for each in nullable for name in _references(each))
    for shape in nullable:
        (name,) = _references(shape)
        if uses[name] == own[name] and "enum" not in schemas[name]:
            schemas[name]["nullable"] = shape.pop("nullable")
        else:
            shape["type"] = schemas[name]["type"]
    return result


def _references(node: Any) -> Iterator[str]:
    """The names of the components that are referred to."""
    match node:
        case {"$ref": str(reference)}:
            yield reference.rpartition("/")[2]
        case dict():
            for each in node.values():
                yield from _references(each)
        case list():
            for each in node:
                yield from _references(each)


def require_bodies(result: Document, **_: Any) -> Document:
    """Marks bodies as required, even if all their fields are optional."""
    for operation in _operations(result):
        if "requestBody" in operation:
            operation["requestBody"]["required"] = True
    return result


def place_usual_responses(result: Document, **_: Any) -> Document:
    """Renames other responses to 2XX if the usual status is 202, because generators treat the
    response with the lowest status as the usual one."""
    for operation in _operations(result):
        responses = operation["responses"]
        if {"200", "202"} <= responses.keys():
            responses["2XX"] = responses.pop("200")
    return result


def _operations(result: Document) -> Iterator[dict[str, Any]]:
    for operations in result["paths"].values():
        yield from operations.values()


def describe_ids(result: Document, **_: Any) -> Document:
    """Describes the ids in paths in the same way everywhere."""
    for operation in _operations(result):
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path" and parameter["name"] in _PATH_IDS:
                parameter.setdefault("description", _PATH_IDS[parameter["name"]])
    return result


def describe_enums(result: Document, **_: Any) -> Document:
    """Adds a description to each enumeration."""
    for name, schema in result["components"]["schemas"].items():
        if "enum" in schema:
            schema["description"] = _ENUMS[name]
    return result


def share_parts(result: Document, **_: Any) -> Document:
    """Moves the headers and examples of responses to components. Different ones of one name get
    numbers."""
    headers: dict[str, Any] = {}
    examples: dict[str, Any] = {}
    for operation in _operations(result):
        for response in operation["responses"].values():
            if "headers" in response:
                response["headers"] = _shared(response["headers"], headers, "headers")
            for content in response.get("content", {}).values():
                if "examples" in content:
                    content["examples"] = _shared(content["examples"], examples, "examples")
    result["components"]["headers"] = dict(sorted(headers.items()))
    result["components"]["examples"] = dict(sorted(examples.items()))
    return result


def _shared(parts: Document, shared: Document, kind: str) -> Document:
    """References to the parts, which are added to `shared`."""
    return {
        name: {"$ref": f"#/components/{kind}/{_shared_name(shared, name, each)}"}
        for name, each in parts.items()
    }


def _shared_name(shared: Document, name: str, part: Any) -> str:
    numbered = (name if number == 1 else f"{name}{number}" for number in count(1))
    return next(each for each in numbered if shared.setdefault(each, part) == part)


def link_documents(result: Document, **_: Any) -> Document:
    """Turns names of documents in descriptions into links to the pages of the service."""
    linked: Document = _linked(result)
    return linked


def _linked(node: Any) -> Any:
    if isinstance(node, list):
        return [_linked(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _DOCUMENT.sub(r"[\1](/docs/\1)", value)
        if key == "description" and isinstance(value, str)
        else _linked(value)
        for key, value in node.items()
    }
