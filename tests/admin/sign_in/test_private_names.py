"""Undocumented names of libraries that the sign-in uses, with the version that has them.

If a new version fails here, read what changed, check the accessor, and name the new version.
"""

from importlib.metadata import version

import pytest
from django.contrib.auth import views
from django.urls import reverse
from django_otp import DEVICE_ID_SESSION_KEY, _handle_auth_login

from channels_app.sign_in.passwords import set_password_path
from tests.admin.sign_in.test_otp import code_of, sign_in, turned_on


@pytest.mark.parametrize(
    ("library", "known"),
    [
        ("django", "5.2.19"),  # channels_app/sign_in/admin/own.py: SetPasswordView
        ("django-otp", "1.7.5"),  # channels_app/sign_in/console.py: StaffBackend
    ],
)
def test_the_installed_version_is_the_one_that_was_read(library, known):
    assert version(library) == known


def test_django_keeps_the_token_of_an_opened_link_under_the_name_that_we_delete(alice, client):
    form = client.get(set_password_path(user=alice.members["viewer"]))["Location"]
    assert views.INTERNAL_RESET_SESSION_TOKEN in client.session

    password = "another-long-battery-staple"
    client.post(form, {"new_password1": password, "new_password2": password})

    assert views.INTERNAL_RESET_SESSION_TOKEN not in client.session
    assert b"no longer works" in client.get(form).content


def test_django_otp_reads_the_device_of_a_sign_in_from_its_user(alice, client):
    viewer = alice.members["viewer"]
    turned_on(viewer)
    assert _handle_auth_login.__module__ == "django_otp"

    sign_in(viewer, code_of(viewer), client=client)

    assert DEVICE_ID_SESSION_KEY in client.session
    assert client.get(reverse("admin:index")).status_code == 200
