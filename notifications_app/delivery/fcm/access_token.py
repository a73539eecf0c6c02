"""Access tokens of Google service accounts (RFC 7523).

firebase-admin loads the key and signs. The request is made here, so that the library cannot block
the event loop, follow redirects or make other requests.
"""

import asyncio
import math
import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

import google.auth.jwt
from firebase_admin.credentials import Certificate

from notifications_app.delivery.fcm.service_account import AccountUnreadableError, ServiceAccount
from notifications_app.delivery.http_client import HttpClient
from notifications_app.delivery.responses import json_object
from notifications_app.delivery.types import (
    Deferred,
    Misconfigured,
    clean_text,
    parse_retry_after,
)
from pushsvc.common.egress import Response

TOKEN_URI: Final = "https://oauth2.googleapis.com/token"  # noqa: S105
SCOPE: Final = "https://www.googleapis.com/auth/firebase.messaging"
GRANT_TYPE: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
# Of assertions and access tokens, in seconds. Google allows no more.
LIFETIME: Final = 3_600
# A token is replaced this long before its end, or at half of its life if that is later.
EARLY: Final = 300.0
# The wait after a failed refresh, so that not every recipient of a batch tries it again.
REST: Final = 5.0
MAX_CACHED: Final = 1_000
RETRY_AFTER_THROTTLED: Final = 60.0
RETRY_AFTER_OUTAGE: Final = 10.0

# Errors that are worth another try even with 400 or 401 (google-auth 2.62, _client.py).
_TRANSIENT: Final = frozenset({"internal_failure", "server_error", "temporarily_unavailable"})
# The form of OAuth's errors. Other servers write sentences, or one word such as "Forbidden".
_OAUTH_ERROR: Final = re.compile(r"[a-z]+(_[a-z]+)+")
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,4096}")

Failure = Misconfigured | Deferred


@dataclass(frozen=True, slots=True)
class Granted:
    """`lifetime` is in seconds."""

    token: str = field(repr=False)
    lifetime: float


@dataclass(slots=True)
class _KeptToken:
    """One account's token. Times are on the monotonic clock."""

    token: str = ""
    good_until: float = -math.inf
    refresh_at: float = -math.inf
    failure: Failure = field(default_factory=lambda: Deferred("token_unavailable"))
    refresh: asyncio.Task[None] | None = None


class AccessTokens:
    """The current access token of each account. For one event loop.

    A request to `token_uri` may take `seconds`. Each account has at most one request in flight. A
    call waits for it only if there is no valid token. Cancelling the call does not cancel it.
    """

    def __init__(self, http: HttpClient, token_uri: str, seconds: float) -> None:
        self._http = http
        self._token_uri = token_uri
        self._seconds = seconds
        self._entries: OrderedDict[ServiceAccount, _KeptToken] = OrderedDict()
        # All calls of a pass are with one account.
        self._latest: ServiceAccount | None = None
        self._latest_entry = _KeptToken()

    def at_hand(self, account: ServiceAccount) -> str:
        """The token if it is valid and need not be replaced soon; empty otherwise."""
        entry = self._entry(account)
        return entry.token if time.monotonic() < min(entry.refresh_at, entry.good_until) else ""

    async def get(self, account: ServiceAccount, until: float) -> str | Failure:
        """A valid token, or the reason why there is none: Misconfigured if Google refuses the
        account, Deferred if Google cannot be reached. Raises TimeoutError if neither is known at
        `until`, on the loop's clock."""
        entry = self._entry(account)
        if entry.refresh is None and time.monotonic() >= entry.refresh_at:
            entry.refresh = asyncio.create_task(self._refresh(entry, account))
        if entry.refresh and time.monotonic() >= entry.good_until:
            async with asyncio.timeout_at(until):
                await asyncio.shield(entry.refresh)
        return entry.token if time.monotonic() < entry.good_until else entry.failure

    def refuse(self, account: ServiceAccount, token: str) -> None:
        """Drops a token that FCM refused, unless a newer one has replaced it."""
        entry = self._entry(account)
        if entry.token == token:
            entry.good_until = entry.refresh_at = -math.inf

    def renew(self, account: ServiceAccount) -> None:
        """Drops the account's token, or the refusal that is kept instead of one."""
        entry = self._entry(account)
        entry.good_until = entry.refresh_at = -math.inf

    async def close(self) -> None:
        """Cancels the refreshes in flight."""
        tasks = [entry.refresh for entry in self._entries.values() if entry.refresh]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _entry(self, account: ServiceAccount) -> _KeptToken:
        if account is not self._latest:  # comparing accounts takes longer
            self._entries.setdefault(account, _KeptToken())
            self._entries.move_to_end(account)
            if len(self._entries) > MAX_CACHED:
                self._entries.popitem(last=False)
            self._latest = account
            self._latest_entry = self._entries[account]
        return self._latest_entry

    async def _refresh(self, entry: _KeptToken, account: ServiceAccount) -> None:
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
            # Loading the key takes tens of milliseconds of processor time.
            signed = await asyncio.to_thread(assertion, account, int(time.time()))
            response = await self._http.post(
                self._token_uri,
                headers={"Content-Type": "application/x-www-form-urlencoded"},
                body=urlencode({"grant_type": GRANT_TYPE, "assertion": signed}).encode(),
                until=asyncio.get_running_loop().time() + self._seconds,
            )
        except AccountUnreadableError:
            detail = "The service account's key cannot be read."
            return Misconfigured("key_unreadable", detail, was_called=False)
        except OSError as error:
            return _unavailable(type(error).__name__, None)
        return classify_grant(response, datetime.fromtimestamp(time.time(), UTC))


def assertion(account: ServiceAccount, now: int) -> str:
    """A signed request for an access token. `now` is in seconds since the epoch.

    Raises AccountUnreadableError.
    """
    key_file = {
        "type": "service_account",
        "project_id": account.project_id,
        "client_email": account.client_email,
        "private_key": account.private_key,
        # Some stored accounts have none. The library would use an empty one.
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
    """Evaluates the token endpoint's response. Accepts any response. `now` is aware.

    A 400, 401 or 403 is a refusal only with an OAuth error (RFC 6749 section 5.2), because a
    proxy's response must not stop a channel.
    """
    fields = json_object(response.body)
    token, error = fields.get("access_token"), fields.get("error")
    if response.status == 200 and isinstance(token, str) and _TOKEN.fullmatch(token):
        return Granted(token, _lifetime(fields.get("expires_in")))
    detail = _detail(response, fields)
    is_oauths = isinstance(error, str) and _OAUTH_ERROR.fullmatch(error) is not None
    if response.status in {400, 401, 403} and is_oauths and error not in _TRANSIENT:
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
    """RFC 6749 section 5.1 recommends the field but does not require it."""
    if isinstance(seconds, int | float) and 0 < seconds <= LIFETIME:
        return float(seconds)
    return float(LIFETIME)


def _detail(response: Response, fields: Mapping[str, Any]) -> str:
    words = [fields.get("error"), fields.get("error_description")]
    found = [word for word in words if isinstance(word, str) and word]
    return clean_text(f"{response.status} {': '.join(found)}")
