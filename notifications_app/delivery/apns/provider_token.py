"""The provider token, which identifies a team to APNs: one per key, the same in every process.

Apple accepts a token for 60 minutes after its `iat`, and refuses a second one within 20 minutes
(Apple, "Establishing a token-based connection to APNs"). All processes round `iat` to the same grid
of 40 minutes and sign deterministically (RFC 6979), so they present the same token.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from notifications_app.delivery import es256

GRID: Final = 40 * 60
# A token is used from this age to LEAST_AGE + GRID, 50 minutes. So our clock may be ten minutes
# fast or slow before Apple finds `iat` in the future or too old.
LEAST_AGE: Final = 10 * 60
MAX_CACHED: Final = 1_000


class ApnsKeyUnreadableError(ValueError):
    """The stored private key is not a P-256 key."""


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
