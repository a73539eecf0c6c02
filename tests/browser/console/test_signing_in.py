"""Signing in with the form, with and without a phone, and the lock-out after failures."""

import re

from playwright.sync_api import expect

from tests.admin.sign_in.steps import code_of, shown
from tests.admin.support import PASSWORD
from tests.browser.console.support import path_of


def sign_in(page, user, password=PASSWORD, code=""):
    page.get_by_label("User name").fill(user.username)
    page.get_by_label("Password").fill(password)
    page.get_by_label("Code").fill(code)
    page.get_by_role("button", name="Sign in", exact=True).click()


def sign_out(page):
    page.get_by_role("button", name=re.compile("carol")).click()
    page.get_by_role("button", name="Log out").click()


def test_staff_sign_in_reach_the_page_they_asked_for_and_sign_out(console, carol):
    page = console.open("/admin/channels_app/channel/")
    assert path_of(page) == "login/"

    sign_in(page, carol)
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("Channels"))
    assert path_of(page) == "channels_app/channel/"
    sign_out(page)

    page.goto("/admin/")
    assert path_of(page) == "login/"


def test_failed_attempts_lock_the_user_out_and_the_page_says_for_how_long(console, carol):
    console.answers.add(429)
    page = console.open("/admin/")

    for _ in range(5):
        sign_in(page, carol, password="wrong")
        page.wait_for_load_state()

    expect(page.get_by_role("heading", level=1)).to_have_text("Too many failed attempts")
    expect(page.get_by_role("alert")).to_contain_text("another 15 minutes")
    page.get_by_role("link", name="Go to the sign-in").click()
    sign_in(page, carol)
    expect(page.get_by_role("heading", level=1)).to_have_text("Too many failed attempts")


def set_up(page):
    """Sets up an authenticator app with the secret that the page shows."""
    page.get_by_role("link", name="Set up the app").click()
    expect(page.locator("svg[class]").or_(page.get_by_role("img")).first).to_be_visible()
    secret = page.locator("#totp-secret").text_content()
    page.get_by_label("Code").fill(shown(secret))
    page.get_by_role("button", name="Turn it on").click()


def test_two_step_sign_in_is_set_up_with_a_phone_and_needed_from_then_on(console, carol):
    page = console.open("/admin/auth/user/two-step/", carol)
    set_up(page)
    recovery = page.locator("#recovery-codes").inner_text().split()
    assert len(recovery) == 10
    sign_out(page)

    page.goto("/admin/")
    sign_in(page, carol)
    expect(page.get_by_role("alert").first).to_contain_text("The sign-in failed")
    sign_in(page, carol, code=code_of(carol))
    expect(page.get_by_role("navigation").first).to_be_visible()
    sign_out(page)
    page.goto("/admin/")
    sign_in(page, carol, code=recovery[0])

    expect(page.get_by_role("button", name=re.compile("carol"))).to_be_visible()


def test_two_step_sign_in_is_turned_off_after_proof(console, carol):
    page = console.open("/admin/auth/user/two-step/", carol)
    set_up(page)
    recovery = page.locator("#recovery-codes").inner_text().split()
    sign_out(page)
    page.goto("/admin/auth/user/two-step/")
    sign_in(page, carol, code=recovery[0])

    page.get_by_role("link", name="Remove the app").click()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Code").fill(recovery[1])
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Remove", exact=True).click()

    expect(page.get_by_role("heading", name="Two-step sign-in is off")).to_be_visible()
