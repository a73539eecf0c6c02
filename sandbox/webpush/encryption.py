"""Decrypts a push message with the device's keys (RFC 8291, on RFC 8188).

It uses only `cryptography`. With the senders' library, an error of that library would not be
noticed.
"""

from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sandbox.responses import RejectedError
from sandbox.webpush.responses import rejected

_SALT_LENGTH = 16
_KEY_ID_START = 21
_POINT_LENGTH = 65
_CIPHERTEXT_START = _KEY_ID_START + _POINT_LENGTH
_TAG_LENGTH = 16
_DELIMITER = b"\x02"


@dataclass(frozen=True, slots=True)
class UserAgentKeys:
    """The keys of a subscription, as a browser stores them."""

    private_key: ec.EllipticCurvePrivateKey
    public_key: bytes
    auth_secret: bytes

    @classmethod
    def of(cls, private_key: ec.EllipticCurvePrivateKey, auth_secret: bytes) -> "UserAgentKeys":
        return cls(private_key, uncompressed_point(private_key.public_key()), auth_secret)


@dataclass(frozen=True, slots=True)
class EncryptedRecord:
    salt: bytes
    record_size: int
    sender_key: bytes
    ciphertext: bytes


def uncompressed_point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def parse_record(body: bytes) -> EncryptedRecord:
    """Splits the body. Raises RejectedError (400, errno 110) unless it is one record of RFC 8291.

    The record size must exceed the sum of delimiter, padding, plaintext and tag. A smaller one
    means that more records follow.
    """
    if len(body) < _CIPHERTEXT_START + len(_DELIMITER) + _TAG_LENGTH:
        raise _unreadable("the body is too short for an aes128gcm message")
    if body[_KEY_ID_START - 1] != _POINT_LENGTH:
        raise _unreadable("the key id is not 65 bytes long")
    record = EncryptedRecord(
        salt=body[:_SALT_LENGTH],
        record_size=int.from_bytes(body[_SALT_LENGTH : _KEY_ID_START - 1], "big"),
        sender_key=body[_KEY_ID_START:_CIPHERTEXT_START],
        ciphertext=body[_CIPHERTEXT_START:],
    )
    if record.record_size <= len(record.ciphertext):
        raise _unreadable("the record size must exceed the one record that is allowed")
    return record


def sender_public_key(record: EncryptedRecord) -> ec.EllipticCurvePublicKey:
    """The key of this message. Raises RejectedError (400, errno 110) if it is not on P-256."""
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), record.sender_key)
    except ValueError as error:
        raise _unreadable("the key id is not a point on P-256") from error


def decrypt(record: EncryptedRecord, keys: UserAgentKeys) -> bytes:
    """The plaintext. Raises RejectedError (400, errno 110) if a browser would drop the message."""
    content_key, nonce = _content_key_and_nonce(record, keys)
    try:
        padded = AESGCM(content_key).decrypt(nonce, record.ciphertext, None)
    except InvalidTag as error:
        raise _unreadable("it does not decrypt with the keys of the subscription") from error
    delimited = padded.rstrip(b"\0")
    if not delimited.endswith(_DELIMITER):
        raise _unreadable("the last record's delimiter is not 0x02")
    return delimited[: -len(_DELIMITER)]


def _content_key_and_nonce(record: EncryptedRecord, keys: UserAgentKeys) -> tuple[bytes, bytes]:
    """RFC 8291 §3.4."""
    shared = keys.private_key.exchange(ec.ECDH(), sender_public_key(record))
    info = b"WebPush: info\0" + keys.public_key + record.sender_key
    secret = _hkdf(shared, keys.auth_secret, info, 32)
    content_key = _hkdf(secret, record.salt, b"Content-Encoding: aes128gcm\0", 16)
    return content_key, _hkdf(secret, record.salt, b"Content-Encoding: nonce\0", 12)


def _hkdf(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)


def _unreadable(reason: str) -> RejectedError:
    return rejected(400, 110, f"Invalid encryption: {reason}")
