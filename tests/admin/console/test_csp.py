"""What browsers may load and run on each page, and that no page allows more."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from tests.admin.support import make_root, signed_in

HEADER = "Content-Security-Policy"
# Allowed in the console only: its theme evaluates strings and has styles in its pages.
CONSOLE_ONLY = ("'unsafe-eval'", "https:")


def policy(answer):
    directives = (part.split() for part in answer.headers[HEADER].split("; "))
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
def test_an_api_answer_may_load_and_run_nothing(db, path):
    found = policy(Client().get(path))

    assert set(found) == {"default-src", "base-uri", "form-action", "frame-ancestors"}
    assert {value for values in found.values() for value in values} == {"'none'"}


def test_only_the_console_may_evaluate_strings(db):
    for path in ("/", "/docs", "/docs/errors", "/demo", "/healthz", "/administration"):
        header = Client().get(path).headers[HEADER]
        assert not any(word in header for word in CONSOLE_ONLY), path
    assert "'unsafe-eval'" in Client().get("/admin/login/").headers[HEADER]


def test_forms_of_the_console_may_post_to_this_service_only(db):
    assert policy(Client().get("/admin/login/"))["form-action"] == ["'self'"]


SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*type=.application/json)", re.IGNORECASE)
HANDLER = re.compile(r"<[^>]+\s(on[a-z]+)\s*=", re.IGNORECASE)


@pytest.mark.parametrize("path", ["/", "/docs", "/docs/errors", "/admin/login/", "/admin/nothing"])
def test_public_pages_hold_no_inline_script(db, path):
    page = Client().get(path).content.decode()

    assert not SCRIPT.search(page)
    assert not HANDLER.search(page)


def test_console_pages_hold_no_inline_script(alice):
    client = signed_in(make_root())
    names = ["index", "auth_user_add", "auditlog_logentry_changelist"]
    for name in names:
        page = client.get(reverse(f"admin:{name}")).content.decode()
        assert not SCRIPT.search(page), name
        assert not HANDLER.search(page), name


def test_no_page_may_be_framed_or_sniffed_for_another_type(db):
    for path in ("/", "/admin/login/", "/healthz"):
        answer = Client().get(path)
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "same-origin"


@pytest.mark.parametrize(("path", "says"), [("/admin/nothing/", "Page not found"), ("/admin/", "")])
def test_error_pages_of_the_console_say_what_to_do(alice, path, says):
    assert says in signed_in(alice.members["viewer"]).get(path).content.decode()


def test_a_refusal_names_the_role_that_is_needed(alice):
    page = reverse("admin:channels_app_account_change", args=[alice.account.pk])
    answer = signed_in(alice.members["viewer"]).get(page)

    assert answer.status_code == 403
    assert "“owner”" in answer.content.decode()


def test_a_form_without_its_csrf_token_is_refused_with_advice(alice):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice.members["owner"], backend="channels_app.sign_in.backend.StaffBackend")
    page = reverse("admin:channels_app_account_change", args=[alice.account.pk])

    answer = client.post(page, {"do": "add", "username": "carol", "role": "owner"})

    assert answer.status_code == 403
    assert "Go back, reload the page" in answer.content.decode()
