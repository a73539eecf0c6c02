"""Undocumented names of libraries that the sign-in uses do what it expects.

`tests/api/test_private_apis.py` names their versions.
"""

from django.contrib.auth import views
from django.urls import reverse
from django_otp import DEVICE_ID_SESSION_KEY, _handle_auth_login

from channels_app.sign_in.passwords import set_password_path
from tests.admin.sign_in.test_otp import code_of, sign_in, turned_on


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
