"""The pages of optional ways to sign in: readable in light and dark, and on a phone."""

import time

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from channels_app.sign_in.session_store import SessionStore
from tests.admin.sign_in.steps import inside, shown
from tests.admin.support import PASSWORD
from tests.browser.console.support import (
    PHONE,
    Console,
    errors_of,
    is_wider_than_screen,
    violations_of,
)
from tests.pipeline.processes import running_web

FORGOT = "/admin/auth/user/forgot-password/"
STEPS = "/admin/auth/user/two-step/"


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


def errors_at(page, name):
    """What is wrong with the page, as it stands."""
    page.locator("html:not([x-cloak])").wait_for(state="attached")
    found = [*errors_of(page), *violations_of(page)]
    if is_wider_than_screen(page):
        found.append("wider than the screen")
    return [f"{name}: {error}" for error in found]


def visitor(console, **look):
    return console.open("/healthz", axe=True, **look)


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_pages_for_visitors_are_readable(console, alice, look):
    page = visitor(console, **look)
    page.goto("/admin/login/", wait_until="networkidle")
    found = errors_at(page, "sign-in")
    console.answers.add(503)
    page.get_by_role("link", name="Sign in with Example").click()
    page.get_by_role("alert").wait_for()
    found += errors_at(page, "provider away")
    page.goto("/admin/login/", wait_until="networkidle")
    page.get_by_role("link", name="Forgot your password?").click()
    page.wait_for_url(f"**{FORGOT}", wait_until="networkidle")
    found += errors_at(page, "forgot")
    page.get_by_label("E-mail").fill("carol@example.com")
    page.get_by_role("button", name="Send the mail").click()
    page.get_by_role("status").wait_for()
    found += errors_at(page, "asked")

    assert "\n".join(found) == ""


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_the_choice_among_users_of_an_address_is_readable(console, alice, bob, look):
    users = [*alice.members.values(), *bob.members.values()]
    User.objects.filter(pk__in=[user.pk for user in users]).update(email="carol@example.com")
    session = SessionStore()
    identity = {"sub": "c", "email": "carol@example.com", "email_verified": True}
    session["provider_users"] = {"identity": identity, "until": time.time() + 300, "next": None}
    session.create()
    page = visitor(console, **look)
    cookie = {"name": "sessionid", "value": session.session_key, "url": page.url}
    page.context.add_cookies([cookie])
    page.goto("/admin/auth/user/provider/choice/", wait_until="networkidle")
    viewer = bob.members["viewer"].username
    page.get_by_role("button", name=f"{viewer} ({bob.account})").wait_for()

    assert "\n".join(errors_at(page, "choice")) == ""


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_pages_for_owners_are_readable(console, alice, look):
    viewer = alice.members["viewer"]
    viewer.email = "a-rather-long-name.of-somebody@subdomain.example.com"
    viewer.save()
    page = console.open("/admin/", alice.members["owner"], axe=True, **look)
    members = reverse("admin:channels_app_account_change", args=[alice.account.pk])
    page.goto(members, wait_until="networkidle")

    assert "\n".join(errors_at(page, "members")) == ""


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_what_a_member_sees_who_must_set_up_two_step_sign_in_is_readable(console, alice, look):
    alice.account.requires_two_step = True
    alice.account.save()
    page = console.open("/admin/", alice.members["owner"], axe=True, **look)
    page.goto("/admin/", wait_until="networkidle")
    found = errors_at(page, "required")
    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_label("Name").wait_for()
    page.wait_for_load_state("networkidle")
    found += errors_at(page, "adding a passkey")
    page.go_back(wait_until="networkidle")
    page.get_by_role("link", name="Set up the app").click()
    page.get_by_label("Code").wait_for()
    page.wait_for_load_state("networkidle")
    found += errors_at(page, "setting up")
    page.get_by_label("Code").fill(shown(page.locator("#totp-secret").text_content()))
    page.get_by_role("button", name="Turn it on").click()
    page.locator("#recovery-codes").wait_for()
    found += errors_at(page, "codes")
    page.goto(STEPS, wait_until="networkidle")
    found += errors_at(page, "steps")
    page.goto(reverse("admin:channels_app_account_change", args=[alice.account.pk]))
    page.get_by_role("button", name="Make it optional").wait_for()
    found += errors_at(page, "strict members")

    assert "\n".join(found) == ""


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_what_a_user_with_a_second_step_sees_is_readable(console, carol, look):
    client, codes = inside(carol)
    page = visitor(console, **look)
    session = client.cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": page.url}])
    page.goto(f"{STEPS}app/remove/", wait_until="networkidle")
    found = errors_at(page, "proof")
    page.get_by_label("Password").fill("wrong")
    page.get_by_label("Code").fill("000000")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("alert").wait_for()
    found += errors_at(page, "wrong proof")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Code").fill(codes[0])
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Remove", exact=True).wait_for()
    found += errors_at(page, "removing")
    for name in ("codes/new/", "codes/", "proof/", ""):
        page.goto(f"{STEPS}{name}", wait_until="networkidle")
        found += errors_at(page, name)
    page.goto("/admin/password_change/", wait_until="networkidle")
    found += errors_at(page, "password")

    assert "\n".join(found) == ""
