"""Input that no form of ours sends: every response is a page, and nothing is disclosed."""

import json
from itertools import product
from urllib.parse import urlencode

import pytest
from axes.models import AccessAttempt
from django.test import Client
from django.urls import reverse

from pushsvc.common.console.admin import site
from subscriptions_app.models import Segment
from tests.admin.sign_in.steps import inside
from tests.admin.support import PASSWORD, signed_in
from tests.factories import add_crowd, make_sent_notification

SEARCHES = [
    "plan=nan",
    "plan=-Infinity",
    "plan=1e999",
    "plan=" + "9" * 255,
    "=",
    "%_\\",
    "'; --",
    "\x00",
    "x" * 5_000,
    "age=\N{ARABIC-INDIC DIGIT THREE}",
]
RULES = {
    "NaN": '{"attribute": "a", "operator": "gt", "value": NaN}',
    "too deep for JSON": '{"not":' * 900 + "1" + "}" * 900,
    "too deep for JSON, in lists": "[" * 900 + "]" * 900,
    "half a surrogate pair as a field": '{"all": [], "\\ud800": 1}',
    "half a surrogate pair as a value": '{"attribute": "a", "operator": "eq", "value": "\\ud800"}',
    "NUL": '{"attribute": "\\u0000", "operator": "eq", "value": "\\u0000"}',
    "a huge number": '{"attribute": "a", "operator": "gt", "value": ' + "9" * 4_000 + "}",
    "a list": "[1]",
    "not JSON": "{",
}


def changelists():
    for model in site._registry:
        yield reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


@pytest.mark.parametrize(
    "query",
    [
        *({"q": search} for search in SEARCHES),
        {"o": "99.-98.x"},
        {"p": "9" * 30},
        {"p": "-1"},
        {"_to_field": "secret_sha256"},
        {"_popup": "1"},
        {"e": "1"},
        {"all": ""},
        {"_facets": "True"},
        {"channel__id__exact": "x"},
        {"channel__account__name__startswith": "B"},
        {"status__regex": "((("},
        {"platform__regex": "((("},
        {"platform__in": "web,\x00"},
        {"days": "9" * 400},
        {"kind": "auth.nothing"},
        {"action": "\x00"},
        {"show": "\x00"},
    ],
)
def test_every_list_responds_to_every_search_and_query_string(alice, root, query):
    add_crowd(alice.channel, 2)
    make_sent_notification(alice.channel)

    clients = [signed_in(person) for person in (root, alice.members["viewer"])]
    for client, path in product(clients, changelists()):
        response = client.get(path, query, follow=True)
        assert response.status_code in {200, 400, 403}, (path, query)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_segment_builder_responds_to_every_rule(alice, rule):
    client = signed_in(alice.members["manager"])
    for name in ("segment_new", "segment_preview"):
        page = reverse(f"admin:{name}", args=[alice.channel.pk])
        response = client.post(page, {"name": "all", "rule": rule})
        assert response.status_code in {200, 400}, name
    assert not Segment.objects.exists()


@pytest.mark.parametrize("name", ["\x00", "", "x" * 10_000])
def test_every_odd_segment_name_is_stored_or_refused_with_a_message(alice, name):
    page = reverse("admin:segment_new", args=[alice.channel.pk])
    rule = json.dumps({"field": "platform", "operator": "eq", "value": "web"})

    response = signed_in(alice.members["manager"]).post(page, {"name": name, "rule": rule})

    assert response.status_code == 400
    assert not Segment.objects.exists()


@pytest.mark.parametrize("number", ["0", "9" * 20, "9" * 5_000, "\N{SUPERSCRIPT TWO}", "-1"])
def test_an_odd_id_of_a_user_or_member_is_not_found(alice, root, number):
    client = signed_in(root)

    assert client.get(f"/admin/auth/user/{number}/change/").status_code == 404
    members = reverse("admin:channels_app_account_change", args=[alice.account.pk])
    response = client.post(members, {"do": "remove", "membership": number})
    assert response.status_code == 404


@pytest.mark.parametrize("field", ["password1", "password2", "oldpassword", "code"])
def test_a_wrong_password_stores_nothing_that_was_typed(alice, field):
    typed = {"oldpassword": "wrong", "code": "123456"}
    typed |= {"password1": "planted-secret", "password2": "planted-secret"}
    typed[field] = "planted-secret"

    response = signed_in(alice.members["viewer"]).post("/admin/password_change/", typed)

    assert response.status_code in {200, 429}
    assert AccessAttempt.objects.exists()
    for row in AccessAttempt.objects.values():
        assert "planted-secret" not in str(row)


def test_a_wrong_code_stores_no_password(alice):
    typed = {"password": PASSWORD, "code": "planted-code"}
    client, _ = inside(alice.members["viewer"])

    client.post(reverse("account_reauthenticate"), typed)

    assert AccessAttempt.objects.exists()
    for row in AccessAttempt.objects.values():
        assert PASSWORD not in str(row)
        assert "planted-code" not in str(row)


@pytest.mark.parametrize(
    "next_page",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "https:evil.example",
        "javascript:alert(1)",
        "\t//evil.example",
        "http://testserver@evil.example/",
    ],
)
def test_signing_in_redirects_to_no_other_site(alice, next_page):
    fields = {"login": "alice-viewer", "password": PASSWORD, "next": next_page}

    for path in ("/admin/login/", f"/admin/login/?{urlencode({'next': next_page})}"):
        response = Client().post(path, fields)
        assert response.status_code == 302
        assert response["Location"].startswith("/admin/"), response["Location"]


@pytest.mark.parametrize("next_page", ["https://evil.example/", "//evil.example/"])
def test_signing_out_redirects_to_no_other_site(alice, next_page):
    client = signed_in(alice.members["viewer"])

    for path in ("/admin/logout/", f"/admin/logout/?{urlencode({'next': next_page})}"):
        response = client.post(path, {"next": next_page})
        assert "evil" not in response.headers.get("Location", "")


@pytest.mark.parametrize(
    ("expires", "zone", "status"),
    [
        ("0001-01-01T00:00", "UTC", 200),
        ("9999-12-31T23:59", "UTC", 200),
        ("0001-01-01T00:00", "Asia/Tokyo", 400),
        ("9999-12-31T23:59", "America/New_York", 400),
        ("99999-01-01T00:00", "UTC", 400),
        ("2031-01-01T00:00+99:00", "UTC", 400),
    ],
)
def test_the_page_of_a_key_that_expires_in_the_distant_future_opens(alice, expires, zone, status):
    client = signed_in(alice.members["manager"])
    page = reverse("admin:channel_keys", args=[alice.channel.pk])

    fields = {"name": "k", "scopes": ["read"], "expires_at": expires, "zone": zone}
    response = client.post(page, fields)

    assert response.status_code == status
    assert client.get(page).status_code == 200
    assert client.get("/admin/").status_code == 200
