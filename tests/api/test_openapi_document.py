"""What generators of clients need from the OpenAPI document."""

import json
import re
import tomllib

import pytest

from pushsvc.site.openapi_document import name_shapes
from tests import openapi
from tests.forked import CHECKOUT


@pytest.fixture(scope="module")
def document():
    return openapi.document()


def operations(document):
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield f"{method} {path}", operation


def properties(document):
    for name, schema in document["components"]["schemas"].items():
        for of, shape in schema.get("properties", {}).items():
            yield f"{name}.{of}", shape


def test_a_tag_in_a_path_is_described_as_any_tag(document):
    found = [
        parameter["schema"]
        for _, operation in operations(document)
        for parameter in operation.get("parameters", ())
        if (parameter["in"], parameter["name"]) == ("path", "tag")
    ]

    assert found
    assert all(re.fullmatch(each["pattern"], "news:2026.de") for each in found)
    assert not any("format" in each for each in found)


def test_every_operation_and_property_is_described(document):
    bare = [name for name, operation in operations(document) if not operation.get("description")]
    bare += [
        f"{name} {parameter['name']}"
        for name, operation in operations(document)
        for parameter in operation.get("parameters", ())
        if not parameter.get("description")
    ]
    schemas = document["components"]["schemas"]
    bare += [name for name, schema in schemas.items() if not schema.get("description")]
    bare += [
        name
        for name, shape in properties(document)
        if not shape.get("description") and "$ref" not in shape
    ]

    assert bare == []


def test_descriptions_link_to_documents_by_their_pages(document):
    text = json.dumps(document)

    assert "](/docs/ab-tests)" in text
    assert re.findall(r"docs/[a-z-]+\.md", text) == []


def test_the_document_the_project_and_the_changelog_name_the_same_version(document):
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    newest = re.search(r"^## (\S+)$", (CHECKOUT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert {project["version"], newest[1]} == {document["info"]["version"]}


def test_no_property_has_a_default_that_makes_generators_require_it(document):
    assert [name for name, shape in properties(document) if "default" in shape] == []
    send = document["components"]["schemas"]["SendInput"]
    assert "required" not in send  # a template may give the body
    assert send["properties"]["ttl"]["description"].endswith("Default: `259200`.")


def test_only_a_link_that_cannot_have_placeholders_is_a_uri(document):
    """`https://shop.example/{{ city }}` is none, and some generated clients refuse it."""
    formats = {name: shape.get("format", "") for name, shape in properties(document)}

    assert [name for name, each in formats.items() if "uri" in each] == [
        "Action.icon",
        "WebContent.badge",
    ]


def test_rules_and_attributes_are_named_schemas(document):
    schemas = document["components"]["schemas"]
    named = {each.get("$ref", "").rpartition("/")[2] for each in schemas["SegmentRule"]["oneOf"]}

    assert named == {
        "RuleAll",
        "RuleAny",
        "RuleNot",
        "AttributeIs",
        "AttributeIsOneOf",
        "AttributeExists",
        "AttributeHasText",
        "PlatformIs",
        "PlatformIsOneOf",
        "TimeIs",
        "LanguageIs",
        "LanguageIsOneOf",
        "TimezoneIs",
        "TimezoneIsOneOf",
        "PersonExists",
        "HasTag",
        "NotificationEnded",
        "CountryIs",
        "CountryIsOneOf",
        "AppVersionIs",
        "AppVersionExists",
        "HasClicked",
    }
    value = {"$ref": "#/components/schemas/AttributeValue"}
    assert schemas["Attributes"]["additionalProperties"] == value
    assert schemas["AttributeIs"]["properties"]["value"] == value


def test_two_schemas_of_one_name_are_an_error():
    first = {"properties": {"a": {"title": "Size", "type": "integer"}}}
    second = {"properties": {"a": {"title": "Size", "type": "string"}}}

    with pytest.raises(ValueError, match="Size"):
        name_shapes({"components": {"schemas": {"First": first, "Second": second}}})
