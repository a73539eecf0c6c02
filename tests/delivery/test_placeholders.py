"""Texts with placeholders: their syntax, their values, and python-liquid as the oracle."""

from math import isfinite

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from liquid import Environment

from notifications_app.content.placeholders import (
    MAX_FILTERS,
    MAX_PLACEHOLDERS,
    NotATemplate,
    parsed,
)
from tests.fuzz.texts import check_texts

LIQUID = Environment()
PYTHONS = dict(LIQUID.filters)


def truncate(text, most):
    """As Shopify's: python-liquid also cuts a text that fits exactly."""
    return text if len(str(text)) == most else PYTHONS["truncate"](text, most)


def rounded(number, *digits):
    """What is infinite or no number counts as 0, also with digits."""
    found = PYTHONS["round"](number, *digits)
    return found if isfinite(found) else 0


LIQUID.add_filter("truncate", truncate)
LIQUID.add_filter("round", rounded)
NAMES = ("first_name", "points", "city-name", "prénom", "size")
FILTERS = ("upcase", "downcase", "capitalize", "round")


def values(**attributes):
    return {
        "attributes": attributes,
        "vars": {"sale": "20 %"},
        "device": {"platform": "web", "language": "de", "external_id": "user-42"},
    }


def text(template, **attributes):
    return parsed(template).text(values(**attributes))


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("Hi {{ name }}!", "Hi Anna!"),
        ("Hi {{name}}!", "Hi Anna!"),
        ("{{ attributes.name }}{{ attributes['any name'] }}", "AnnaBerlin"),
        ('{{ attributes["any name"] }}', "Berlin"),
        ("{{ vars.sale }} {{ vars['sale'] }}", "20 % 20 %"),
        ("{{ platform }} {{ language }} {{ external_id }}", "web de user-42"),
        ("{{ name | upcase }} {{ name | downcase | capitalize }}", "ANNA Anna"),
        ("Hi {{ nobody | default: 'there' }}", "Hi there"),
        ("Hi {{ empty_name | default: 'there' }}", "Hi there"),
        ('Hi {{ nobody | default: "" }}.', "Hi ."),
        ("Hi {{ nobody }}.", "Hi ."),
        ("{{ points | default: 0 }} {{ nobody | default: 0 }}", "5 0"),
        ("{{ price | round: 1 }} {{ price | round }} {{ points }}", "2.6 3 5"),
        ("{{ long | truncate: 8 }}", "Donau..."),
        ("{{ long | truncate: 3 }}", "..."),
        ("{{ name | truncate: 5 }} {{ name | truncate: 4 }}", "Anna Anna"),
        ("{{ long | truncate: 2 }}|{{ long | truncate: 1 }}|{{ long | truncate: 0 }}", "Do|D|"),
        ("{{ 'nan' | round: 2 }} {{ '1e400' | round: 2 }} {{ '-inf' | round }}", "0 0 0"),
        ('{{ "{{" }} name }}', "{{ name }}"),
        ("{{ '{%' }} } }} %} {", "{% } }} %} {"),
        ("{{ 'abc' | upcase }}", "ABC"),
        (f"{{{{ nobody | default: '{'9' * 400}' | round }}}}", "9" * 400),
        ("no placeholder", "no placeholder"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_placeholder_stands_for_a_value(template, expected):
    attributes = {"name": "Anna", "any name": "Berlin", "empty_name": "", "points": 5.0}
    attributes |= {"price": 2.567, "long": "Donaudampfschiff"}

    assert text(template, **attributes) == expected


@pytest.mark.parametrize(
    ("template", "position"),
    [
        ("Hi {{ name", 4),
        ("Hi {{ name }", 4),
        ("{{ }}", 3),
        ("{{}}", 3),
        ("{{ name.first }}", 3),
        ("{{ attributes }}", 4),
        ("{{ vars }}", 4),
        ("{{ attributes.a.b }}", 16),
        ("{{ attributes['a }}", 3),
        ("{{ if }}", 4),
        ("{{ attributes.limit }}", 4),
        ("{{ 5 }}", 3),
        ("{{ -name }}", 3),
        ("{{- name }}", 3),
        ("{{ name -}}", 9),
        ("{{ name other }}", 9),
        ("{{ name | }}", 9),
        ("{{ name || upcase }}", 9),
        ("{{ name | reverse }}", 11),
        ("{{ name | Upcase }}", 11),
        ("{{ name | upcase: 'x' }}", 11),
        ("{{ name | default }}", 11),
        ("{{ name | default: other }}", 11),
        ("{{ name | truncate: '5' }}", 11),
        ("{{ name | truncate: 5, '' }}", 22),
        ("{{ name | truncate: 5.5 }}", 11),
        ("{{ name | truncate: -5 }}", 11),
        ("{{ name | truncate: 99999 }}", 11),
        ("{{ '}}' }}", 3),
        ("{{{ name }}}", 3),
        ("{{ a\u00a0}}", 5),
        ("Hi {% if name %}", 4),
        ("{% raw %}{{ name }}{% endraw %}", 1),
        ("{{ name }} {% now %}", 12),
        ("{{ name | " + " | ".join(["upcase"] * (MAX_FILTERS + 1)) + " }}", 99),
        ("{{ a }}" * (MAX_PLACEHOLDERS + 1), 7 * MAX_PLACEHOLDERS + 1),
    ],
)
def test_an_error_is_told_with_its_position(template, position):
    with pytest.raises(NotATemplate) as refused:
        parsed(template)

    assert refused.value.position == position
    assert str(refused.value).startswith(f"Character {position}: ")


def test_bounds_can_be_reached():
    assert len(parsed("{{ a }}" * MAX_PLACEHOLDERS).placeholders) == MAX_PLACEHOLDERS
    assert text("{{ a | " + " | ".join(["upcase"] * MAX_FILTERS) + " }}", a="x") == "X"


def test_a_value_is_missing_only_without_a_default():
    template = parsed("{{ a }} {{ b | default: 'x' }} {{ c | upcase | default: '' }} {{ d }}")

    missing = [each.path for each in template.placeholders if each.is_missing(values(d=0))]

    assert missing == ["a"]
    assert [each.default for each in template.placeholders] == [None, "x", "", None]
    assert parsed("{{ a }}").placeholders[0].is_missing(values(a="\x00\n\u202e"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (5.0, "5"),
        (-0.5, "-0.5"),
        (1e300, "1e+300"),
        (12345678901234567890, "12345678901234567890"),
        ("a\x00b\nc\td\x7fe\x85f", "abcdef"),
        ("a\u202eb\u2066c\u2069d", "abcd"),
        ("שלום\u200f", "שלום\u200f"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("😀" * 255, "😀" * 255),
        ("{{ vars.sale }}", "{{ vars.sale }}"),
        ("{% if true %}", "{% if true %}"),
        ('"},"x":"', '"},"x":"'),
        ("half \ud83d", "half "),
    ],
)
def test_a_value_is_text_and_nothing_else(value, shown):
    assert text("<{{ x }}>", x=value) == f"<{shown}>"


@pytest.mark.parametrize(
    ("value", "link"),
    [
        ("a b", "a%20b"),
        ("javascript:alert(1)", "javascript%3Aalert%281%29"),
        ("//evil.example", "%2F%2Fevil.example"),
        ("\\\\evil.example", "%5C%5Cevil.example"),
        ("../../admin", "..%2F..%2Fadmin"),
        ("..", ""),
        (".", ""),
        ("?x=1&y#z", "%3Fx%3D1%26y%23z"),
        ("é", "%C3%A9"),
        ("A-z_0.9~", "A-z_0.9~"),
        ("@evil.example", "%40evil.example"),
    ],
)
def test_a_value_in_a_link_is_encoded(value, link):
    template = parsed("https://shop.example/u/{{ x }}?r={{ x }}")

    assert template.link(values(x=value)) == f"https://shop.example/u/{link}?r={link}"


# Oracle

text_values = st.text(st.characters(exclude_categories=("Cc", "Cs", "Cf")), max_size=20)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
attributes = st.dictionaries(st.sampled_from(NAMES), text_values | numbers)
quoted = st.text(st.characters(exclude_characters="\"'{}%", exclude_categories=("Cs",)), max_size=8)
literals = st.builds("{0}{1}{0}".format, st.sampled_from(['"', "'"]), quoted)
blanks = st.sampled_from(["", " ", "  ", "\t", "\n"])
paths = st.one_of(
    st.sampled_from(NAMES),
    st.builds("attributes.{}".format, st.sampled_from(NAMES)),
    st.builds('attributes["{}"]'.format, st.sampled_from(NAMES)),
    st.sampled_from(["vars.sale", "platform", "external_id", "language", "missing"]),
    literals,
)
filters = st.one_of(
    st.sampled_from(FILTERS),
    st.builds("default: {}".format, literals | st.integers(0, 9999)),
    st.builds("truncate: {}".format, st.integers(3, 60)),  # Liquid lengthens to three characters
    st.builds("round: {}".format, st.integers(0, 400)),
)
placeholders = st.builds(
    lambda blank, path, each: "{{" + blank + f"{blank}|{blank}".join([path, *each]) + blank + "}}",
    blanks, paths, st.lists(filters, max_size=4),
)  # fmt: skip
around = st.text(st.characters(exclude_characters="{", exclude_categories=("Cs",)), max_size=10)
templates = st.lists(around | placeholders, max_size=6).map("".join)


def shortest(value):
    """As our values are written."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e16
    return int(value) if is_whole else value


@example("{{ points | truncate: 5 }}", {"points": "hello"})
@example("{{ points | truncate: 3 }}", {})
@example("{{ points | default: 'INF' | round: 1 }}", {})
@example("{{ points | round }}", {})
@example("{{ first_name | capitalize }}", {"first_name": "ǆabc ß"})
@given(templates, attributes)
def test_the_result_is_liquids(template, given_attributes):
    own = {name: shortest(value) for name, value in given_attributes.items()}
    known = values(**own)
    context = {**own, "attributes": own, "vars": known["vars"], **known["device"]}
    assume("size" in own or "size" not in template)  # else Liquid counts the attributes
    try:
        expected = LIQUID.from_string(template).render(**context)
    except (ValueError, OverflowError):
        return  # python-liquid cannot round what is infinite or no number

    assert parsed(template).text(known) == expected


def test_a_random_text_is_a_template_or_refused():
    """`make fuzz ARGS="--texts 1000000"` reads a million."""
    accepted, _, _ = check_texts(5_000, seed=0)

    assert accepted > 0
