"""The id of a person, as a field of a request."""

import pytest
from rest_framework.exceptions import ValidationError

from subscriptions_app.people.fields import ExternalId


def code_of(value):
    with pytest.raises(ValidationError) as refusal:
        ExternalId().run_validation(value)
    (detail,) = refusal.value.detail
    return detail.code


@pytest.mark.parametrize("text", ["7", "user-42", "Zoë", "a b", "x" * 128, "00", "nobody", "10"])
def test_an_id_is_taken_as_it_is(text):
    assert ExternalId().run_validation(text) == text


@pytest.mark.parametrize(
    "text",
    ["null", "NULL", "undefined", "None", "NaN", "0", "-1", "Anonymous", "[object Object]"],
)
def test_what_a_broken_client_sends_is_no_id(text):
    assert code_of(text) == "reserved_value"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("", "blank"),
        ("x" * 129, "too_long"),
        (" a", "malformed"),
        ("a\u00a0", "malformed"),
        ("a\nb", "malformed"),
        ("a\x85b", "malformed"),
        (7, "not_a_string"),
        (None, "null"),
        (["a"], "not_a_string"),
    ],
)
def test_any_other_text_is_refused(value, code):
    assert code_of(value) == code
