import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushsvc.common.http.strict_json import MAX_DEPTH, MalformedJSON, loads_strict

REFUSED = {
    "nothing": b"",
    "blanks only": b" \r\n\t",
    "no JSON": b"{body: 1}",
    "more after the end": b'{"a": 1} {}',
    "a trailing comma": b'{"a": 1,}',
    "a comment": b'{"a": 1} // one',
    "single quotes": b"{'a': 1}",
    "a control character in a string": b'{"a": "\x01"}',
    "Latin-1": '{"a": "é"}'.encode("latin-1"),
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "a byte order mark only": b"\xef\xbb\xbf",
    "two byte order marks": b'\xef\xbb\xbf\xef\xbb\xbf{"a": 1}',
    "a byte order mark inside": b'{"a":\xef\xbb\xbf 1}',
    "an overlong encoding": b'{"a": "\xc0\xaf"}',
    "a surrogate in UTF-8": b'{"a": "\xed\xa0\x80"}',
    "a key twice": b'{"a": 1, "a": 1}',
    "a key twice, spelled differently": b'{"a": 1, "\\u0061": 2}',
    "a key twice below": b'{"x": [{"a": 1, "a": 2}]}',
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": Infinity}',
    "minus Infinity": b'{"a": -Infinity}',
    "1e400": b'{"a": 1e400}',
    "minus 1e400": b'{"a": -1e400}',
    "an integer beyond a double": b'{"a": 1' + b"0" * 400 + b"}",
    "an integer that Python will not read": b'{"a": ' + b"9" * 5000 + b"}",
    "NUL in a value": b'{"a": "x\\u0000"}',
    "NUL in a key": b'{"x\\u0000": 1}',
    "NUL deep down": b'{"a": [[["\\u0000"]]]}',
    "half a surrogate pair": b'{"a": "\\ud83d"}',
    "the other half": b'{"a": "\\ude00"}',
    "halves in the wrong order": b'{"a": "\\ude00\\ud83d"}',
    "half a pair in a key": b'{"\\ud83d": 1}',
    "64 KiB of brackets": b"[" * 65_536,
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED.keys())
def test_invalid_strict_json_is_refused(data):
    with pytest.raises(MalformedJSON) as refusal:
        loads_strict(data)

    assert refusal.value.status == 400
    assert refusal.value.detail


def test_a_byte_order_mark_is_ignored():
    assert loads_strict(b'\xef\xbb\xbf{"a": "\xef\xbb\xbf"}') == {"a": "\ufeff"}


def nested(levels):
    return b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)


def test_twenty_levels_are_read_and_one_more_is_refused():
    assert loads_strict(nested(MAX_DEPTH))
    assert loads_strict(b"[" * MAX_DEPTH + b"1" + b"]" * MAX_DEPTH)
    with pytest.raises(MalformedJSON, match="20 levels"):
        loads_strict(nested(MAX_DEPTH + 1))


def test_a_surrogate_pair_is_one_character():
    assert loads_strict(b'{"a": "\\ud83d\\ude00"}') == {"a": "\N{GRINNING FACE}"}


def test_numbers_keep_their_type():
    value = loads_strict(b'{"a": 5, "b": 5.0, "c": 1e3, "d": 123456789012345678901234567890}')

    assert [type(number) for number in value.values()] == [int, float, float, int]
    assert value["d"] == 123456789012345678901234567890


def test_the_error_names_its_place_and_repeats_no_value():
    with pytest.raises(MalformedJSON) as refusal:
        loads_strict(b'{"api_key": "secret"\n "b": 1}')

    assert "line 2, column 2" in refusal.value.detail
    assert "secret" not in refusal.value.detail


storable = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | storable,
    lambda children: st.lists(children) | st.dictionaries(storable, children),
    max_leaves=20,
)


@given(values.filter(lambda value: "Infinity" not in json.dumps(value)))
def test_strict_json_written_by_python_is_read_back_unchanged(value):
    assert loads_strict(json.dumps(value).encode()) == value
