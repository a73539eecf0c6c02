"""Hooks of drf-spectacular that make the OpenAPI document pleasant for those who generate clients.

None of them changes what is allowed: only where a shape stands, what it is called, and what is said
about it.
"""

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

Document = dict[str, Any]
Shape = dict[str, Any]

_PATH_IDS: Final = {
    "channel_id": "The channel's id.",
    "tag": "1 to 64 characters of `A-Z a-z 0-9 _ . : -`.",
    "notification_id": "The notification's id, as the send was answered.",
    "segment_id": "The segment's id.",
    "template_id": "The template's id.",
    "identity_key_id": "The identity key's id.",
}
_ENUMS: Final = {
    "AudienceKind": "Whom a notification is for.",
    "CredentialKind": "What a platform's push service knows the channel by.",
    "IdentityAlgorithm": "How an identity key signs.",
    "DeviceEvent": "What a device reports. See docs/events.md.",
    "InterruptionLevel": "How much an iPhone lets the notification disturb.",
    "NotificationStatus": "As docs/states.md explains.",
    "OnMissing": "What becomes of a recipient without a value. See docs/content.md.",
    "Platform": "What a device receives push by.",
    "TargetState": "What became of one that a send names. See docs/direct.md.",
    "TextDirection": "Which way a browser writes the texts.",
    "Urgency": "Which devices that save energy are woken (RFC 8030 section 5.3).",
    "Visibility": "What Android shows on the lock screen.",
}
_DOCUMENT: Final = re.compile(r"docs/([a-z]+)\.md")


def name_shapes(result: Document, **_: Any) -> Document:
    """A shape with a title becomes the component of that name, wherever it stands.

    Generators give it that name; a shape without one gets a name of their own making.
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
    """Where the one member of allOf refers to nothing, it can stand for itself."""
    members = shape.get("allOf")
    return isinstance(members, list) and len(members) == 1 and "$ref" not in members[0]


def say_defaults(result: Document, **_: Any) -> Document:
    """In words: generators take a property with a default for one that must be given."""
    for shape in _properties(result):
        if "default" in shape:
            told = f"Default: `{json.dumps(shape.pop('default'))}`."
            shape["description"] = f"{shape.get('description', '')} {told}".strip()
    return result


def _properties(result: Document) -> Iterator[Shape]:
    for schema in result["components"]["schemas"].values():
        yield from schema.get("properties", {}).values()


def place_nulls(result: Document, **_: Any) -> Document:
    """What may be null says so itself: in OpenAPI 3.0 nobody who refers to it can add that."""
    schemas = result["components"]["schemas"]
    for shape in list(_properties(result)):
        if shape.get("nullable") and "allOf" in shape:
            (reference,) = shape["allOf"]
            schemas[reference["$ref"].rpartition("/")[2]]["nullable"] = shape.pop("nullable")
    return result


def require_bodies(result: Document, **_: Any) -> Document:
    """A call with a body needs one, even where each of its fields may be left out."""
    for operation in _operations(result):
        if "requestBody" in operation:
            operation["requestBody"]["required"] = True
    return result


def place_usual_answers(result: Document, **_: Any) -> Document:
    """Generators take the answer with the lowest status for the usual one. Where that is 202, what
    else may come stands as 2XX."""
    for operation in _operations(result):
        responses = operation["responses"]
        if {"200", "202"} <= responses.keys():
            responses["2XX"] = responses.pop("200")
    return result


def _operations(result: Document) -> Iterator[dict[str, Any]]:
    for operations in result["paths"].values():
        yield from operations.values()


def describe_ids(result: Document, **_: Any) -> Document:
    """What the ids of the paths are: the same in all of them."""
    for operation in _operations(result):
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path" and parameter["name"] in _PATH_IDS:
                parameter.setdefault("description", _PATH_IDS[parameter["name"]])
                parameter["schema"] = {"type": "string", "format": "uuid"}  # as answers have them
    return result


def describe_enums(result: Document, **_: Any) -> Document:
    """What each enumeration is about."""
    for name, schema in result["components"]["schemas"].items():
        if "enum" in schema:
            schema["description"] = _ENUMS[name]
    return result


def share_examples(result: Document, **_: Any) -> Document:
    """An example of an answer stands once, under components. Two of one name get a number."""
    shared: dict[str, Any] = {}
    for operation in _operations(result):
        for response in operation["responses"].values():
            for content in response.get("content", {}).values():
                if "examples" in content:
                    content["examples"] = {
                        name: {"$ref": f"#/components/examples/{_shared(shared, name, example)}"}
                        for name, example in content["examples"].items()
                    }
    result["components"]["examples"] = dict(sorted(shared.items()))
    return result


def _shared(shared: dict[str, Any], name: str, example: Any) -> str:
    """The name under which `shared` has the example now."""
    numbered = (name if number == 1 else f"{name}{number}" for number in count(1))
    return next(each for each in numbered if shared.setdefault(each, example) == example)


def link_documents(result: Document, **_: Any) -> Document:
    """Descriptions lead to the documents that they name, as the service serves them."""
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
