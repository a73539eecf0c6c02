"""Two-step sign-in: a code of the phone, or a recovery code, after the password."""

from contextlib import ExitStack

import pytest
from auditlog.models import LogEntry
from axes.models import AccessAttempt
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.test import Client
from django.urls import reverse
from django_otp.oath import totp
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from channels_app.sign_in import two_step
from pushsvc.common import passwords
from pushsvc.common.passwords import HASHES_AT_ONCE, BoundedHasher, Places
from tests.admin.support import PASSWORD, said, signed_in

LOGIN = "/admin/login/"
PICTURE = "<title>QR code</title>"
NEW_PASSWORD = "another-long-battery-staple"


@pytest.fixture
def page(db):
    return reverse("admin:two_step")


def code_of(user):
    """What the phone shows now. Django-otp accepts each code once, so the test moves its time
    on."""
    phone = TOTPDevice.objects.get(user=user)
    TOTPDevice.objects.filter(user=user).update(last_t=-1, throttling_failure_count=0)
    return f"{totp(phone.bin_key, phone.step, phone.t0, phone.digits, phone.drift):06}"


def turned_on(user):
    two_step.begin(user=user)
    _, codes = two_step.confirm(user=user, code=code_of(user))
    return codes


def sign_in(user, code="", password=PASSWORD, client=None):
    fields = {"username": user.username, "password": password, "otp_token": code, "next": "/admin/"}
    return (client or Client()).post(LOGIN, fields)


def test_a_user_turns_on_two_step_sign_in_in_the_console(alice, page):
    viewer = alice.members["viewer"]
    client, elsewhere = signed_in(viewer), signed_in(viewer)
    client.post(page, {"do": "begin"})
    shown = client.get(page).content.decode()

    answer = client.post(page, {"do": "confirm", "code": code_of(viewer)})

    codes = answer.context["codes"]
    assert len(set(codes)) == two_step.RECOVERY_CODES
    assert "no-store" in answer.headers["Cache-Control"]
    assert client.get("/admin/").status_code == 200
    assert elsewhere.get("/admin/").status_code == 302  # the session began without a code
    again = client.get(page).content.decode()
    assert not any(code in again for code in codes)
    assert TOTPDevice.objects.get().key not in again
    assert PICTURE in shown
    assert PICTURE not in again


def test_a_wrong_code_does_not_turn_on_two_step_sign_in(alice, page):
    client = signed_in(alice.members["viewer"])
    client.post(page, {"do": "begin"})

    assert client.post(page, {"do": "confirm", "code": "000000"}).status_code == 400
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

    assert sign_in(viewer, codes[0].upper().replace("-", " ")).status_code == 302
    assert sign_in(viewer, codes[0]).status_code == 200
    assert two_step.recovery_codes_left(viewer) == 9


def test_a_recovery_code_works_after_the_secret_was_replaced(alice, settings):
    viewer = alice.members["viewer"]
    code = turned_on(viewer)[0]
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "new" * 20

    assert sign_in(viewer, "aaaaa-aaaaa").status_code == 200
    StaticDevice.objects.update(throttling_failure_count=0)
    assert sign_in(viewer, code).status_code == 302
    assert sign_in(viewer, code).status_code == 200


def test_recovery_codes_are_stored_hashed(alice):
    codes = turned_on(alice.members["viewer"])
    kept = str(list(StaticToken.objects.values()))

    assert not any(code in kept or code.replace("-", "") in kept for code in codes)


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


def test_a_wrong_code_delays_the_next_attempt(alice, settings):
    """Also if the attempts come from many addresses."""
    settings.OTP_TOTP_THROTTLE_FACTOR = 600  # seconds after the first wrong code
    viewer = alice.members["viewer"]
    turned_on(viewer)
    code = code_of(viewer)
    two_step.verify(user=viewer, code="000001" if code == "000000" else "000000")

    assert two_step.verify(user=viewer, code=code) is None
    assert TOTPDevice.objects.get().throttling_failure_count == 1


def test_a_session_without_the_code_has_no_access(alice):
    viewer = alice.members["viewer"]
    turned_on(viewer)
    client = signed_in(viewer)

    for path in ("/admin/", reverse("admin:channels_app_channel_changelist")):
        assert "/admin/login/" in client.get(path)["Location"]


def test_a_session_of_a_replaced_phone_has_no_access(alice):
    viewer = alice.members["viewer"]
    turned_on(viewer)
    client = Client()
    sign_in(viewer, code_of(viewer), client=client)
    two_step.turn_off(user=viewer)
    turned_on(viewer)

    assert client.get("/admin/").status_code == 302


def test_turning_two_step_sign_in_off_needs_password_and_code(alice, page):
    viewer = alice.members["viewer"]
    turned_on(viewer)
    client = Client()
    sign_in(viewer, code_of(viewer), client=client)

    for wrong in ({"off-password": PASSWORD, "off-code": "000000"}, {"off-password": PASSWORD}):
        assert client.post(page, {"do": "off", **wrong}).status_code == 400
        assert two_step.is_on(viewer)

    right = {"do": "off", "off-password": PASSWORD, "off-code": code_of(viewer)}
    assert client.post(page, right).status_code == 302
    assert not two_step.is_on(viewer)
    assert sign_in(viewer).status_code == 302


def test_new_recovery_codes_invalidate_the_old_ones(alice, page):
    viewer = alice.members["viewer"]
    old = turned_on(viewer)
    client = Client()
    sign_in(viewer, code_of(viewer), client=client)

    fields = {"do": "renew", "renew-password": PASSWORD, "renew-code": code_of(viewer)}
    new = client.post(page, fields).context["codes"]

    assert not set(new) & set(old)
    assert sign_in(viewer, old[1]).status_code == 200
    assert sign_in(viewer, new[1]).status_code in {200, 302}  # 200: the wrong code delays this one


def test_who_has_no_password_proves_it_by_the_code_alone(alice, page, settings):
    settings.OIDC_TRUST_SECOND_STEP = True  # also where the provider is trusted to ask for one
    viewer = alice.members["viewer"]
    turned_on(viewer)
    viewer.set_unusable_password()
    viewer.save()
    client = Client()
    client.force_login(viewer, backend="channels_app.sign_in.console.StaffBackend")
    session = client.session
    session["provider_vouches"] = True
    session.save()
    shown = client.get(page).content.decode()
    assert 'type="password"' not in shown
    assert "your password" not in shown

    for wrong in ({}, {"renew-code": "000000"}, {"renew-password": PASSWORD}):
        refused = client.post(page, {"do": "renew", **wrong})
        assert refused.status_code == 400
        assert "The password or" not in refused.content.decode()
    assert AccessAttempt.objects.get().failures_since_start == 1
    TOTPDevice.objects.update(throttling_failure_count=0)
    new = client.post(page, {"do": "renew", "renew-code": code_of(viewer)}).context["codes"]
    assert client.post(page, {"do": "off", "off-code": "aaaaa-aaaaa"}).status_code == 400
    assert two_step.is_on(viewer)
    StaticDevice.objects.update(throttling_failure_count=0)
    assert client.post(page, {"do": "off", "off-code": new[0]}).status_code == 302
    assert not two_step.is_on(viewer)
    assert client.post(page, {"do": "renew", "renew-code": new[1]}).status_code == 400


def test_who_has_a_password_must_say_it_beside_the_code(alice, page):
    viewer = alice.members["viewer"]
    turned_on(viewer)
    client = Client()
    sign_in(viewer, code_of(viewer), client=client)
    assert client.post(page, {"do": "off", "off-code": code_of(viewer)}).status_code == 400
    assert two_step.is_on(viewer)


def test_another_phone_is_set_up_only_after_two_step_sign_in_is_off(alice, page):
    viewer = alice.members["viewer"]
    turned_on(viewer)
    client = Client()
    sign_in(viewer, code_of(viewer), client=client)

    client.post(page, {"do": "begin"})

    assert two_step.pending(viewer) is None


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
    fields = {"password": PASSWORD, "code": code, "new_password": new, "repeated": new}
    return client.post("/admin/password_change/", fields)


def inside(user):
    """The browser of a user who signed in with a code, and the user's recovery codes."""
    codes = turned_on(user)
    client = Client()
    sign_in(user, code_of(user), client=client)
    return client, codes


def test_a_recovery_code_survives_a_sign_in_that_is_refused_for_want_of_a_place(
    alice, settings, monkeypatch
):
    settings.PASSWORD_HASHERS = [f"{__name__}.FullOnceProven"]
    viewer = alice.members["viewer"]
    viewer.set_password(PASSWORD)
    viewer.save()
    client, codes = inside(viewer)
    monkeypatch.setattr(passwords, "_places", Places(0))

    with ExitStack() as taken:
        for who in range(HASHES_AT_ONCE):
            taken.enter_context(passwords._places.one_for(f"somebody {who}"))
        assert change_password(client, codes[0]).status_code == 503
        assert two_step.recovery_codes_left(viewer) == len(codes)

    assert change_password(client, codes[0]).status_code == 302
    assert two_step.recovery_codes_left(viewer) == len(codes) - 1


def test_a_recovery_code_survives_a_refused_new_password(alice):
    client, codes = inside(alice.members["viewer"])

    answer = change_password(client, codes[0], new="12345678")

    assert answer.status_code == 400
    assert "too common" in answer.content.decode()
    assert two_step.recovery_codes_left(alice.members["viewer"]) == len(codes)


def test_a_password_link_does_not_bypass_two_step_sign_in(alice):
    viewer = alice.members["viewer"]
    turned_on(viewer)
    viewer.set_password("another-long-battery-staple")
    viewer.save()

    assert sign_in(viewer, password="another-long-battery-staple").status_code == 200


def test_the_qr_code_holds_the_secret_that_the_phone_needs(alice):
    two_step.begin(user=alice.members["viewer"])
    address = two_step.pending(alice.members["viewer"]).config_url

    assert address.startswith("otpauth://totp/pushsvc%3Aalice-viewer?secret=")
    assert "period=30" in address
