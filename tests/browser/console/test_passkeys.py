"""Passkeys in Chromium, with its virtual authenticator. Browsers allow none for IP addresses."""

import re

import pytest
from allauth.mfa.models import Authenticator
from auditlog.models import LogEntry
from django.contrib.auth.models import User
from playwright.sync_api import expect

from channels_app.models import Membership
from tests.browser.console.support import Console, path_of
from tests.browser.console.test_signing_in import sign_in, sign_out

STEPS = "/admin/auth/user/two-step/"


@pytest.fixture
def console(chromium, service):
    with Console(chromium, service.replace("127.0.0.1", "localhost")) as console:
        yield console


def authenticator(page, *, is_verified=True):
    """A device with a fingerprint reader, as the page's browser has it; the command of its CDP."""
    browser = page.context.new_cdp_session(page)
    browser.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": is_verified,
        "automaticPresenceSimulation": True,
    }
    added = browser.send("WebAuthn.addVirtualAuthenticator", {"options": options})

    def set_verified(is_verified):
        parameters = {"authenticatorId": added["authenticatorId"], "isUserVerified": is_verified}
        browser.send("WebAuthn.setUserVerified", parameters)

    return set_verified


def add_passkey(page, name="my laptop"):
    page.goto(STEPS)
    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Add the passkey").click()


def test_a_user_adds_a_passkey_and_signs_in_with_it_alone(console, carol):
    page = console.open("/admin/", carol)
    authenticator(page)
    add_passkey(page)
    recovery = page.locator("#recovery-codes").inner_text().split()
    assert len(recovery) == 10
    page.goto(STEPS)
    expect(page.get_by_text("my laptop").first).to_be_visible()
    sign_out(page)

    page.goto("/admin/channels_app/channel/")
    sign_in(page, carol)  # the password alone is not enough now
    expect(page.get_by_role("alert").first).to_contain_text("The sign-in failed")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("Channels"))
    assert path_of(page) == "channels_app/channel/"
    notes = LogEntry.objects.filter(actor=carol).values_list("additional_data__note", flat=True)
    assert {"The passkey “my laptop” was added.", "Signed in."} <= set(notes)
    sign_out(page)
    page.goto("/admin/")
    sign_in(page, carol, code=recovery[0])
    expect(page.get_by_role("button", name=re.compile("carol"))).to_be_visible()


def test_a_passkey_needs_the_fingerprint_of_the_user(console, carol):
    page = console.open("/admin/", carol)
    set_verified = authenticator(page)
    add_passkey(page)
    page.locator("#recovery-codes").wait_for()
    sign_out(page)

    set_verified(False)
    page.goto("/admin/login/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("The passkey was not used")
    assert path_of(page) == "login/"
    set_verified(True)
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("button", name=re.compile("carol"))).to_be_visible()


def test_a_passkey_proves_who_removes_it(console, carol):
    page = console.open("/admin/", carol)
    authenticator(page)
    add_passkey(page)
    page.locator("#recovery-codes").wait_for()
    sign_out(page)
    page.goto("/admin/login/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("button", name=re.compile("carol"))).to_be_visible()

    page.goto(STEPS)
    page.get_by_role("link", name="Remove my laptop").click()
    page.get_by_role("link", name="Use a passkey").click()
    page.get_by_role("button", name="Use a passkey").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_role("heading", name="Two-step sign-in is off")).to_be_visible()
    assert not Authenticator.objects.filter(user=carol).exists()


def test_a_member_who_must_have_a_second_step_adds_a_passkey(console, carol):
    account = Membership.objects.get(user=carol).account
    account.requires_two_step = True
    account.save()
    page = console.open("/admin/", carol)
    authenticator(page)
    assert path_of(page) == "auth/user/two-step/"
    add_passkey(page)
    page.get_by_role("link", name="Go to the dashboard").click()
    expect(page.get_by_role("navigation").first).to_be_visible()
    assert path_of(page) == ""
    assert User.objects.filter(pk=carol.pk, authenticator__type="webauthn").exists()
