"""Second steps of users: an authenticator app, and the codes that it shows."""

import time

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import (
    TOTP,
    format_hotp_value,
    generate_totp_secret,
    hotp_value,
)
from django.core.cache import cache
from django.test import Client

from pushsvc.common.store.crypto import decrypt
from tests.admin.support import PASSWORD

LOGIN = "/admin/login/"


def app_of(user):
    return Authenticator.objects.get(user=user, type="totp")


def shown(secret):
    """The code that an app with the secret shows now."""
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30))


def code_of(user):
    """The code that the user's app shows now. A code works once, so this forgets which were used,
    and how many were wrong."""
    cache.clear()
    return shown(decrypt(app_of(user).data["secret"]))


def turned_on(user):
    """The recovery codes of a user who now has an app."""
    TOTP.activate(user, generate_totp_secret())
    return RecoveryCodes.activate(user).get_unused_codes()


def codes_left(user):
    codes = Authenticator.objects.get(user=user, type="recovery_codes")
    return len(codes.wrap().get_unused_codes())


def sign_in(user, code="", password=PASSWORD, client=None):
    fields = {"login": user.username, "password": password, "code": code, "next": "/admin/"}
    return (client or Client()).post(LOGIN, fields)


def inside(user):
    """The browser of a user who signed in with a code, and the user's recovery codes."""
    codes = turned_on(user)
    client = Client()
    assert sign_in(user, code_of(user), client=client).status_code == 302
    return client, codes


def prove(client, user, code, password=PASSWORD):
    """Confirms that it is the user, before a change of two-step sign-in."""
    return client.post("/admin/auth/user/two-step/proof/", {"password": password, "code": code})
