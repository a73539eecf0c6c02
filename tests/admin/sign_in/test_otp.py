"""Two-step sign-in: a code of an authenticator app, or a recovery code, after the password."""

from contextlib import ExitStack
from datetime import timedelta
from xml.etree import ElementTree

import pytest
from allauth.mfa.models import Authenticator
from auditlog.models import LogEntry
from axes.models import AccessAttempt
from cryptography.fernet import Fernet
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from channels_app.sign_in import hashing, two_step
from channels_app.sign_in.hashing import HASHES_AT_ONCE, BoundedHasher, Places
from tests.admin.sign_in.steps import (
    app_of,
    code_of,
    codes_left,
    inside,
    prove,
    shown,
    sign_in,
    turned_on,
)
from tests.admin.support import PASSWORD, said, signed_in

STEPS = "/admin/auth/user/two-step/"
APP = f"{STEPS}app/"
REMOVE_APP = f"{APP}remove/"
CODES = f"{STEPS}codes/"
NEW_CODES = f"{CODES}new/"
PROOF = f"{STEPS}proof/"
CODE_PROOF = f"{PROOF}code/"
NEW_PASSWORD = "another-long-battery-staple"


def codes_in(answer):
    return answer.context["unused_codes"]


def set_up(client):
    """The address of the recovery codes, after the client's user set up an app."""
    secret = client.get(APP).context["form"].secret
    return client.post(APP, {"code": shown(secret)})["Location"]


def test_a_user_turns_on_two_step_sign_in_in_the_console(transactional_db, alice):
    viewer = alice.members["viewer"]
    client, elsewhere = signed_in(viewer), signed_in(viewer)
    page = client.get(APP)
    secret = page.context["form"].secret
    assert "<title>QR code</title>" in page.content.decode()
    assert secret in page.content.decode()

    answer = client.post(APP, {"code": shown(secret)})
    assert answer["Location"] == CODES
    answer = client.get(CODES)

    codes = codes_in(answer)
    assert len(set(codes)) == 10
    assert all(code in answer.content.decode() for code in codes)
    assert "no-store" in answer.headers["Cache-Control"]
    assert client.get("/admin/").status_code == 200
    assert elsewhere.get("/admin/").status_code == 302  # the session began without a code
    for path in (CODES, STEPS):
        again = client.get(path).content.decode()
        assert not any(code in again for code in codes)
        assert secret not in again
    notes = LogEntry.objects.values_list("additional_data__note", flat=True)
    assert "An authenticator app for two-step sign-in was added." in notes


@pytest.mark.parametrize("is_required", [False, True])
@pytest.mark.parametrize("path", [APP, f"{STEPS}passkey/"])
def test_the_first_second_step_needs_the_password_unless_the_user_just_signed_in(
    alice, is_required, path
):
    """Otherwise who finds an unlocked computer could sign in for ever, and the user no more."""
    viewer = alice.members["viewer"]
    client = signed_in(viewer)
    assert client.get(path).status_code == 200
    alice.account.requires_two_step = is_required
    alice.account.save()
    viewer.last_login = timezone.now() - timedelta(minutes=6)
    viewer.save()

    asked = client.get(path)["Location"]
    assert asked.startswith(PROOF)
    assert client.post(path)["Location"].startswith(PROOF)
    assert client.post(asked, {"password": "wrong"}).status_code == 200
    assert client.get(path).status_code == 302
    client.post(asked, {"password": PASSWORD})
    assert client.get(path).status_code == 200


def test_a_wrong_code_does_not_turn_on_two_step_sign_in(alice):
    client = signed_in(alice.members["viewer"])
    client.get(APP)

    assert "This is not right" in client.post(APP, {"code": "000000"}).content.decode()
    assert not two_step.is_on(alice.members["viewer"])


def test_signing_in_needs_the_code(alice):
    viewer = alice.members["viewer"]
    turned_on(viewer)
    client = Client()

    assert sign_in(viewer).status_code == 200
    assert sign_in(viewer, code_of(viewer), client=client).status_code == 302
    assert client.get("/admin/").status_code == 200


def test_a_code_works_once(alice):
    viewer = alice.members["viewer"]
    turned_on(viewer)
    code = code_of(viewer)

    assert sign_in(viewer, code).status_code == 302
    assert sign_in(viewer, code).status_code == 200


def test_a_recovery_code_works_once_in_any_spelling(alice):
    viewer = alice.members["viewer"]
    codes = turned_on(viewer)

    assert sign_in(viewer, f"{codes[0][:5]} - {codes[0][5:]}").status_code == 302
    assert sign_in(viewer, codes[0]).status_code == 200
    assert codes_left(viewer) == 9


def test_codes_work_after_the_keys_of_secrets_were_rotated(alice, settings):
    viewer = alice.members["viewer"]
    code = turned_on(viewer)[0]
    old = settings.CREDENTIAL_KEYS
    settings.CREDENTIAL_KEYS = [Fernet.generate_key().decode(), *old]
    call_command("rotate_credential_keys")
    settings.CREDENTIAL_KEYS = settings.CREDENTIAL_KEYS[:1]

    assert sign_in(viewer, code).status_code == 302
    assert sign_in(viewer, code_of(viewer)).status_code == 302


def test_secrets_of_second_steps_are_stored_encrypted(alice):
    codes = turned_on(alice.members["viewer"])
    stored = Authenticator.objects.get(type="recovery_codes")
    data = str(list(Authenticator.objects.values_list("data", flat=True)))

    assert not any(code in data for code in codes)
    assert stored.wrap().instance.data["seed"].startswith("gAAAA")  # Fernet
    assert app_of(alice.members["viewer"]).data["secret"].startswith("gAAAA")


def test_no_answer_discloses_whether_the_password_was_correct(alice):
    viewer = alice.members["viewer"]
    turned_on(viewer)

    assert said(sign_in(viewer, "000000")) == said(sign_in(viewer, "000000", password="wrong"))
    assert said(sign_in(viewer)) == said(sign_in(viewer, password="wrong"))


def test_guessing_codes_locks_the_user_out(alice):
    viewer = alice.members["viewer"]
    turned_on(viewer)

    answers = [sign_in(viewer, f"{number:06}").status_code for number in range(5)]
    assert answers == [200] * 4 + [429]
    assert sign_in(viewer, code_of(viewer)).status_code == 429


def test_wrong_codes_delay_the_next_one_from_any_address(alice, settings):
    settings.TRUSTED_PROXIES = 1
    viewer = alice.members["viewer"]
    codes = turned_on(viewer)
    for number in range(3):
        client = Client(headers={"X-Forwarded-For": f"192.0.2.{number}"})
        assert sign_in(viewer, f"{number:06}", client=client).status_code == 200

    client = Client(headers={"X-Forwarded-For": "192.0.2.9"})
    assert sign_in(viewer, codes[0], client=client).status_code == 200
    assert codes_left(viewer) == len(codes)
    cache.clear()  # the time passes
    assert sign_in(viewer, codes[0], client=client).status_code == 302


def test_a_session_without_the_code_has_no_access(alice):
    viewer = alice.members["viewer"]
    turned_on(viewer)
    client = signed_in(viewer)

    for path in ("/admin/", reverse("admin:channels_app_channel_changelist")):
        assert "/admin/login/" in client.get(path)["Location"]
        client = signed_in(viewer)


def test_a_session_of_a_replaced_app_has_no_access(alice):
    viewer = alice.members["viewer"]
    client, _ = inside(viewer)
    two_step.turn_off(user=viewer)
    turned_on(viewer)

    assert client.get("/admin/").status_code == 302


def test_turning_two_step_sign_in_off_needs_password_and_code(alice):
    viewer = alice.members["viewer"]
    client, _ = inside(viewer)

    assert client.post(REMOVE_APP)["Location"].startswith(PROOF)
    for wrong in ({"password": PASSWORD, "code": "000000"}, {"password": PASSWORD}):
        assert client.post(PROOF, wrong).status_code == 200
        assert client.get(REMOVE_APP)["Location"].startswith(PROOF)
        assert two_step.is_on(viewer)

    assert prove(client, viewer, code_of(viewer)).status_code == 302
    assert client.post(REMOVE_APP)["Location"] == STEPS
    assert not two_step.is_on(viewer)
    assert not Authenticator.objects.exists()  # the recovery codes neither
    assert client.get("/admin/").status_code == 200
    assert sign_in(viewer).status_code == 302


def test_the_proof_leads_back_to_what_was_asked_for_and_counts_for_five_minutes(alice, settings):
    viewer = alice.members["viewer"]
    client, _ = inside(viewer)
    asked = client.get(REMOVE_APP)["Location"]
    fields = {"password": PASSWORD, "code": code_of(viewer)}

    assert client.post(asked, fields)["Location"] == REMOVE_APP
    assert client.get(REMOVE_APP).status_code == 200
    settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 0
    assert client.get(REMOVE_APP)["Location"].startswith(PROOF)


def test_new_recovery_codes_invalidate_the_old_ones(transactional_db, alice):
    viewer = alice.members["viewer"]
    client, old = inside(viewer)
    assert client.post(NEW_CODES)["Location"].startswith(PROOF)
    assert codes_left(viewer) == len(old)

    prove(client, viewer, old[0])
    assert client.post(NEW_CODES)["Location"] == CODES
    new = codes_in(client.get(CODES))

    assert client.get("/admin/").status_code == 200  # though it was proved by an old one
    assert not set(new) & set(old)
    assert sign_in(viewer, old[1]).status_code == 200
    assert sign_in(viewer, new[1]).status_code == 302
    notes = LogEntry.objects.values_list("additional_data__note", flat=True)
    assert "New recovery codes were created." in notes


def test_who_has_no_password_proves_it_by_the_code_alone(alice, settings):
    settings.OIDC_TRUST_SECOND_STEP = True  # even if the provider is trusted to require one
    viewer = alice.members["viewer"]
    codes = turned_on(viewer)
    viewer.set_unusable_password()
    viewer.save()
    client = signed_in(viewer)
    session = client.session
    session["provider_vouches"] = True
    session.save()
    assert client.get(REMOVE_APP)["Location"].startswith(CODE_PROOF)
    assert client.get(PROOF)["Location"].startswith(CODE_PROOF)
    page = client.get(CODE_PROOF).content.decode()
    assert 'type="password"' not in page

    for wrong in ({}, {"code": "000000"}, {"password": PASSWORD}):
        refused = client.post(CODE_PROOF, wrong)
        assert refused.status_code == 200
        assert "password or the" not in refused.content.decode()
        assert client.post(REMOVE_APP).status_code == 302
        assert two_step.is_on(viewer)
    assert AccessAttempt.objects.get().failures_since_start == 1
    assert client.post(CODE_PROOF, {"code": codes[0]}).status_code == 302
    client.post(REMOVE_APP)
    assert not two_step.is_on(viewer)


def test_who_has_a_password_must_say_it_beside_the_code(alice):
    viewer = alice.members["viewer"]
    client, _ = inside(viewer)

    assert client.post(CODE_PROOF, {"code": code_of(viewer)})["Location"].startswith(PROOF)
    assert client.post(PROOF, {"code": code_of(viewer)}).status_code == 200
    assert client.post(REMOVE_APP).status_code == 302
    assert two_step.is_on(viewer)


def test_another_app_is_set_up_only_after_the_first_was_removed(alice):
    viewer = alice.members["viewer"]
    client, _ = inside(viewer)
    prove(client, viewer, code_of(viewer))

    assert client.get(APP)["Location"] == REMOVE_APP


def test_a_superuser_turns_it_off_for_another_user_with_an_entry_in_the_audit_log(alice, root):
    viewer = alice.members["viewer"]
    turned_on(viewer)

    signed_in(root).post(reverse("admin:auth_user_change", args=[viewer.pk]), {"do": "reset"})

    assert not two_step.is_on(viewer)
    entry = LogEntry.objects.order_by("-id")[0]
    assert (entry.actor, entry.object_repr) == (root, viewer.username)
    assert "superuser" in entry.additional_data["note"]


class FullOnceProven(BoundedHasher):
    """A process whose places for hashing are free for the password check and taken after it."""

    iterations = 1

    def verify(self, password, encoded):
        return PBKDF2PasswordHasher().verify(password, encoded)

    def harden_runtime(self, password, encoded):
        """Does nothing: a test's password has few rounds."""


def change_password(client, code, new=NEW_PASSWORD):
    fields = {"oldpassword": PASSWORD, "code": code, "password1": new, "password2": new}
    return client.post("/admin/password_change/", fields)


def test_a_new_password_needs_the_code_too(alice):
    viewer = alice.members["viewer"]
    client, codes = inside(viewer)

    for wrong in ("", "000000"):
        assert change_password(client, wrong).status_code == 200
    viewer.refresh_from_db()
    assert viewer.check_password(PASSWORD)
    assert change_password(client, codes[0]).status_code == 302
    viewer.refresh_from_db()
    assert viewer.check_password(NEW_PASSWORD)


def test_a_recovery_code_survives_a_change_that_is_refused_for_want_of_a_place(
    alice, settings, monkeypatch
):
    settings.PASSWORD_HASHERS = [f"{__name__}.FullOnceProven"]
    viewer = alice.members["viewer"]
    viewer.set_password(PASSWORD)
    viewer.save()
    client, codes = inside(viewer)
    monkeypatch.setattr(hashing, "_places", Places(0))

    with ExitStack() as taken:
        for who in range(HASHES_AT_ONCE):
            taken.enter_context(hashing._places.one_for(f"somebody {who}"))
        assert change_password(client, codes[0]).status_code == 503
        assert codes_left(viewer) == len(codes)

    assert change_password(client, codes[0]).status_code == 302
    assert codes_left(viewer) == len(codes) - 1


def test_a_recovery_code_survives_a_refused_new_password(alice):
    client, codes = inside(alice.members["viewer"])

    answer = change_password(client, codes[0], new="12345678")

    assert answer.status_code == 200
    assert "too common" in answer.content.decode()
    assert codes_left(alice.members["viewer"]) == len(codes)


def test_a_password_link_does_not_bypass_two_step_sign_in(alice):
    viewer = alice.members["viewer"]
    turned_on(viewer)
    viewer.set_password("another-long-battery-staple")
    viewer.save()

    assert sign_in(viewer, password="another-long-battery-staple").status_code == 200


def test_the_qr_code_holds_the_secret_that_the_app_needs(alice):
    page = signed_in(alice.members["viewer"]).get(APP)
    secret, address = page.context["form"].secret, page.context["totp_url"]

    assert address == f"otpauth://totp/pushsvc%3Aalice-viewer?secret={secret}&issuer=pushsvc"
    ElementTree.fromstring(page.context["totp_svg"])  # noqa: S314 - drawn here


@pytest.mark.parametrize("path", [STEPS, APP, CODES, NEW_CODES, PROOF, CODE_PROOF, REMOVE_APP])
def test_only_the_user_opens_the_pages_of_their_second_steps(db, path):
    assert "/admin/login/" in Client().get(path)["Location"]
