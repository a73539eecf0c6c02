"""`manage.py doctor` names what is wrong with the credentials and secrets of channels."""

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User

from channels_app.models import IdentityKey, ProviderCredential
from tests.factories import make_channel
from tests.ops.doctor.findings import errors, report, the_error
from tests.pipeline import phones

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
def test_credentials_are_checked_only_on_request(healthy, settings, fcm):
    account = phones.store_google(fcm, healthy)
    accepted = {"severity": "ok", "title": "The Android credentials of Alice's shop are accepted"}
    assert accepted.items() <= report("--send")[0][-1].items()

    fcm.revoke(account)
    assert not [each for each in report()[0] if each["code"].startswith("credentials")]
    assert "The Android credentials of Alice's shop are refused" in errors("--send")


def test_a_credential_that_cannot_be_decrypted_is_named(healthy):
    ProviderCredential.objects.create(channel=healthy, platform="ios", secret_encrypted="x")

    remedy = errors("--send")["The iOS credentials of Alice's shop cannot be decrypted"]
    assert "CREDENTIAL_KEYS" in remedy


def test_channels_with_the_example_as_vapid_subject_are_named(healthy, settings):
    assert errors() == {}
    settings.VAPID_SUBJECT = settings.DEFAULT_VAPID_SUBJECT
    make_channel("Bob's news")
    make_channel("Carol's club")
    settings.VAPID_SUBJECT = healthy.vapid_subject

    title, remedy = the_error()
    assert "VAPID subject of 2 channels, of which Bob's news is the first," in title
    assert "mailto:" in remedy


def test_secrets_that_cannot_be_decrypted_are_named_without_calls(healthy):
    IdentityKey.objects.create(channel=healthy, algorithm="HS256", secret_encrypted="x")
    IdentityKey.objects.create(channel=healthy, algorithm="ES256", public_key="pem")

    title = "1 stored secrets (identity key of Alice's shop) cannot be decrypted"
    assert "CREDENTIAL_KEYS" in errors()[title]
    user = User.objects.create_user("alice")
    for kind, name in (("totp", "secret"), ("recovery_codes", "seed")):
        Authenticator.objects.create(user=user, type=kind, data={name: "x"})
    title = title.replace("1", "3").replace("shop)", "shop, two-step sign-in of alice)")
    assert title in errors()
