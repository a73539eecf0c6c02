"""A valid message is accepted; each broken rule is refused with its own status and errno."""

import base64
import json
import time

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256

from pushsvc.common import base64url
from sandbox import MismatchAnswer
from sandbox.webpush.encryption import (
    EncryptedRecord,
    UserAgentKeys,
    _content_key_and_nonce,
    decrypt,
    parse_record,
    uncompressed_point,
)
from tests.sandbox.webpush.sender import TEXT, Sender, encoded, encrypted, post, raw_post, request


def refusal(answered):
    return answered.status, answered.errno


def test_a_message_by_pywebpush_and_py_vapid_is_accepted_and_decrypted(sandbox, sender, device):
    before = time.time()
    answered = sender.send(device, Urgency="high", Topic="scores")
    assert answered.status == 201
    assert answered.headers["TTL"] == "60"
    assert answered.headers["Location"].startswith(f"{sandbox.origin}/message/")
    (receipt,) = sandbox.messages(device.id)
    assert receipt.plaintext == TEXT
    assert receipt.headers["Topic"] == "scores"
    assert receipt.status == 201
    assert receipt.accepted
    assert before <= receipt.at <= time.time()


def test_the_example_of_rfc_8291_decrypts():
    """RFC 8291 section 5 and appendix A."""
    private_key = ec.derive_private_key(
        int.from_bytes(base64url.decode("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"), "big"),
        ec.SECP256R1(),
    )
    keys = UserAgentKeys.of(private_key, base64url.decode("BTBZMqHH6r4Tts7J_aSIgg"))
    body = base64url.decode(
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLoc"
        "InmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLV"
        "WGNWQexSgSxsj_Qulcy4a-fN"
    )
    assert decrypt(parse_record(body), keys) == b"When I grow up, I want to be a watermelon"


def test_an_unknown_device_is_not_found(sandbox, sender, device):
    answered = post(f"{sandbox.origin}/push/unknown", sender.headers(device), encoded(device))
    assert refusal(answered) == (404, 102)


def test_a_deleted_device_is_permanently_gone(sandbox, sender, device):
    sandbox.delete(device)
    for _ in range(2):
        answered = sender.send(device)
        assert refusal(answered) == (410, 106)
        assert answered.headers["Cache-Control"] == "max-age=86400"


@pytest.mark.parametrize(
    ("name", "values", "errno"),
    [
        ("TTL", [None], 111),
        ("TTL", ["", "soon", "1.5", "+1", "9" * 30], 112),
        ("TTL", ["-1"], 114),
        ("Urgency", ["urgent", "", "low, high"], None),
        ("Topic", ["x" * 33, "a b", "a=", "ä", ""], 113),
        ("Content_Encoding", [None, "aesgcm", "identity", "gzip"], 110),
    ],
)
def test_an_invalid_header_is_rejected(sender, device, name, values, errno):
    for value in values:
        assert refusal(sender.send(device, **{name: value})) == (400, errno), value


@pytest.mark.parametrize(
    ("asked", "granted"), [("0", "0"), ("2592000", "2592000"), ("2592001", "2592000")]
)
def test_a_ttl_is_granted_up_to_30_days(sender, device, asked, granted):
    answered = sender.send(device, TTL=asked)
    assert (answered.status, answered.headers["TTL"]) == (201, granted)


def test_a_topic_of_32_characters_is_accepted(sender, device):
    assert sender.send(device, Topic="-" + "x" * 30 + "_").status == 201


@pytest.mark.parametrize(
    ("name", "value", "other"),
    [
        ("TTL", "60", "60"),
        ("Urgency", "low", "high"),
        ("Topic", "a", "b"),
        ("Content-Encoding", "aes128gcm", "aes128gcm"),
    ],
)
def test_a_repeated_header_is_rejected(sender, device, name, value, other):
    headers = [*sender.headers(device, **{name: None}).items(), (name, value)]
    assert raw_post(device, headers, encoded(device)).startswith(b"HTTP/1.1 201")
    assert raw_post(device, [*headers, (name, other)], encoded(device)).startswith(b"HTTP/1.1 400")


def test_a_body_may_have_4096_bytes_and_not_4097(sender, device):
    largest = encoded(device, b"x" * 3993)
    assert len(largest) == 4096
    assert sender.send(device, largest).status == 201
    assert refusal(sender.send(device, largest + b"x")) == (413, 104)
    assert refusal(sender.send(device, b"x" * 1_000_000)) == (413, 104)


def test_a_browser_that_is_reached_over_fcm_takes_smaller_bodies(sandbox, sender):
    phone = sandbox.subscribe(sender.public_key, is_bridged=True)
    assert sender.send(phone, encoded(phone, b"x" * 2912)).status == 201
    answered = sender.send(phone, encoded(phone, b"x" * 2913))
    assert refusal(answered) == (413, 104)
    assert "Converted buffer is too long by 1 bytes" in answered.body.decode()


@pytest.mark.parametrize("seconds", [-10, 25 * 3600], ids=["expired", "more than a day"])
def test_a_token_for_another_time_is_rejected(sender, device, seconds):
    authorization = sender.authorization(device, exp=int(time.time()) + seconds)
    assert refusal(sender.send(device, Authorization=authorization)) == (401, 109)


def signed(sender, device, header=None, **changes):
    """A token with any claims: py_vapid would refuse to make most of these."""
    claims = {
        "aud": device.endpoint.partition("/push/")[0],
        "exp": int(time.time()) + 3600,
        "sub": "mailto:push@example.com",
    } | changes
    claims = {name: value for name, value in claims.items() if value is not None}
    parts = [header or {"typ": "JWT", "alg": "ES256"}, claims]
    signing_input = ".".join(base64url.encode(json.dumps(part).encode()) for part in parts)
    der = sender.vapid.private_key.sign(signing_input.encode(), ec.ECDSA(SHA256()))
    signature = b"".join(number.to_bytes(32, "big") for number in decode_dss_signature(der))
    return f"{signing_input}.{base64url.encode(signature)}"


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": None},
        {"aud": "https://push.example.com"},
        {"aud": ["https://push.example.com"]},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": True},
        {"exp": float("nan")},
        {"exp": float("inf")},
        {"sub": None},
        {"sub": "push@example.com"},
        {"sub": "mailto:nobody"},
        {"sub": "http://example.com"},
        {"header": {"typ": "JWT", "alg": "none"}},
        {"header": {"typ": "JWT", "alg": "HS256"}},
    ],
    ids=str,
)
def test_a_token_with_wrong_claims_is_rejected(sender, device, claims):
    for changes, status in (({}, 201), (claims, 401)):
        authorization = f"vapid t={signed(sender, device, **changes)}, k={sender.public_key}"
        assert sender.send(device, Authorization=authorization).status == status


def without_signature(token):
    return token.rpartition(".")[0] + "."


def der_signature(token):
    """An ASN.1 signature, which JWS does not allow, in place of r and s."""
    signed_part, _, signature = token.rpartition(".")
    return f"{signed_part}.{base64url.encode(b'0D' + base64url.decode(signature))}"


def test_a_signature_without_its_leading_zero_is_rejected(sender, device):
    """r and s have 32 bytes each."""
    tokens = (signed(sender, device) for _ in range(10_000))
    token = next(each for each in tokens if base64url.decode(each.rpartition(".")[2])[32] == 0)
    signed_part, _, signature = token.rpartition(".")
    raw = base64url.decode(signature)
    shorter = f"{signed_part}.{base64url.encode(raw[:32] + raw[33:])}"
    for each, status in ((token, 201), (shorter, 401)):
        authorization = f"vapid t={each}, k={sender.public_key}"
        assert sender.send(device, Authorization=authorization).status == status


def other_claims(token):
    header, _, signature = token.split(".")
    claims = base64url.encode(b'{"aud": "https://push.example.com"}')
    return f"{header}.{claims}.{signature}"


@pytest.mark.parametrize("broken", [without_signature, der_signature, other_claims, lambda _: "x"])
def test_a_token_with_an_invalid_signature_is_rejected(sender, device, broken):
    for token in (broken(signed(sender, device)), signed(Sender(), device)):
        authorization = f"vapid t={token}, k={sender.public_key}"
        assert refusal(sender.send(device, Authorization=authorization)) == (401, 109)


@pytest.mark.parametrize(
    "header",
    [
        "WebPush {token}",
        "Bearer {token}",
        "Bearer t={token}, k={key}",
        "vapid {token}",
        "vapid t={token}",
        "vapid k={key}",
        "vapid t={token}, k={key}, k={key}",
        "vapid t={token}, k={key}=",
        "vapid t={token}, k=AAAA",
        "vapid",
        "",
    ],
)
def test_an_authorization_of_another_form_is_rejected(sender, device, header):
    authorization = header.format(token=signed(sender, device), key=sender.public_key)
    assert refusal(sender.send(device, Authorization=authorization)) == (401, 109)


def test_two_authorizations_are_rejected(sender, device):
    headers = [*sender.headers(device).items(), ("Authorization", sender.authorization(device))]
    assert raw_post(device, headers, encoded(device)).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(
    ("as_at", "status", "text"),
    [
        (MismatchAnswer.FORBIDDEN, 403, b'"errno": 109'),
        (MismatchAnswer.APPLE, 400, b'"reason":"VapidPkHashMismatch"'),
        (MismatchAnswer.MOZILLA, 401, b'"errno": 109, "error": "Unauthorized", "message": "VAPID'),
        (MismatchAnswer.WNS, 403, b""),
    ],
)
def test_a_restricted_subscription_rejects_another_key_as_a_push_service_does(
    sandbox, sender, as_at, status, text
):
    device = sandbox.subscribe(sender.public_key, as_at)
    answered = Sender().send(device)
    assert answered.status == status
    assert text in answered.body
    assert sender.send(device).status == 201
    assert refusal(sender.send(device, Authorization=None)) == (401, 109)


def test_an_unrestricted_subscription_accepts_any_valid_vapid_key_or_none(sandbox, sender):
    device = sandbox.subscribe()
    assert sender.send(device).status == 201
    assert sender.send(device, Authorization=None).status == 201
    assert refusal(sender.send(device, Authorization="vapid t=x, k=x")) == (401, 109)


def flipped(body, index):
    return body[:index] + bytes([body[index] ^ 1]) + body[index + 1 :]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (lambda body: b"", "too short"),
        (lambda body: body[:102], "too short"),
        (lambda body: body[:20] + b"\x40" + body[21:], "65 bytes"),
        (lambda body: flipped(body, 0), "does not decrypt"),
        (lambda body: flipped(body, -1), "does not decrypt"),
        (lambda body: flipped(body, 50), "not a point"),
        (lambda body: body[:16] + (35).to_bytes(4, "big") + body[20:], "record size"),
    ],
)
def test_a_body_that_a_browser_could_not_decrypt_is_rejected(sender, device, broken, reason):
    body = encoded(device)
    assert len(body) == 86 + len(TEXT) + 17
    answered = sender.send(device, broken(body))
    assert refusal(answered) == (400, 110)
    assert reason in json.loads(answered.body)["message"]


def test_a_body_for_another_device_is_rejected(sandbox, sender, device):
    other = sandbox.subscribe(sender.public_key)
    assert refusal(sender.send(device, encoded(other))) == (400, 110)


def test_a_body_of_two_records_is_rejected(sender, device):
    two_records = encrypted(device, b"x" * 100, rs=60)
    assert refusal(sender.send(device, two_records)) == (400, 110)


def sealed(device, padded):
    """A record with a delimiter and padding that the test chooses."""
    private_key = ec.generate_private_key(ec.SECP256R1())
    template = parse_record(encrypted(device, private_key=private_key))
    key, nonce = _content_key_and_nonce(template, device.keys)
    ciphertext = AESGCM(key).encrypt(nonce, padded, None)
    record = EncryptedRecord(template.salt, 4096, template.sender_key, ciphertext)
    head = record.salt + record.record_size.to_bytes(4, "big") + bytes([len(record.sender_key)])
    return head + record.sender_key + record.ciphertext


@pytest.mark.parametrize("padded", [b"text\x01", b"text\x01\0\0", b"text", b"\0\0\0\0"])
def test_a_record_without_the_last_records_delimiter_is_rejected(sender, device, padded):
    assert refusal(sender.send(device, sealed(device, padded))) == (400, 110)


def test_padding_is_removed(sandbox, sender, device):
    assert sender.send(device, sealed(device, b"text\x02\0\0\0")).status == 201
    assert sandbox.messages(device.id)[-1].plaintext == b"text"


@pytest.mark.parametrize("salts", [(b"a" * 16, b"a" * 16), (b"a" * 16, b"b" * 16)])
def test_a_key_pair_that_encrypts_a_second_message_is_rejected(sandbox, sender, device, salts):
    private_key = ec.generate_private_key(ec.SECP256R1())
    first, second = (encrypted(device, private_key=private_key, salt=salt) for salt in salts)
    assert sender.send(device, first).status == 201
    assert refusal(sender.send(device, second)) == (400, 110)
    other = sandbox.subscribe(sender.public_key)
    assert refusal(sender.send(other, encrypted(other, private_key=private_key))) == (400, 110)


def test_a_message_that_does_not_decrypt_does_not_use_up_its_key(sender, device):
    body = encoded(device)
    assert refusal(sender.send(device, flipped(body, -1))) == (400, 110)
    assert sender.send(device, body).status == 201


def test_rejected_requests_are_kept_and_not_counted_as_accepted(sandbox, sender, device):
    sender.send(device, TTL=None)
    (receipt,) = sandbox.messages(device.id)
    assert (receipt.status, receipt.plaintext, receipt.accepted) == (400, None, False)
    assert sandbox.accepted_count(device.id) == 0


def test_other_methods_on_the_push_resource_are_not_allowed(device):
    assert request("GET", device.endpoint).status == 405


def test_a_device_has_the_keys_that_a_browser_gives(device):
    keys = device.subscription["keys"]
    point = base64.urlsafe_b64decode(keys["p256dh"] + "=")
    assert point == uncompressed_point(device.private_key.public_key())
    assert len(base64.urlsafe_b64decode(keys["auth"] + "==")) == 16
