"""The pages of optional ways to sign in: readable in light and dark, and on a phone."""

import time

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from pushsvc.common.store.sessions import SessionStore
from tests.browser.console.support import (
    AXE,
    PHONE,
    Console,
    faults_of,
    is_wider_than_screen,
    violations_of,
)
from tests.browser.console.test_signing_in import shown_code
from tests.pipeline.processes import running_web

FORGOT = "/admin/auth/user/forgot-password/"


@pytest.fixture(scope="module")
def service(django_db_setup, transactional_db, to_sandboxes, tmp_path_factory):
    """A web process with every option, of which none is used."""
    options = {
        "EMAIL_URL": "smtp://127.0.0.1:9?tls=off",
        "EMAIL_FROM": "push@example.com",
        "PUBLIC_BASE_URL": "http://127.0.0.1",
        "OIDC_ISSUER": "http://127.0.0.1:9",
        "OIDC_CLIENT_ID": "pushsvc",
        "OIDC_CLIENT_SECRET": "secret",
        "OIDC_LABEL": "Example",
    }
    log_path = tmp_path_factory.mktemp("options") / "log"
    with to_sandboxes(), running_web(log_path, **options) as address:
        yield address


@pytest.fixture
def console(chromium, service):
    with Console(chromium, service) as console:
        yield console


LOOKS = [
    {"color_scheme": "light"},
    {"color_scheme": "dark"},
    {"color_scheme": "light", "viewport": PHONE},
]


def faults_at(page, name):
    """What is wrong with the page, as it stands."""
    page.locator("html:not([x-cloak])").wait_for(state="attached")
    found = [*faults_of(page), *violations_of(page)]
    if is_wider_than_screen(page):
        found.append("wider than the screen")
    return [f"{name}: {fault}" for fault in found]


def visitor(console, **look):
    page = console.open("/healthz", **look)
    page.add_init_script(path=AXE)
    return page


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_pages_for_visitors_are_readable(console, alice, look):
    page = visitor(console, **look)
    page.goto("/admin/login/", wait_until="networkidle")
    found = faults_at(page, "sign-in")
    console.answers.add(503)
    page.get_by_role("link", name="Sign in with Example").click()
    page.get_by_role("alert").wait_for()
    found += faults_at(page, "provider away")
    page.goto("/admin/auth/user/provider/code/", wait_until="networkidle")
    found += faults_at(page, "provider code")
    page.goto("/admin/login/", wait_until="networkidle")
    page.get_by_role("link", name="Forgot your password?").click()
    page.wait_for_url(f"**{FORGOT}", wait_until="networkidle")
    found += faults_at(page, "forgot")
    page.get_by_label("E-mail").fill("carol@example.com")
    page.get_by_role("button", name="Send the mail").click()
    page.get_by_role("status").wait_for()
    found += faults_at(page, "asked")

    assert "\n".join(found) == ""


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_the_choice_among_users_of_an_address_is_readable(console, alice, bob, look):
    users = [*alice.members.values(), *bob.members.values()]
    User.objects.filter(pk__in=[user.pk for user in users]).update(email="carol@example.com")
    session = SessionStore()
    identity = {"issuer": "http://127.0.0.1:9", "subject": "c", "email": "carol@example.com"}
    session["provider_users"] = {"identity": identity, "until": time.time() + 300, "next": ""}
    session.create()
    page = visitor(console, **look)
    cookie = {"name": "sessionid", "value": session.session_key, "url": page.url}
    page.context.add_cookies([cookie])
    page.goto("/admin/auth/user/provider/choice/", wait_until="networkidle")
    viewer = bob.members["viewer"].username
    page.get_by_role("button", name=f"{viewer} ({bob.account})").wait_for()

    assert "\n".join(faults_at(page, "choice")) == ""


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_pages_for_owners_are_readable(console, alice, look):
    viewer = alice.members["viewer"]
    viewer.email = "a-rather-long-name.of-somebody@subdomain.example.com"
    viewer.save()
    page = console.open("/admin/", alice.members["owner"], **look)
    page.add_init_script(path=AXE)
    members = reverse("admin:channels_app_account_change", args=[alice.account.pk])
    page.goto(members, wait_until="networkidle")

    assert "\n".join(faults_at(page, "members")) == ""


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_what_a_member_sees_who_must_set_up_two_step_sign_in_is_readable(console, alice, look):
    alice.account.requires_two_step = True
    alice.account.save()
    page = console.open("/admin/", alice.members["owner"], **look)
    page.add_init_script(path=AXE)
    page.goto("/admin/", wait_until="networkidle")
    found = faults_at(page, "required")
    page.get_by_role("button", name="Set it up").click()
    page.get_by_label("Code").wait_for()
    page.wait_for_load_state("networkidle")
    found += faults_at(page, "setting up")
    page.get_by_label("Code").fill(shown_code(alice.members["owner"]))
    page.get_by_role("button", name="Turn it on").click()
    page.locator("#recovery-codes").wait_for()
    found += faults_at(page, "codes")
    page.get_by_role("link", name="Go to the dashboard").click()
    page.goto(reverse("admin:channels_app_account_change", args=[alice.account.pk]))
    page.get_by_role("button", name="Make it optional").wait_for()
    found += faults_at(page, "strict members")

    assert "\n".join(found) == ""
