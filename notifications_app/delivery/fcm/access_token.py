"""Access tokens of Google service accounts (RFC 7523; Google, "Using OAuth 2.0 for server to server
applications").

firebase-admin holds the key and signs; the request is ours, so that nothing blocks the event loop,
follows a redirect or looks anything else up.
"""

import asyncio
import json
import math
import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
import google.auth.jwt
from firebase_admin.credentials import Certificate

from notifications_app.delivery.types import (
    Deferred,
    Misconfigured,
    clean_text,
    parse_retry_after,
    stored_texts,
)
from pushsvc.common.egress import Response, post

TOKEN_URI: Final = "https://oauth2.googleapis.com/token"  # noqa: S105
SCOPE: Final = "https://www.googleapis.com/auth/firebase.messaging"
GRANT_TYPE: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
# Of assertions and of access tokens, in seconds: the longest that Google allows.
LIFETIME: Final = 3_600
# How long before its end a token is replaced; one with a short life in the middle of it.
EARLY: Final = 300.0
# After a refresh that failed, so that a batch of recipients does not try it once for each.
REST: Final = 5.0
MAX_CACHED: Final = 1_000
RETRY_AFTER_THROTTLED: Final = 60.0
RETRY_AFTER_OUTAGE: Final = 10.0

# Said with 400 or 401 too, and worth another try all the same (google-auth 2.62, _client.py).
_TRANSIENT: Final = frozenset({"internal_failure", "server_error", "temporarily_unavailable"})
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,4096}")
_FIELDS: Final = ("project_id", "client_email", "private_key", "private_key_id")

Failure = Misconfigured | Deferred


class AccountUnreadableError(ValueError):
    """Stored credentials are no service account, or its key is no RSA key."""


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A Google service account, as it was stored; `version` counts the channel's credentials."""

    project_id: str
    client_email: str
    private_key: str = field(repr=False)
    private_key_id: str
    version: int

    @classmethod
    def parse(cls, secret: str, version: int) -> "ServiceAccount":
        """From the JSON object that is stored. Raises AccountUnreadableError."""
        try:
            return cls(**stored_texts(secret, _FIELDS), version=version)
        except ValueError:
            raise AccountUnreadableError from None


@dataclass(frozen=True, slots=True)
class Granted:
    """`lifetime` is in seconds."""

    token: str = field(repr=False)
    lifetime: float


@dataclass(slots=True)
class _Entry:
    """What is known of one account's token; times are on the monotonic clock."""

    token: str = ""
    good_until: float = -math.inf
    refresh_at: float = -math.inf
    failure: Failure = field(default_factory=lambda: Deferred("token_unavailable"))
    refresh: asyncio.Task[None] | None = None


class AccessTokens:
    """The current access token of each account. For one event loop.

    `limits` are those of one request to `token_uri`. At most one is under way for an account: who
    has a token that is still good does not wait for it, the others do, and it goes on when they
    leave.
    """

    def __init__(
        self, session: aiohttp.ClientSession, token_uri: str, limits: aiohttp.ClientTimeout
    ) -> None:
        self._session = session
        self._token_uri = token_uri
        self._limits = limits
        self._entries: OrderedDict[ServiceAccount, _Entry] = OrderedDict()

    async def get(self, account: ServiceAccount) -> str | Failure:
        """A token that is still good, or why there is none: Misconfigured if Google refuses the
        account, Deferred if it cannot be asked."""
        entry = self._entry(account)
        if entry.refresh is None and time.monotonic() >= entry.refresh_at:
            entry.refresh = asyncio.create_task(self._refresh(entry, account))
        if entry.refresh and time.monotonic() >= entry.good_until:
            await asyncio.shield(entry.refresh)
        return entry.token if time.monotonic() < entry.good_until else entry.failure

    def refuse(self, account: ServiceAccount, token: str) -> None:
        """It was refused where it was used; unless it has been replaced already, it will be."""
        entry = self._entry(account)
        if entry.token == token:
            entry.good_until = entry.refresh_at = -math.inf

    async def close(self) -> None:
        """Gives up refreshes that are under way."""
        tasks = [entry.refresh for entry in self._entries.values() if entry.refresh]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _entry(self, account: ServiceAccount) -> _Entry:
        entry = self._entries.setdefault(account, _Entry())
        self._entries.move_to_end(account)
        if len(self._entries) > MAX_CACHED:
            self._entries.popitem(last=False)
        return entry

    async def _refresh(self, entry: _Entry, account: ServiceAccount) -> None:
        begun = time.monotonic()
        try:
            result = await self._request(account)
        finally:
            entry.refresh = None
        if isinstance(result, Granted):
            entry.token = result.token
            entry.good_until = begun + result.lifetime
            entry.refresh_at = entry.good_until - min(EARLY, result.lifetime / 2)
        else:
            entry.failure = result
            entry.refresh_at = time.monotonic() + REST

    async def _request(self, account: ServiceAccount) -> Granted | Failure:
        try:
            # Loading the key takes tens of milliseconds of CPU.
            signed = await asyncio.to_thread(assertion, account, int(time.time()))
            response = await post(
                self._session,
                self._token_uri,
                headers={"Content-Type": "application/x-www-form-urlencoded"},
                body=urlencode({"grant_type": GRANT_TYPE, "assertion": signed}).encode(),
                limits=self._limits,
            )
        except AccountUnreadableError:
            return Misconfigured("key_unreadable", "The service account's key cannot be read.")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return _unavailable(type(error).__name__, None)
        return classify_grant(response, datetime.fromtimestamp(time.time(), UTC))


def assertion(account: ServiceAccount, now: int) -> str:
    """A signed request for an access token; `now` in seconds since the epoch.

    Raises AccountUnreadableError.
    """
    key_file = {
        "type": "service_account",
        "project_id": account.project_id,
        "client_email": account.client_email,
        "private_key": account.private_key,
        # Not every stored account has one; an empty one would be looked up.
        "private_key_id": account.private_key_id or None,
        "token_uri": TOKEN_URI,
        "universe_domain": "googleapis.com",
    }
    claims = {
        "iss": account.client_email,
        "aud": TOKEN_URI,
        "scope": SCOPE,
        "iat": now,
        "exp": now + LIFETIME,
    }
    try:
        signer = Certificate(key_file).signer
        signed: bytes = google.auth.jwt.encode(signer, claims)  # type: ignore[no-untyped-call]
    except ValueError:
        raise AccountUnreadableError from None
    return signed.decode("ascii")


def classify_grant(response: Response, now: datetime) -> Granted | Failure:
    """What the token endpoint's answer means. Total; `now` is aware.

    Only what is said in OAuth's own words (RFC 6749 section 5.2) is a refusal, because a proxy's
    400 or 403 must not stop a channel; 401 says it by itself.
    """
    said = _json(response.body)
    token, error = said.get("access_token"), said.get("error")
    if response.status == 200 and isinstance(token, str) and _TOKEN.fullmatch(token):
        return Granted(token, _lifetime(said.get("expires_in")))
    detail = _detail(response, said)
    is_refusal = response.status == 401 or (
        response.status in {400, 403} and isinstance(error, str) and error not in _TRANSIENT
    )
    if is_refusal:
        return Misconfigured("token_refused", detail)
    retry_after = parse_retry_after(response.headers.get("Retry-After"), now)
    if response.status == 429:
        wait = RETRY_AFTER_THROTTLED if retry_after is None else retry_after
        return Deferred("token_unavailable", detail, wait)
    return _unavailable(detail, retry_after)


def _unavailable(detail: str, retry_after: float | None) -> Deferred:
    wait = RETRY_AFTER_OUTAGE if retry_after is None else retry_after
    return Deferred("token_unavailable", detail, wait, outage=True)


def _lifetime(seconds: object) -> float:
    """RFC 6749 section 5.1 only recommends to tell it."""
    if isinstance(seconds, int | float) and 0 < seconds <= LIFETIME:
        return float(seconds)
    return float(LIFETIME)


def _json(body: bytes) -> Mapping[str, Any]:
    """The object in the body, or an empty one."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _detail(response: Response, said: Mapping[str, Any]) -> str:
    words = [said.get("error"), said.get("error_description")]
    found = [word for word in words if isinstance(word, str) and word]
    return clean_text(f"{response.status} {': '.join(found)}")
