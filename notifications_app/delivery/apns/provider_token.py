"""The provider token by which APNs knows a team: one for each key, the same in every process.

Apple takes a token for 60 minutes from its `iat`, and wants no other within 20 minutes (Apple,
"Establishing a token-based connection to APNs"). Here `iat` lies on a grid of 40 minutes that all
processes share, and the signature is deterministic (RFC 6979), so that they all present the same
string without telling each other.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from notifications_app.delivery import es256

GRID: Final = 40 * 60
# A token comes into use at this age and goes out of it at LEAST_AGE + GRID, 50 minutes: a clock of
# ours may be ten minutes wrong, either way, before Apple finds `iat` in the future or too old.
LEAST_AGE: Final = 10 * 60
MAX_CACHED: Final = 1_000


class ApnsKeyUnreadableError(ValueError):
    """The stored private key is no P-256 key."""


@dataclass(frozen=True, slots=True)
class ApnsKey:
    """`private_key`: the text of Apple's .p8 file (PEM, PKCS #8)."""

    private_key: str = field(repr=False)
    key_id: str
    team_id: str


def authorization(key: ApnsKey, now: float) -> str:
    """The authorization header for all requests with `key`; `now` in seconds since the epoch.

    Raises ApnsKeyUnreadableError.
    """
    return _signed(key, int((now - LEAST_AGE) // GRID) * GRID)


@lru_cache(maxsize=MAX_CACHED)
def _signed(key: ApnsKey, issued_at: int) -> str:
    header = {"alg": "ES256", "kid": key.key_id}
    claims = {"iss": key.team_id, "iat": issued_at}
    return f"bearer {es256.signed(header, claims, _load(key.private_key))}"


def _load(private_key: str) -> ec.EllipticCurvePrivateKey:
    try:
        loaded = load_pem_private_key(private_key.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ApnsKeyUnreadableError from error
    if isinstance(loaded, ec.EllipticCurvePrivateKey) and isinstance(loaded.curve, ec.SECP256R1):
        return loaded
    raise ApnsKeyUnreadableError
