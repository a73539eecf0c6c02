"""Signing in with the form, with and without a phone, and the lock-out after failures."""

import re
from itertools import count

import pytest
from django.conf import settings as configured
from django.contrib.auth.models import User
from django_otp.oath import totp
from django_otp.plugins.otp_totp.models import TOTPDevice
from playwright.sync_api import expect

from channels_app.models import Membership
from tests.admin.support import PASSWORD
from tests.browser.console.support import path_of

HASHERS = configured.PASSWORD_HASHERS
_NUMBERS = count(1)


@pytest.fixture
def carol(alice, settings):
    """A user whose password is hashed as the web process does it."""
    settings.PASSWORD_HASHERS = HASHERS
    user = User.objects.create_user(f"carol-{next(_NUMBERS)}", password=PASSWORD, is_staff=True)
    Membership.objects.create(account=alice.account, user=user, role="sender")
    return user


def sign_in(page, user, password=PASSWORD, code=""):
    page.get_by_label("User name").fill(user.username)
    page.get_by_label("Password").fill(password)
    page.get_by_label("Code").fill(code)
    page.get_by_role("button", name="Sign in").click()


def shown_code(user):
    """What the phone shows. Django-otp accepts each code once, so the test moves its time on."""
    phone = TOTPDevice.objects.get(user=user)
    TOTPDevice.objects.filter(user=user).update(last_t=-1, throttling_failure_count=0)
    return f"{totp(phone.bin_key, phone.step, phone.t0, phone.digits, phone.drift):06}"


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


def test_a_wrong_password_is_refused_with_a_message(console, carol):
    page = console.open("/admin/")

    sign_in(page, carol, password="wrong")

    expect(page.get_by_role("alert")).to_contain_text("The sign-in failed")
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


def test_two_step_sign_in_is_set_up_with_a_phone_and_needed_from_then_on(console, carol):
    page = console.open("/admin/auth/user/two-step/", carol)
    page.get_by_role("button", name="Set it up").click()
    expect(page.locator("svg[class]").or_(page.get_by_role("img")).first).to_be_visible()
    page.get_by_label("Code").fill(shown_code(carol))
    page.get_by_role("button", name="Turn it on").click()
    recovery = page.locator("#recovery-codes").inner_text().split()
    assert len(recovery) == 10
    sign_out(page)

    page.goto("/admin/")
    sign_in(page, carol)
    expect(page.get_by_role("alert")).to_contain_text("The sign-in failed")
    sign_in(page, carol, code=shown_code(carol))
    expect(page.get_by_role("navigation").first).to_be_visible()
    sign_out(page)
    page.goto("/admin/")
    sign_in(page, carol, code=recovery[0])

    expect(page.get_by_role("button", name=re.compile("carol"))).to_be_visible()
