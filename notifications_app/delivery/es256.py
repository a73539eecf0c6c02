"""JSON Web Signatures with ES256 (RFC 7515, RFC 7518 section 3.4), for VAPID and APNs.

The signature is deterministic (RFC 6979): the same claims and the same key give the same token in
every process.
"""

import json
from collections.abc import Mapping

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from pushsvc.common import base64url


def signed(
    header: Mapping[str, object], claims: Mapping[str, object], key: ec.EllipticCurvePrivateKey
) -> str:
    """The token in compact form. `key` is on P-256."""
    text = f"{_part(header)}.{_part(claims)}"
    algorithm = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)
    r, s = decode_dss_signature(key.sign(text.encode(), algorithm))
    return f"{text}.{base64url.encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _part(content: Mapping[str, object]) -> str:
    return base64url.encode(json.dumps(content, separators=(",", ":")).encode())
