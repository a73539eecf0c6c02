"""A passkey in software, for what no browser would do."""

import json
import secrets
from hashlib import sha256

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2.cose import ES256
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

ORIGIN = "https://testserver"
_PRESENT, _VERIFIED, _ATTESTED = 0x01, 0x04, 0x40


class Passkey:
    """`origin`: where the browser says that it is. `is_verified`: whether the person was asked for
    a fingerprint or a PIN."""

    def __init__(self, origin=ORIGIN, *, is_verified=True):
        self.origin, self.is_verified = origin, is_verified
        self.id = secrets.token_bytes(16)
        self.user = b""
        self._key = ec.generate_private_key(ec.SECP256R1())

    def created(self, options):
        """The browser's answer to the options of a registration."""
        asked = options["publicKey"]
        self.user = websafe_decode(asked["user"]["id"])
        public = ES256.from_cryptography_key(self._key.public_key())
        credential = AttestedCredentialData.create(Aaguid.NONE, self.id, public)
        data = self._data(asked["rp"]["id"], _ATTESTED, credential)
        client = self._client(CollectedClientData.TYPE.CREATE, asked["challenge"])
        attestation = AttestationObject.create("none", data, {})
        return self._answer(client, attestationObject=attestation)

    def signed(self, options, **changes):
        """The browser's answer to the options of a sign-in."""
        asked = options["publicKey"]
        data = self._data(asked["rpId"], 0)
        client = self._client(CollectedClientData.TYPE.GET, asked["challenge"])
        signature = self._key.sign(data + client.hash, ec.ECDSA(hashes.SHA256()))
        parts = {"authenticatorData": data, "signature": signature, "userHandle": self.user}
        return self._answer(client, **(parts | changes))

    def _data(self, site, flags, credential=b""):
        flags |= _PRESENT | (_VERIFIED if self.is_verified else 0)
        return AuthenticatorData.create(sha256(site.encode()).digest(), flags, 0, credential)

    def _client(self, kind, challenge):
        return CollectedClientData.create(kind, challenge, self.origin)

    def _answer(self, client, **parts):
        """As JSON."""
        encoded = {name: websafe_encode(part) for name, part in parts.items()}
        return json.dumps(
            {
                "id": websafe_encode(self.id),
                "rawId": websafe_encode(self.id),
                "type": "public-key",
                "clientExtensionResults": {"credProps": {"rk": True}},
                "response": {"clientDataJSON": websafe_encode(client)} | encoded,
            }
        )
