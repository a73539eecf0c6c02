"""Segments and templates over the API: what all named things of a channel have in common."""

from dataclasses import dataclass
from typing import Any

import pytest

from notifications_app.models import Template
from subscriptions_app.models import Segment
from tests.api.support import code, errors
from tests.api.templates import CONTENT
from tests.segments import attribute, field

PRO = attribute("plan", "eq", "pro")
RULE = {"all": [PRO, {"not": field("platform", "in", ["ios"])}]}


@dataclass(frozen=True)
class Kind:
    """`value`: the field beside the name, as it is created. `changed`: after an edit."""

    name: str
    model: Any
    field: str
    value: Any
    changed: Any

    def path(self, owner, *parts):
        return "/".join([f"/channel/{owner.channel.id}/{self.name}s", *map(str, parts)])

    def given(self, name="One"):
        return {"name": name, self.field: self.value}

    def created(self, owner, name="One"):
        response = owner.call("POST", self.path(owner), self.given(name))
        assert response.status_code == 201, response.content
        return response.json()

    def of(self, owner, made):
        """The path of a thing."""
        return self.path(owner, made[f"{self.name}_id"])


KINDS = [
    Kind("segment", Segment, "rule", RULE, PRO),
    Kind("template", Template, "content", CONTENT, {"body": "It is on its way."}),
]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request):
    return request.param


def test_a_thing_reads_back_as_it_was_created(alice, kind):
    made = kind.created(alice)

    row = kind.model.objects.get()
    assert list(made) == [f"{kind.name}_id", "name", kind.field, "created_at", "updated_at"]
    assert made[f"{kind.name}_id"] == str(row.id)
    assert {name: made[name] for name in kind.given()} == kind.given()
    assert made["created_at"] == made["updated_at"]
    assert row.channel == alice.channel
    assert alice.call("GET", kind.of(alice, made)).json() == made
    assert alice.call("GET", kind.path(alice)).json() == [made]


def test_an_edit_replaces_both_fields_and_keeps_the_rest(alice, kind):
    made = kind.created(alice)
    changes = {"name": "Another", kind.field: kind.changed}

    response = alice.call("PUT", kind.of(alice, made), changes)

    assert response.status_code == 200
    edited = response.json()
    assert edited["updated_at"] > made["updated_at"]
    assert edited == made | changes | {"updated_at": edited["updated_at"]}
    assert alice.call("GET", kind.of(alice, made)).json() == edited
    for name in changes:
        partial = {name: changes[name]}
        (other,) = changes.keys() - partial
        assert errors(alice.call("PUT", kind.of(alice, made), partial)) == [(other, "required")]


def test_a_deleted_thing_is_not_found(alice, kind):
    address = kind.of(alice, kind.created(alice))

    response = alice.call("DELETE", address)

    assert (response.status_code, response.content) == (204, b"")
    for method, body in [("GET", None), ("DELETE", None), ("PUT", kind.given())]:
        assert code(alice.call(method, address, body), 404) == "not_found"


def test_the_list_is_newest_first_in_pages(alice, bob, kind):
    made = [kind.created(alice, str(number)) for number in range(5)]
    kind.created(bob)

    def listed(query=""):
        return alice.call("GET", kind.path(alice) + query)

    assert listed().json() == made[::-1]
    page = listed("?limit=2&offset=1")
    assert page.json() == [made[3], made[2]]
    assert 'rel="next"' in page.headers["Link"]
    assert 'rel="prev"' in page.headers["Link"]
    assert "Link" not in listed("?limit=5").headers
    assert errors(listed("?limit=0")) == [("limit", "out_of_range")]


def test_a_name_is_stored_as_sent_and_is_unique_in_its_channel(alice, bob, kind):
    kind.created(alice, " Pro ")
    assert kind.created(bob, " Pro ")["name"] == " Pro "
    second = kind.created(alice, " pro ")

    taken = f"{kind.name}_name_taken"
    assert code(alice.call("POST", kind.path(alice), kind.given(" Pro ")), 409) == taken
    edit = alice.call("PUT", kind.of(alice, second), kind.given(" Pro "))
    assert code(edit, 409) == taken
    names = kind.model.objects.filter(channel=alice.channel).values_list("name", flat=True)
    assert sorted(names) == [" Pro ", " pro "]
    same = {"name": " pro ", kind.field: kind.changed}
    assert alice.call("PUT", kind.of(alice, second), same).status_code == 200
