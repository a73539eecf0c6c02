from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from pushsvc.common.field_names import meant_name
from pushsvc.common.http.drf import as_pushsvc_error
from pushsvc.common.http.fields import (
    Choice,
    Flag,
    HttpUrl,
    Id,
    ListOf,
    StrictSerializer,
    StringMap,
    Text,
    Timestamp,
    WholeNumber,
)

EMOJI = "\N{GRINNING FACE}"
COMBINED = "e\N{COMBINING ACUTE ACCENT}"  # one letter to a reader, two code points


class Inner(StrictSerializer):
    word = Text(min_length=1, max_length=4)


class Everything(StrictSerializer):
    text = Text(max_length=4, required=False)
    filled = Text(min_length=1, max_length=4, required=False)
    long = Text(min_length=3, required=False)
    number = WholeNumber(min=0, max=10, required=False)
    flag = Flag(required=False)
    at = Timestamp(required=False)
    id = Id(required=False)
    url = HttpUrl(required=False)
    choice = Choice(["web", "ios"], required=False)
    many = ListOf(Choice(["web", "ios"]), max_length=60, required=False)
    strings = StringMap(required=False)
    inner = Inner(required=False)
    nullable = Id(required=False, allow_null=True)


class Lenient(Inner):
    refuse_unknown = False


class WithDefaults(StrictSerializer):
    word = Text(default="none", max_length=3)
    made = StringMap(default=dict)
    nothing = Id(default=None)
    optional = Text(required=False)


def with_all_that_drf_offers(base):
    """A serializer with read-only fields, sources and a validator of one field."""

    class Offered(base):
        word = Text(max_length=3, default="none")
        seen = Text(read_only=True)
        inside = WholeNumber(source="outer.inner", default=0)

        def validate_word(self, word):
            if word == "bad":
                raise ValidationError("Not this one.")
            return word.upper()

    return Offered


def found(data, serializer=Everything):
    with pytest.raises(ValidationError) as refusal:
        serializer.checked(data)
    return [(error.attr, error.code) for error in as_pushsvc_error(refusal.value).errors]


TAKEN = [
    ("text", "", ""),
    ("text", " a ", " a "),
    ("text", EMOJI * 4, EMOJI * 4),
    ("text", COMBINED * 2, COMBINED * 2),
    ("filled", " ", " "),
    ("number", 0, 0),
    ("number", 10, 10),
    ("flag", False, False),
    ("at", "2026-11-20T16:11:00.1234+01:00", datetime(2026, 11, 20, 15, 11, 0, 123400, UTC)),
    ("at", "2026-11-20 15:11", datetime(2026, 11, 20, 15, 11, tzinfo=UTC)),
    ("id", "0193A1B2-7C3D-7E4F-8A5B-6C7D8E9F0A1B", UUID("0193a1b27c3d7e4f8a5b6c7d8e9f0a1b")),
    ("url", "HTTPS://example.com:8443/ä?q=1#f", "HTTPS://example.com:8443/ä?q=1#f"),
    ("url", "http://[::1]/", "http://[::1]/"),
    ("url", "https://example.com/" + "a" * 1980, "https://example.com/" + "a" * 1980),
    ("choice", "ios", "ios"),
    ("many", ["web", "web"], ["web", "web"]),
    ("strings", {}, {}),
    ("strings", {"a": "", "": "b"}, {"a": "", "": "b"}),
    ("nullable", None, None),
]


@pytest.mark.parametrize(("name", "value", "read"), TAKEN)
def test_a_valid_value_is_accepted_unchanged(name, value, read):
    assert Everything.checked({name: value}) == {name: read}


REFUSED = [
    ("text", 5, "not_a_string"),
    ("text", True, "not_a_string"),
    ("text", ["a"], "not_a_string"),
    ("text", "abcde", "too_long"),
    ("text", EMOJI * 5, "too_long"),
    ("text", COMBINED * 2 + "e", "too_long"),
    ("text", "a\x00", "malformed"),
    ("text", "\ud83d", "malformed"),
    ("filled", "", "blank"),
    ("long", "ab", "too_short"),
    ("number", "5", "not_a_number"),
    ("number", 5.0, "not_a_number"),
    ("number", True, "not_a_number"),
    ("number", -1, "out_of_range"),
    ("number", 11, "out_of_range"),
    ("number", 10**300, "out_of_range"),
    ("flag", 1, "not_a_boolean"),
    ("flag", "true", "not_a_boolean"),
    ("at", 1763651460, "not_a_string"),
    ("at", "tomorrow", "not_a_timestamp"),
    ("at", "2026-11-20", "not_a_timestamp"),
    ("at", "2026-02-30T00:00:00Z", "not_a_timestamp"),
    ("at", "0001-01-01T00:00:00+01:00", "not_a_timestamp"),
    ("id", "0193a1b27c3d7e4f8a5b6c7d8e9f0a1b", "not_a_uuid"),
    ("id", "{0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b}", "not_a_uuid"),
    ("id", 5, "not_a_string"),
    ("url", "", "blank"),
    ("url", "example.com", "not_a_url"),
    ("url", "//example.com/", "not_a_url"),
    ("url", "ftp://example.com/", "not_a_url"),
    ("url", "javascript:alert(1)", "not_a_url"),
    ("url", "https://", "not_a_url"),
    ("url", "https://:443/", "not_a_url"),
    ("url", "https://example.com:99999/", "not_a_url"),
    ("url", "https://[::1/", "not_a_url"),
    ("url", "https://exa\nmple.com/", "not_a_url"),
    ("url", "https://example.com/a b", "not_a_url"),
    ("url", "https://example.com/" + "a" * 1981, "too_long"),
    ("choice", "WEB", "not_a_choice"),
    ("choice", 1, "not_a_string"),
    ("many", [], "empty"),
    ("many", "web", "not_a_list"),
    ("many", {"web": 1}, "not_a_list"),
    ("strings", [], "not_an_object"),
    ("inner", [], "not_an_object"),
    ("inner", "x", "not_an_object"),
    ("surplus", 1, "unknown_field"),
]


@pytest.mark.parametrize(("name", "value", "code"), REFUSED)
def test_an_invalid_value_is_refused_with_its_path_and_code(name, value, code):
    assert found({name: value}) == [(name, code)]


@pytest.mark.parametrize("name", sorted(set(Everything().fields) - {"nullable"}))
def test_null_is_no_value_of_an_optional_field(name):
    assert Everything.checked({name: None}) == {}
    nothing = {"word": "none", "made": {}, "nothing": None}
    assert WithDefaults.checked(dict.fromkeys(["word", "made", "optional"])) == nothing


def test_null_is_an_error_where_a_value_is_required():
    assert found({"inner": {"word": None}}) == [("inner.word", "null")]
    assert found({"many": [None]}) == [("many.0", "null")]
    assert found({"x": None}) == [("x", "unknown_field")]


def test_names_without_a_value_are_left_out():
    assert Everything.checked({"strings": {"a": None, "b": ""}}) == {"strings": {"b": ""}}


def test_all_errors_are_reported_at_once_with_their_paths():
    data = {
        "number": "1",
        "many": ["web", "tv", 5],
        "strings": {"a": "b", "c": 1},
        "inner": {"wrod": "x"},
        "surplus": None,
    }

    assert sorted(found(data)) == [
        ("inner.word", "required"),
        ("inner.wrod", "unknown_field"),
        ("many.1", "not_a_choice"),
        ("many.2", "not_a_string"),
        ("number", "not_a_number"),
        ("strings.c", "not_a_string"),
        ("surplus", "unknown_field"),
    ]


def test_a_lenient_object_ignores_unknown_names():
    assert Lenient.checked({"word": "a", "surplus": 1}) == {"word": "a"}


def test_only_a_misspelling_of_a_name_is_an_error_of_a_lenient_object():
    assert found({"word": "a", "Wrod": 1, "sword": 1, "other": 1}, Lenient) == [
        ("Wrod", "unknown_field"),
        ("sword", "unknown_field"),
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("schedule_at", "scheduled_at"),
        ("scheduledAt", "scheduled_at"),
        ("uri", "url"),
        ("ulr", "url"),
        ("tiltle", "title"),
        ("ur", "url"),
        ("u", None),
        ("luurl", None),
        ("", None),
        ("Title ", "title"),
    ],
)
def test_a_misspelling_is_known(name, meant):
    assert meant_name(name, ["title", "url", "scheduled_at"]) == meant


letters = st.text("abcd_-", max_size=6)


@given(letters, letters)
def test_one_edit_is_a_misspelling_and_two_are_none(name, other):
    """Against the definition of the distance (Damerau and Levenshtein, adjacent swaps)."""
    one, two = (text.replace("_", "").replace("-", "") for text in (name, other))
    edited = {one[:at] + one[at + 1 :] for at in range(len(one))}
    for at in range(len(one) + 1):
        edited |= {one[:at] + char + one[at:] for char in "abcd"}
        edited |= {one[:at] + char + one[at + 1 :] for char in "abcd"}
    edited |= {one[:at] + one[at : at + 2][::-1] + one[at + 2 :] for at in range(len(one))}

    assert (meant_name(name, [other]) == other) == (two in edited | {one})
    assert (meant_name(name.upper(), [other]) is None) == (meant_name(other, [name]) is None)


def test_a_missing_field_has_its_default_which_is_not_validated():
    assert WithDefaults.checked({}) == {"word": "none", "made": {}, "nothing": None}


@pytest.mark.parametrize(
    "data",
    [
        *({}, {"word": "a"}, {"word": "bad"}, {"word": "long"}),
        *({"seen": "x"}, {"inside": 5}, {"inside": "5 "}),
    ],
)
def test_what_drf_offers_a_serializer_applies(data):
    """Against DRF's own method."""
    found = []
    for base in (serializers.Serializer, StrictSerializer):
        read = with_all_that_drf_offers(base)(data=data)
        found.append((read.is_valid(), read.validated_data, read.errors.keys()))

    assert found[0] == found[1]


def test_a_default_that_is_made_belongs_to_one_input():
    WithDefaults.checked({})["made"]["a"] = "b"

    assert WithDefaults.checked({})["made"] == {}
