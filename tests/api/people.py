"""People as backends and devices make them, and what a channel counts of them."""

import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)


def new_key(owner, algorithm="HS256"):
    """A new identity key of the channel: its id, its algorithm and what signs."""
    body, signs = {"algorithm": algorithm}, None
    if algorithm == "ES256":
        signs, body["public_key"] = key_pair()
    answer = owner.call("POST", f"/channel/{owner.channel.id}/identity-keys", body)
    assert answer.status_code == 201, answer.content
    made = answer.json()
    return made["identity_key_id"], algorithm, signs or made["secret"]


def key_pair(curve=ec.SECP256R1):
    """The PEMs of a private key and of its public key."""
    key = ec.generate_private_key(curve())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def claims_of(owner, external_id, **claims):
    """The claims of a good token; None takes one away."""
    good = {"sub": external_id, "aud": str(owner.channel.id), "exp": int(time.time()) + 600}
    return {name: value for name, value in (good | claims).items() if value is not None}


def token(owner, key, external_id="user-42", headers=None, **claims):
    _, algorithm, signs = key
    return jwt.encode(claims_of(owner, external_id, **claims), signs, algorithm, headers=headers)


def audience(owner):
    answer = owner.call("GET", f"/channel/{owner.channel.id}/audience")
    assert answer.status_code == 200, answer.content
    return answer.json()
