"""Service accounts and their access tokens."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

TOKEN_LIFETIME = 3_600
_KEY_BITS = 2048


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """`key_file`: the file that Google's console downloads."""

    project: str
    email: str
    key_id: str
    public_key: rsa.RSAPublicKey
    key_file: Mapping[str, str]

    @classmethod
    def of(cls, key_file: Mapping[str, str]) -> "ServiceAccount":
        # Looking for the primes of a key takes as long as making it, and this key was made here.
        key = load_pem_private_key(
            key_file["private_key"].encode(), password=None, unsafe_skip_rsa_key_validation=True
        )
        if not isinstance(key, rsa.RSAPrivateKey):
            raise ValueError("a service account's key is an RSA key")
        return cls(
            project=key_file["project_id"],
            email=key_file["client_email"],
            key_id=key_file["private_key_id"],
            public_key=key.public_key(),
            key_file=dict(key_file),
        )


def new_key_file(project: str, token_uri: str) -> dict[str, str]:
    key = rsa.generate_private_key(65_537, _KEY_BITS)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")
    # `example.com:my-project` has accounts at my-project.example.com.iam.gserviceaccount.com.
    domain, _, name = project.rpartition(":")
    host = f"{name}.{domain}" if domain else name
    email = f"sandbox-{secrets.token_hex(4)}@{host}.iam.gserviceaccount.com"
    certificates = "https://www.googleapis.com"
    return {
        "type": "service_account",
        "project_id": project,
        "private_key_id": secrets.token_hex(20),
        "private_key": pem,
        "client_email": email,
        "client_id": str(secrets.randbelow(10**21)),
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": token_uri,
        "auth_provider_x509_cert_url": f"{certificates}/oauth2/v1/certs",
        "client_x509_cert_url": f"{certificates}/robot/v1/metadata/x509/{email}",
        "universe_domain": "googleapis.com",
    }


@dataclass(frozen=True, slots=True)
class AccessToken:
    """`expires_at` is Unix time in seconds."""

    value: str
    project: str
    email: str
    scopes: frozenset[str]
    expires_at: float


class AccessTokens:
    def __init__(self) -> None:
        self._by_value: dict[str, AccessToken] = {}

    def issue(
        self, account: ServiceAccount, scopes: frozenset[str], *, lifetime: int, now: float
    ) -> AccessToken:
        value = f"ya29.c.{secrets.token_urlsafe(96)}"
        token = AccessToken(value, account.project, account.email, scopes, now + lifetime)
        self._by_value[value] = token
        return token

    def find(self, value: str, now: float) -> AccessToken | None:
        token = self._by_value.get(value)
        return token if token and token.expires_at > now else None

    def forget(self, is_meant: Callable[[AccessToken], bool]) -> None:
        """Deletes the matching tokens, so that they are rejected."""
        self._by_value = {k: t for k, t in self._by_value.items() if not is_meant(t)}
