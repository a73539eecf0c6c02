"""What browsers may load and run on each page, and that no page allows more."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from tests.admin.support import signed_in

HEADER = "Content-Security-Policy"
# Allowed in the console only: its theme evaluates strings and has styles in its pages.
CONSOLE_ONLY = ("'unsafe-eval'", "https:")


def policy(response):
    directives = (part.split() for part in response.headers[HEADER].split("; "))
    return {name: values for name, *values in directives}


@pytest.mark.parametrize("path", ["/", "/docs", "/docs/errors", "/demo", "/demo/sw.js", "/admin/"])
def test_every_page_allows_only_what_it_lists(db, path):
    found = policy(Client().get(path))

    assert found["default-src"] == ["'none'"]
    assert found["base-uri"] == found["frame-ancestors"] == ["'none'"]
    assert found.get("object-src", ["'none'"]) == ["'none'"]
    assert "'unsafe-inline'" not in found.get("script-src", [])


@pytest.mark.parametrize(
    "path", ["/healthz", "/channel/x", "/nothing", "/openapi.json", "/subscribe", "/metrics"]
)
def test_an_api_response_may_load_and_run_nothing(db, path):
    found = policy(Client().get(path))

    assert set(found) == {"default-src", "base-uri", "form-action", "frame-ancestors"}
    assert {value for values in found.values() for value in values} == {"'none'"}


def test_only_the_console_may_evaluate_strings(db):
    for path in ("/", "/docs", "/docs/errors", "/demo", "/healthz", "/administration"):
        header = Client().get(path).headers[HEADER]
        assert not any(word in header for word in CONSOLE_ONLY), path
    console = Client().get("/admin/login/")
    assert "'unsafe-eval'" in console.headers[HEADER]
    assert policy(console)["form-action"] == ["'self'"]  # forms post to this service only


SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*type=.application/json)", re.IGNORECASE)
HANDLER = re.compile(r"<[^>]+\s(on[a-z]+)\s*=", re.IGNORECASE)


CONSOLE = [
    reverse(f"admin:{n}") for n in ("index", "auth_user_add", "auditlog_logentry_changelist")
]


@pytest.mark.parametrize(
    "path", ["/", "/docs", "/docs/errors", "/admin/login/", "/admin/nothing", *CONSOLE]
)
def test_no_page_has_an_inline_script(root, path):
    client = signed_in(root) if path in CONSOLE else Client()
    page = client.get(path).content.decode()

    assert not SCRIPT.search(page)
    assert not HANDLER.search(page)


def test_no_page_may_be_framed_or_sniffed_for_another_type(db):
    for path in ("/", "/admin/login/", "/healthz"):
        response = Client().get(path)
        assert response.headers["X-Frame-Options"] == "DENY"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "same-origin"


def test_a_missing_page_of_the_console_has_an_error_page(alice):
    page = signed_in(alice.members["viewer"]).get("/admin/nothing/").content.decode()

    assert "Page not found" in page


def test_a_refusal_names_the_required_role(alice):
    page = reverse("admin:channels_app_account_change", args=[alice.account.pk])
    response = signed_in(alice.members["viewer"]).get(page)

    assert response.status_code == 403
    assert "“owner”" in response.content.decode()


def test_a_form_without_its_csrf_token_is_refused_with_advice(alice):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice.members["owner"], backend="channels_app.sign_in.backend.StaffBackend")
    page = reverse("admin:channels_app_account_change", args=[alice.account.pk])

    response = client.post(page, {"do": "add", "username": "carol", "role": "owner"})

    assert response.status_code == 403
    assert "Go back, reload the page" in response.content.decode()
