"""Which URLs a notification may open."""

import re
from urllib.parse import quote, unquote

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pushsvc.common.links import (
    REFUSED_SCHEMES,
    LinkKind,
    absolute,
    is_link,
    may_be_opened,
    may_precede_value,
)

WEB, SITE, APP = LinkKind
KINDS = tuple(LinkKind)


def takers(link):
    return {kind for kind in KINDS if is_link(link, kind)}


@pytest.mark.parametrize(
    "link",
    [
        "https://shop.example",
        "HTTP://shop.example:8080/a?b=c#d",
        "https://shop.example/%41%2F?a=%20&next=https%253A%252F%252Fbob.example",
        "https://wa.me/?text=one%0Atwo%5C",
        "https://shop.example/kühe?q=ü",
        "https://[2001:db8::1]/",
    ],
)
def test_a_web_url_may_be_opened_everywhere(link):
    assert takers(link) == {WEB, SITE, APP}
    assert may_be_opened(link)


@pytest.mark.parametrize(
    "link", ["/", "/orders/1", "/a//b?c=/d#e", "/100%25", "/kühe", "/a:b", "/javascript:x"]
)
def test_a_path_is_of_a_site_alone(link):
    assert takers(link) == {SITE}
    assert may_be_opened(link)


@pytest.mark.parametrize(
    "link",
    [
        "myshop://orders/17",
        "MyShop://orders/17?a=b%20c#d",
        "com.example.my-shop+v1:/orders/17",
        "myshop:orders",
        "myshop://",
        "tel:+43123456",
        "mailto:shop@example.com?subject=Order%2017",
        "sms:+43123456",
        "whatsapp://send?text=https%3A%2F%2Fshop.example%2F",
        "intent://orders/17#Intent;scheme=myshop;package=com.example;end",
        "intent:orders/17#Intent;action=com.example.OPEN;S.note=javascript;end",
        "intent://o/#Intent;scheme=myshop;S.browser_fallback_url=https%3A%2F%2Fa.example%2F;end",
        "intent://o/#Intent;S.browser_fallback_url=http://a.example/;scheme=https;end",
    ],
)
def test_a_url_of_an_app_is_for_apps_alone(link):
    assert takers(link) == {APP}
    assert may_be_opened(link)


@pytest.mark.parametrize(
    "link",
    [
        *(f"{scheme}:alert(1)" for scheme in sorted(REFUSED_SCHEMES)),
        "JavaScript:alert(1)",
        "javascript://shop.example/%0aalert(1)",
        "DATA:text/html,x",
        "file:///etc/passwd",
        "blob:https://shop.example/1",
        "content://com.example/1",
        "%6aavascript:alert(1)",
        "%256aavascript:x",
        "java%73cript:x",
        "javascript%3Aalert(1)",
        " javascript:x",
        "\tmyshop://a",
        "java\tscript:x",
        "java\nscript:x",
        "\x01javascript:x",
        "\u200bjavascript:x",
        "\ufeffmyshop://a",
        "\u00a0https://shop.example/",
        "мyshop://a",
        "myshop:javascript:x",
        "myshop://javascript:x",
        "myshop:%6aavascript:x",
        "myshop:%20data:x",
        "myshop://%E2%80%8Bjavascript:x",
        "myshop:intent:#Intent;scheme=file;end",
        "myshop://a%0ab",
        "myshop://a%250Ab",
        "myshop://a%00",
        "myshop://a\x7f",
        "myshop://a%C2%85b",
        "myshop://a\\b",
        "myshop://a%5Cb",
        "myshop://a%255cb",
        "myshop://a b",
        "myshop://a?%5C",
        f"myshop://a%{'25' * 7}41",
        "c:/windows",
        "C:\\windows",
        "://a",
        ":",
        "",
        "1shop://a",
        "-a:b",
        "my_shop://a",
        "{{ scheme }}:x",
        "shop.example",
        "www.shop.example/a",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/%2Fevil.example",
        "/%5cevil",
        "/%252fevil.example",
        "/a%0d%0ab",
        "/a\\b",
        "/\t/evil.example",
        "/ /evil.example",
        "///a",
        "orders/1",
        "./orders",
        "../orders",
        "?a=b",
        "#a",
        "/a\x00",
        "https:",
        "https:/shop.example",
        "https:///a",
        "https:shop.example",
        "https:\\\\a.example",
        "https://shop.example\\@evil.example",
        "https://shop.example/a\\b",
        "https://a.example:x/",
        "https://%65vil.example/",
        "https://shop.example%5c.evil.example/",
        "https://a b.example/",
        "https://shop.example/%0d%0aSet-Cookie",
        "https://shop.example/%5C..",
        "https://a.example/%00",
        "https://shop.example/\x85",
        "intent:javascript:x#Intent;end",
        "intent://javascript:x#Intent;end",
        "intent://a#Intent;scheme=javascript;end",
        "intent://a#Intent;scheme=FILE;end",
        "intent://a#Intent;scheme=%66ile;end",
        "intent://a#Intent;sch%65me=file;end",
        "intent://a#Intent;scheme=;end",
        "intent://a#Intent;scheme=myshop;SEL;scheme=content;end",
        "intent://a#Intent;scheme=file;end#b",
        "intent://a#Intent;S.browser_fallback_url=javascript%3Ax;end",
        "intent://a#Intent;S.browser%5Ffallback_url=data:x;end",
        "intent://a#Intent;S.browser_fallback_url=https%253A%252F%252Fa.example;end",
        "intent://a#Intent;S.browser_fallback_url=%20javascript:x;end",
        "intent://a#Intent;S.browser_fallback_url=myshop%3A%2F%2Fa;end",
    ],
)
def test_any_other_url_is_refused_everywhere(link):
    assert takers(link) == set()


@pytest.mark.parametrize(
    ("before", "kinds"),
    [
        ("https://shop.example/", {WEB, SITE, APP}),
        ("https://shop.example", set()),
        ("https://shop.example?a=", set()),
        ("", set()),
        ("/", {SITE}),
        ("/orders/", {SITE}),
        ("//", set()),
        ("orders/", set()),
        ("my", set()),
        ("myshop:", {APP}),
        ("myshop:/", set()),
        ("myshop:/a", {APP}),
        ("myshop://", set()),
        ("myshop://orders", set()),
        ("myshop://orders/", {APP}),
        ("myshop://orders?id=", {APP}),
        ("myshop:///", {APP}),
        ("tel:", {APP}),
        ("intent://orders/", {APP}),
        ("intent://orders/#", set()),
        ("intent://orders/#Intent;scheme=", set()),
        ("intent://orders/#Intent;sch", set()),
        ("intent://orders/#Intent;S.order=", {APP}),
        ("intent://orders/#Intent;S.order=1;package=", set()),
        ("intent://orders/#Intent;S.browser_fallback_url=", set()),
        ("intent://orders/#Intent;S.browser_fallback_url=https%3A%2F%2Fa.example", set()),
        ("intent://orders/#Intent;S.browser_fallback_url=https%3A%2F%2Fa.example%2F", {APP}),
    ],
)
def test_a_value_stands_only_where_it_cannot_change_where_a_url_leads(before, kinds):
    assert {kind for kind in KINDS if may_precede_value(before, kind)} == kinds


@pytest.mark.parametrize(
    ("link", "site", "found"),
    [
        ("https://bob.example/a", "", "https://bob.example/a"),
        ("https://bob.example/a", "https://shop.example", "https://bob.example/a"),
        ("/orders/1?a=b#c", "https://shop.example/app/?x", "https://shop.example/orders/1?a=b#c"),
        ("/orders/1", "", ""),
        ("", "https://shop.example", ""),
    ],
)
def test_a_path_is_resolved_against_its_site(link, site, found):
    assert absolute(link, site) == found


# What browsers remove before they read a URL, and tabs and line ends inside (WHATWG, URL parsing).
TRIMMED = "".join(map(chr, range(0x21)))
INSIDE = re.compile("[\t\n\r]")
scheme_of = re.compile(r"[a-z][a-z0-9+.-]*(?=:)", re.IGNORECASE | re.ASCII)
words = st.sampled_from(
    [
        *sorted(REFUSED_SCHEMES), *("myshop", "intent", "https", "http", "tel", "scheme", "end"),
        *(":", "://", "/", "//", "\\", "%", "%25", "#Intent;", ";", "=", "?", "#", "@", "."),
        *(" ", "\t", "\n", "\x00", "\x1f", "\x7f", "\u200b", "\ufeff", "\u00a0", "\x85"),
        *("S.browser_fallback_url=", "a", "orders", "17", "shop.example"),
    ]
)  # fmt: skip


def spelled(text, style):
    """The text in upper case, or with all or every other character percent-encoded."""
    encoded = [f"%{ord(c):02x}" if ord(c) < 128 else quote(c) for c in text]
    match style:
        case "upper":
            return text.upper()
        case "encoded":
            return "".join(encoded)
        case "half":
            return "".join(pair[n % 2] for n, pair in enumerate(zip(text, encoded, strict=True)))
        case "twice":
            return "".join(encoded).replace("%", "%25")
    return text


pieces = st.builds(spelled, words, st.sampled_from(["plain", "upper", "encoded", "half", "twice"]))
links = st.lists(pieces, max_size=8).map("".join) | st.text(max_size=30)


def readings(link):
    """What a browser or an app may make of it: decoded any number of times, trimmed."""
    found = [link]
    while (decoded := unquote(found[-1])) != found[-1]:
        found.append(decoded)
    return [INSIDE.sub("", each.strip(TRIMMED)) for each in found]


@settings(max_examples=2_000)
@example("myshop:%6aavascript:x")
@example("/%09/evil.example")
@example("intent://a#Intent;scheme=javascript;end")
@given(links)
def test_no_accepted_url_runs_code_or_leaves_its_site(link):
    for kind in takers(link):
        for reading in readings(link):
            scheme = scheme_of.match(reading)
            assert scheme is None or scheme[0].lower() not in REFUSED_SCHEMES
            after = reading[len(scheme[0]) + 1 :].lstrip("/").strip(TRIMMED) if scheme else ""
            nested = scheme_of.match(after)
            assert nested is None or nested[0].lower() not in REFUSED_SCHEMES
            if kind is WEB:
                assert scheme[0].lower() in {"http", "https"}
            if scheme is None:
                assert kind is SITE
                assert re.match(r"/(?![/\\])", reading)
        is_of_web = link.lower().startswith("http")
        whole = readings(link) if not is_of_web else [link]
        assert not any(re.search(r"[\\\x00-\x1f\x7f-\x9f]", each) for each in whole)
        parts = [
            p.partition("=")[2].lower() for p in re.split("[#;]", link) if "scheme=" in p.lower()
        ]
        assert not (link.lower().startswith("intent:") and REFUSED_SCHEMES.intersection(parts))


@given(st.text(max_size=20))
def test_a_value_cannot_spoil_a_path_or_an_app(value):
    """What is filled in is judged, unless it is of the web, where a value is a part of the path."""
    for begin in ("/orders/", "myshop://orders/", "intent://orders/"):
        link = f"{begin}{quote(value, safe='')}"
        assume(may_be_opened(link))
        assert all(each.startswith(begin) for each in readings(link))


@pytest.mark.parametrize("begin", ["myshop://a", "https://a.example/", "/a"])
def test_a_url_is_decoded_a_few_times(begin):
    kind = {"m": APP, "h": WEB, "/": SITE}[begin[0]]
    assert is_link(f"{begin}%{'25' * 3}41", kind)
    assert not is_link(f"{begin}%{'25' * 900}41", kind)
