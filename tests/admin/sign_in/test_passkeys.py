"""Passkeys: who may add, use and remove one, and which are refused."""

import json

import pytest
from allauth.mfa.models import Authenticator
from auditlog.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from fido2.utils import websafe_encode

from channels_app.sign_in import two_step
from tests.admin.sign_in.authenticator import Passkey
from tests.admin.sign_in.steps import code_of, inside, prove, sign_in
from tests.admin.sign_in.test_provider import who
from tests.admin.support import signed_in

STEPS = "/admin/auth/user/two-step/"
ADD = f"{STEPS}passkey/"
LOGIN = "/admin/login/passkey/"
PROOF = f"{STEPS}proof/passkey/"
ANOTHER = Passkey()


@pytest.fixture(autouse=True)
def _https(settings):
    settings.MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = False


def add(client, passkey, name="my laptop"):
    options = client.get(ADD).context["js_data"]["creation_options"]
    fields = {"name": name, "credential": passkey.created(options), "passwordless": "on"}
    return client.post(ADD, fields)


@pytest.fixture
def passkey(alice):
    """Of Alice's viewer."""
    passkey = Passkey()
    assert add(signed_in(alice.members["viewer"]), passkey).status_code == 302
    return passkey


def begin(client):
    answer = client.get(LOGIN, headers={"Accept": "application/json"})
    return answer.json()["request_options"]


def sign_in_by(passkey, client=None, **changes):
    """The browser after a sign-in by the passkey."""
    client = client or Client()
    credential = passkey.signed(begin(client), **changes)
    assert client.post(LOGIN, {"credential": credential}).status_code == 302
    return client


def test_a_passkey_signs_its_user_in_without_a_password(passkey):
    client = sign_in_by(passkey)

    assert who(client) == "alice-viewer"
    assert client.session.get_expiry_age() == 12 * 3600


def test_a_user_with_a_passkey_alone_needs_it_or_a_recovery_code(alice, passkey):
    viewer = alice.members["viewer"]
    codes = Authenticator.objects.get(user=viewer, type="recovery_codes").wrap()

    assert two_step.is_on(viewer)
    assert sign_in(viewer).status_code == 200
    assert sign_in(viewer, codes.get_unused_codes()[0]).status_code == 302


def test_a_passkey_of_another_site_or_without_a_fingerprint_is_not_stored(alice):
    client = signed_in(alice.members["viewer"])
    for odd in (
        Passkey("https://evil.example"),
        Passkey("http://testserver"),
        Passkey(is_verified=False),
    ):
        assert "was not accepted" in add(client, odd).content.decode()
    assert not Authenticator.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"origin": "https://evil.example"},
        {"origin": "https://testserver.evil.example"},
        {"origin": "http://testserver"},
        {"is_verified": False},
        {"user": b"1000000"},
        {"user": b""},
        {"user": b"\xff"},
        {"id": b"another"},
        {"_key": ANOTHER._key},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_answer_that_the_passkey_did_not_give_signs_nobody_in(passkey, change):
    for name, value in change.items():
        setattr(passkey, name, value)

    assert who(sign_in_by(passkey)) is None


def test_an_answer_works_once_and_only_in_the_browser_that_asked(passkey):
    client, thief = Client(), Client()
    credential = passkey.signed(begin(client))
    begin(thief)

    thief.post(LOGIN, {"credential": credential})
    assert who(thief) is None
    client.post(LOGIN, {"credential": credential})
    assert who(client) == "alice-viewer"
    client.post("/admin/logout/")
    client.post(LOGIN, {"credential": credential})
    assert who(client) is None


@pytest.mark.parametrize("credential", ["", "{}", "[]", "1", '"x"', "{", '{"response": 1}'])
def test_a_malformed_answer_signs_nobody_in(db, credential):
    client = Client()
    begin(client)

    assert client.post(LOGIN, {"credential": credential}).status_code == 302
    assert who(client) is None


def malformed(credential):
    """Answers of which a part is missing or is something else, and JSON that cannot be parsed."""
    yield from ("[" * 5_000 + "]" * 5_000, '{"\\ud800": "\\ud800"}')
    whole = json.loads(credential)
    deep = websafe_encode(bytes(32) + b"\x85" + bytes(4) + b"\x81" * 5_000)  # CBOR, as extensions
    for odd in (None, 1, "", "A", "AA", "AAAA", "\N{SNOWMAN}", [], {}, [[]], {"a": []}, deep):
        for name in whole:
            yield json.dumps(whole | {name: odd})
        for name in whole["response"]:
            yield json.dumps(whole | {"response": whole["response"] | {name: odd}})
    for name in whole:
        yield json.dumps({each: whole[each] for each in whole if each != name})
    for name in whole["response"]:
        rest = {each: part for each, part in whole["response"].items() if each != name}
        yield json.dumps(whole | {"response": rest})


def test_every_answer_with_an_odd_part_is_refused_with_a_page(alice, passkey, settings):
    settings.SIGN_INS_PER_MINUTE = 1_000
    visitor, sender = Client(), signed_in(alice.members["sender"])
    created = ANOTHER.created(sender.get(ADD).context["js_data"]["creation_options"])
    viewer = sign_in_by(passkey)

    for answer in malformed(passkey.signed(begin(visitor))):
        visitor.post(LOGIN, {"credential": answer})
        begin(visitor)
        viewer.get(PROOF)
        assert viewer.post(PROOF, {"credential": answer}).status_code in {200, 302}
    for answer in malformed(created):
        sender.post(ADD, {"name": "x", "credential": answer, "passwordless": "on"})

    assert who(visitor) is None


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_staff": False}])
def test_a_deactivated_user_is_not_signed_in(alice, passkey, change):
    User.objects.filter(pk=alice.members["viewer"].pk).update(**change)
    client = sign_in_by(passkey)

    assert who(client) is None
    assert "The sign-in failed" in client.get("/admin/login/").content.decode()


def test_attempts_of_an_address_are_limited(passkey, settings):
    """Each start stores a session, for ten minutes."""
    settings.SIGN_INS_PER_MINUTE = 2
    sessions = Session.objects.count()
    answers = [Client().get(LOGIN, headers={"Accept": "application/json"}) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert Session.objects.count() == sessions + 2
    assert answers[0].client.session.get_expiry_age() <= 600


def test_a_passkey_sign_in_opens_no_other_site(passkey):
    client = Client()
    fields = {"credential": passkey.signed(begin(client)), "next": "https://evil.example/"}

    assert client.post(LOGIN, fields)["Location"] == "/admin/"


def test_another_passkey_needs_password_and_code(alice):
    viewer = alice.members["viewer"]
    client, _ = inside(viewer)
    assert client.get(ADD)["Location"].startswith(f"{STEPS}proof/")

    prove(client, viewer, code_of(viewer))
    assert add(client, Passkey())["Location"] == STEPS
    note = LogEntry.objects.order_by("-id")[0]
    assert note.additional_data["note"] == "The passkey “my laptop” was added."
    assert client.get("/admin/").status_code == 200


def test_a_passkey_is_proof_for_its_own_removal(alice, passkey):
    client = sign_in_by(passkey)
    row = Authenticator.objects.get(type="webauthn")
    remove = f"{ADD}{row.pk}/"
    assert client.post(remove)["Location"].startswith(f"{STEPS}proof/")

    options = client.get(PROOF).context["js_data"]["request_options"]
    passkey.is_verified = False
    client.post(PROOF, {"credential": passkey.signed(options)})
    assert client.get(remove).status_code == 302
    passkey.is_verified = True
    options = client.get(PROOF).context["js_data"]["request_options"]
    client.post(PROOF, {"credential": passkey.signed(options)})
    client.post(remove)

    assert not Authenticator.objects.exists()
    assert client.get("/admin/").status_code == 200
    notes = LogEntry.objects.values_list("additional_data__note", flat=True)
    assert "The passkey “my laptop” was removed. Two-step sign-in is off." in notes
    assert who(sign_in_by(passkey)) is None


def test_nobody_removes_the_passkey_of_another_user(alice, passkey):
    sender = alice.members["sender"]
    client, _ = inside(sender)
    prove(client, sender, code_of(sender))
    row = Authenticator.objects.get(type="webauthn")

    assert client.post(f"{ADD}{row.pk}/").status_code == 404
    assert Authenticator.objects.filter(pk=row.pk).exists()


def test_the_session_of_a_removed_passkey_has_no_access(alice, passkey):
    client = sign_in_by(passkey)
    two_step.turn_off(user=alice.members["viewer"])
    inside(alice.members["viewer"])

    assert client.get("/admin/").status_code == 302
