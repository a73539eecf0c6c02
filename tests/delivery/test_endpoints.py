from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from notifications_app.delivery.http_client import split
from pushsvc.common.endpoints import (
    MAX_ENDPOINT_LENGTH,
    EndpointNeverResolves,
    EndpointNotAllowed,
    canonical_endpoint,
    check_endpoint,
    normalise_origin,
    push_service,
    service_of,
)


def check(url, trusted=(), allowed=()):
    return check_endpoint(url, trusted_origins=frozenset(trusted), allowed_hosts=tuple(allowed))


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("fcm.googleapis.com", "fcm"),
        ("jmt17.google.com", "other"),
        ("android.googleapis.com", "other"),
        ("storage.googleapis.com", "other"),
        ("x.fcm.googleapis.com", "other"),
        ("updates.push.services.mozilla.com", "mozilla"),
        ("eu.push.services.mozilla.com", "other"),
        ("push.services.mozilla.com", "other"),
        ("evilpush.services.mozilla.com", "other"),
        ("web.push.apple.com", "apple"),
        ("web.push.apple.com.example.org", "other"),
        ("x.push.apple.com", "other"),
        ("wns2-par02p.notify.windows.com", "wns"),
        ("wns2-nowhere.notify.windows.com", "other"),
        ("notify.windows.com", "other"),
        ("xnotify.windows.com", "other"),
        ("ntfy.sh", "other"),
    ],
)
def test_the_whole_host_name_decides_the_push_service(host, service):
    assert push_service(host) == service


@pytest.mark.parametrize(
    ("host", "vendor"),
    [
        ("wns2-par02p.notify.windows.com", "wns"),
        ("wns2-nowhere.notify.windows.com", "wns"),
        ("evilnotify.windows.com", ""),
        ("web.push.apple.com", "apple"),
        ("x.push.apple.com", "apple"),
        ("fcm.googleapis.com", ""),
    ],
)
def test_a_vendors_rules_apply_to_all_hosts_under_its_name(host, vendor):
    assert check(f"https://{host}/x").vendor == vendor


def test_a_path_does_not_decide_the_push_service():
    assert check("https://push.example.org/.push.apple.com/").service == "other"


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("HTTPS://WNS2-par02p.Notify.Windows.COM:443", "https://wns2-par02p.notify.windows.com"),
        ("https://push.example.org:", "https://push.example.org"),
        ("https://push.bücher.org", "https://push.xn--bcher-kva.org"),
    ],
)
@pytest.mark.parametrize(
    ("path", "canonical_path"),
    [
        ("/w/?token=BQ%2bY%3d//..;a=B", "/w/?token=BQ%2bY%3d//..;a=B"),
        ("/%41%7a%30%2D%2e%5f%7E", "/Az0-._~"),
        ("/A%2F%3a%25%37e", "/A%2f%3a%257e"),
        ("/%41%zz", "/%41%zz"),
        ("/%%37e%4", "/%%37e%4"),
        ("", "/"),
        ("?a=b", "/?a=b"),
    ],
)
def test_an_endpoint_has_one_canonical_form(given, canonical, path, canonical_path):
    endpoint = check(given + path)
    assert (endpoint.origin, endpoint.url) == (canonical, canonical + canonical_path)
    assert canonical_endpoint(given + path) == canonical_endpoint(endpoint.url) == endpoint.url


@pytest.mark.parametrize("text", ["", "nonsense", "ftp://x/%41", "https://x#%41", "https://x:y/"])
def test_a_text_that_is_no_url_has_no_other_form(text):
    assert canonical_endpoint(text) == text


def test_the_canonical_form_has_at_most_as_many_characters_as_are_stored():
    url = "https://push.bücher.org/"
    fits = url + "x" * (MAX_ENDPOINT_LENGTH - len("https://push.xn--bcher-kva.org/"))
    assert len(check(fits).url) == MAX_ENDPOINT_LENGTH
    assert len(fits) < MAX_ENDPOINT_LENGTH
    with pytest.raises(EndpointNotAllowed, match="more than 2000 characters"):
        check(fits + "x")


def test_an_endpoint_without_a_path_gets_one():
    assert check("https://push.example.org?a=b").url == "https://push.example.org/?a=b"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "push.example.org/x",
        "//push.example.org/x",
        "https:push.example.org/x",
        "https:///x",
        "http://push.example.org/x",
        "ftp://push.example.org/x",
        "javascript:alert(1)",
        "https://push.example.org:8443/x",
        "https://push.example.org:0/x",
        "https://push.example.org:99999/x",
        "https://push.example.org:x/x",
        "https://user@push.example.org/x",
        "https://user:pass@push.example.org/x",
        "https://@push.example.org/x",
        "https://push.example.org/x#part",
        "https://push.example.org/x#",
        "https://push.example.org/x y",
        " https://push.example.org/x",
        "https://push.example.org/x\n",
        "https://push.example.org/\tx",
        "https://push.example.org\\@evil.example.org/x",
        "https://push.example.org/\\x",
        "https://push.example.org/\x00",
        "https://push.example.org/\x7f",
        "https://push.example.org/ü",
        "https://push.example.org/\u2028",
        "https://push.example.org/" + "x" * 2_000,
        "https://push.example.org./x",
        "https://push..example.org/x",
        "https://-push.example.org/x",
        "https://" + "a" * 64 + ".example.org/x",
        "https://push.exa%6dple.org/x",
        "https://push.exam*ple.org/x",
        "https://[push.example.org]/x",
        "https://[::1/x",
        "https://fcm.googleapis.com\uff0fevil.example.org/x",
    ],
)
def test_only_a_plain_https_url_on_port_443_is_allowed(url):
    with pytest.raises(EndpointNotAllowed):
        check(url)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "8.8.8.8", "0x7f000001", "2130706433", "0177.0.0.1", "127.1", "127.0.0.1.",
        "①②⑦.0.0.1", "\uff11\uff12\uff17.0.0.1",
        "127。0。0。1", "0x7f.1", "a.0x7f", "push.example.0x", "[::1]",
        "[::ffff:127.0.0.1]", "[2606:4700::1111]", "%31%32%37.0.0.1",
    ],
)  # fmt: skip
def test_an_ip_address_is_not_allowed_in_any_spelling(host):
    with pytest.raises(EndpointNotAllowed):
        check(f"https://{host}/x")


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "LOCALHOST", "localhost.", "a.localhost", "ⓛocalhost", "printer", "printer.",
        "printer.local", "metadata.google.internal", "nas.home.arpa", "nas.lan", "box.localdomain",
        "git.corp", "box.home", "box.intranet", "box.private",
    ],
)  # fmt: skip
def test_a_name_of_the_local_network_is_not_allowed(host):
    with pytest.raises(EndpointNotAllowed, match="local network"):
        check(f"https://{host}/x")


@pytest.mark.parametrize(
    ("host", "is_certain"),
    [
        ("permanently-removed.invalid", True),
        ("PERMANENTLY-REMOVED.INVALID.", True),
        ("push.test", False),
        ("push.example", False),
        ("push.duckduckgogg42xjoc72x3sjasowoarfbgcmvfimaftt6twagswzczad.onion", False),
        ("push.alt", False),
    ],
)
def test_a_reserved_name_is_not_allowed(host, is_certain):
    with pytest.raises(EndpointNeverResolves, match="never resolves") as refusal:
        check(f"https://{host}/x")
    assert refusal.value.is_certain == is_certain


def test_an_operator_may_trust_a_name_of_the_own_network():
    assert check("http://push.test:8030/x", trusted=["http://push.test:8030"]).is_trusted


@pytest.mark.parametrize(
    "host", ["localpush.example.org", "my-local.org", "lan.example.org", "invalid.org", "xtest.org"]
)
def test_a_public_name_that_only_looks_local_or_reserved_is_allowed(host):
    assert check(f"https://{host}/x").origin == f"https://{host}"


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        ("example.org", True),
        ("push.example.org", True),
        ("badexample.org", False),
        ("example.org.evil.net", False),
    ],
)
def test_allowed_hosts_match_whole_labels(host, is_allowed):
    if is_allowed:
        check(f"https://{host}/x", allowed=["example.net", "example.org"])
    else:
        with pytest.raises(EndpointNotAllowed, match="not among the allowed hosts"):
            check(f"https://{host}/x", allowed=["example.net", "example.org"])


@pytest.mark.parametrize(
    ("trusted", "url", "service"),
    [
        ("http://127.0.0.1:8030", "http://127.0.0.1:8030/push/1", "127.0.0.1:8030"),
        ("HTTP://127.0.0.1:8030/", "http://127.0.0.1:8030/push/1", "127.0.0.1:8030"),
        ("http://[::1]:8030", "http://[0:0::1]:8030/push/1", "::1:8030"),
        ("http://push:80", "http://PUSH/1", "push:80"),
        ("https://autopush.lan", "https://autopush.lan:443/1", "autopush.lan:443"),
        ("https://fcm.googleapis.com", "https://fcm.googleapis.com/wp/1", "fcm"),
    ],
)
def test_a_trusted_origin_is_exempt_and_a_push_service_of_its_own(trusted, url, service):
    endpoint = check(url, trusted=[trusted], allowed=["example.org"])
    assert endpoint.is_trusted
    assert endpoint.service == service
    assert service_of(url, frozenset([trusted])) == service


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8031/x",
        "https://127.0.0.1:8030/x",
        "http://127.0.0.1/x",
        "http://127.0.0.1:80300/x",
        "http://127.0.0.1:8030@evil.example.org/x",
        "http://127.0.0.1:8030.evil.example.org/x",
        "http://user@127.0.0.1:8030/x",
        "http://127.0.0.1:8030/x#y",
        "http://127.0.0.1:8030/" + "x" * 2_000,
    ],
)
def test_an_origin_that_only_resembles_a_trusted_one_is_not_allowed(url):
    with pytest.raises(EndpointNotAllowed):
        check(url, trusted=["http://127.0.0.1:8030"])


def test_an_endpoint_that_is_not_allowed_has_no_push_service():
    assert service_of("https://fcm.googleapis.com:1/x", frozenset()) == "other"
    assert service_of("fcm.googleapis.com", frozenset()) == "other"


def test_an_invalid_trusted_origin_trusts_nothing():
    with pytest.raises(EndpointNotAllowed):
        check("http://127.0.0.1:8030/x", trusted=["127.0.0.1:8030", "http://127.0.0.1:8030/x"])


@pytest.mark.parametrize("text", ["", "*", "127.0.0.1:8030", "http://a/b", "http://a?b", "ws://a"])
def test_only_a_bare_origin_may_be_trusted(text):
    with pytest.raises(ValueError, match=r"\.$"):
        normalise_origin(text)


def test_the_reason_repeats_nothing_of_the_endpoint():
    with pytest.raises(EndpointNotAllowed) as refusal:
        check("https://secret-token.internal/secret-token")
    assert "secret" not in refusal.value.reason


URL_PIECES = st.lists(
    st.sampled_from(
        ["https://", "http://", "/", "\\", "@", ":", "443", "#", "?", ".", "[", "]", "::1", "%2f",
         "127.0.0.1", "push.example.org", "fcm.googleapis.com", "localhost", "①", "ß", "\u3002",
         "\uff0f", "\u00ad", "xn--", "0x7f", " ", "\t", "%", "%2", "5", "%37", "e", "%41"]
    ) | st.text(max_size=3),
    max_size=8,
).map("".join)  # fmt: skip


@given(URL_PIECES | URL_PIECES.map("https://push.example.org".__add__))
@example("https://push.example.org")
def test_any_text_is_refused_or_called_at_the_host_that_was_checked(text):
    with suppress(EndpointNotAllowed):
        endpoint = check(text)
        assert service_of(text, frozenset()) == endpoint.service
        assert canonical_endpoint(text) == endpoint.url == check(endpoint.url).url
        origin, path = split(endpoint.url)
        dialled = urlsplit(endpoint.url)
        assert origin == endpoint.origin == f"https://{dialled.hostname}"
        assert (dialled.port, dialled.username) == (None, None)
        assert path.startswith("/")
        assert origin.isascii()
        assert dialled.hostname.count(".") >= 1
