"""The clients. Both have the same methods; one waits in its thread, the other in its event loop."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, Unpack

from pushsvc_client.calls import Call, finished, part
from pushsvc_client.imports import Format, Import, Rows
from pushsvc_client.operations import Operations
from pushsvc_client.running import Awaiting, Blocking, operation
from pushsvc_client.schemas import (
    DryRunOutput,
    ImportOutput,
    NotificationOutput,
    Platform,
    SendInput,
)

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})  # to repeat, by RFC 9110


class _Methods(Operations):
    @operation
    def dry_run(self, /, **fields: Unpack[SendInput]) -> Call[DryRunOutput]:
        """Check a send and count its audience. Nothing is stored or sent."""
        return Call("POST", "/send-notification", json={**fields, "dry_run": True})

    @operation
    def import_subscriptions(
        self,
        rows: Rows,
        /,
        *,
        format: Format,
        dry_run: bool | None = None,
        attributes: str | None = None,
        tags_from: str | None = None,
        columns: str | None = None,
        vapid_public_key: str | None = None,
        platform: Platform | None = None,
        takeover_days: int | None = None,
    ) -> Call[ImportOutput]:
        """Import subscribers, as many as there are, in requests of at most 5,000 rows.

        `rows`: a file that is open as text, other lines of a file, or dictionaries for the formats
        of JSON. Returns the sum of all requests; refused rows have their lines in the file.
        Importing rows again changes nothing, so repeat an import that ended early. A dry run knows
        the rows of one request. See docs/migrating.md.
        """
        params = {
            "format": format,
            "dry_run": dry_run,
            "attributes": attributes,
            "tags_from": tags_from,
            "columns": columns,
            "vapid_public_key": vapid_public_key,
            "platform": platform,
            "takeover_days": takeover_days,
        }
        path = f"/channel/{part(self.channel)}/subscriptions/import"
        return Import("POST", path, params=params, rows=rows, is_csv=format.endswith("_csv"))

    @operation
    def request(
        self,
        method: str,
        path: str,
        /,
        *,
        json: object = None,
        params: Mapping[str, object] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Any]:
        """Make a request that has no method here, for example to a newer service.

        It is repeated as those of the other methods. A POST or PATCH without an `idempotency_key`
        is repeated only if the service did nothing yet.
        """
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return Call(
            method.upper(),
            path,
            json=json,
            params=params or {},
            headers=headers,
            is_repeatable=method.upper() in _SAFE or bool(idempotency_key),
        )


class Client(Blocking, _Methods):
    """One channel of a service. Keeps connections open; close it, or use it in a `with`.

    Every call is repeated up to `retries` times if the service says that this may help, after the
    time that it names. If that time is longer than `longest_wait` (in seconds), the call is not
    repeated. Raises `Refused` or `Unreachable`, and ValueError for a time without a time zone, an
    address without a scheme, or a channel that is not a UUID.

    Lists are iterators, which read the next page when it is needed. `limit`: at most so many
    entries.
    """

    def wait(self, notification_id: str, *, seconds: float = 300.0) -> NotificationOutput:
        """The notification once it is sent, failed or cancelled. Raises TimeoutError."""
        return self._run(finished(notification_id, self._patience, seconds))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(Awaiting, _Methods):
    """As `Client`, for asyncio. Lists are asynchronous iterators."""

    async def wait(self, notification_id: str, *, seconds: float = 300.0) -> NotificationOutput:
        """The notification once it is sent, failed or cancelled. Raises TimeoutError."""
        return await self._run(finished(notification_id, self._patience, seconds))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()
