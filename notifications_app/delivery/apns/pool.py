"""A pool of connections to one server with one provider token."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from itertools import islice
from typing import Final, TypeAlias

import structlog

from notifications_app.delivery.apns.connection import Connection, Headers, NotProcessedError
from pushsvc.common.egress import Response

logger = structlog.stdlib.get_logger(__name__)

# How many times one call sends a request that the server did not process.
MAX_TRIES: Final = 3
# Seconds to wait after a connection that failed or gave no response. Doubled each time.
FIRST_WAIT: Final = 0.1
MAX_DOUBLINGS: Final = 3
CLOSE_SECONDS: Final = 1.0

Connect: TypeAlias = Callable[[Callable[[], None]], Awaitable[Connection]]


class NoConnectionError(Exception):
    """Nothing was sent, because no connection could be opened. `cause` is the reason."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(type(cause).__name__)
        self.cause = cause


class Pool:
    """Opens a connection when a request needs one and all others are full, up to `max_connections`.

    `connect` opens a connection; its argument is called whenever the connection's room changes.
    Requests without room wait in a queue.
    """

    def __init__(self, connect: Connect, max_connections: int) -> None:
        self._connect = connect
        self._max_connections = max_connections
        self._loop = asyncio.get_running_loop()
        self._connections: list[Connection] = []
        self._connecting: asyncio.Task[None] | None = None
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._called: set[asyncio.Future[None]] = set()
        self._newest: Connection | None = None
        self._failures = 0
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        busy = self._connecting or self._waiting or self._called
        return not busy and all(connection.is_idle for connection in self._connections)

    async def post(self, headers: Headers, body: bytes, until: float) -> Response:
        """Sends a request and returns the response. Sends it again only if the server reports that
        it did not process it.

        `until`, on the loop's clock, limits all waits, including the wait for room. Raises
        NoConnectionError, NotProcessedError, ConnectionLostError, StreamResetError or TimeoutError.
        """
        for _ in range(MAX_TRIES - 1):
            try:
                return await (await self._with_room(until)).post(headers, body, until)
            except NotProcessedError as error:
                logger.info("apns.sent_again", reason=str(error))
        return await (await self._with_room(until)).post(headers, body, until)

    def renew(self) -> None:
        """Sends further requests over new connections. Those in flight end on their own."""
        for connection in self._connections:
            connection.close()
        self._wake()

    async def close(self) -> None:
        """Refuses queued requests, and gives those in flight CLOSE_SECONDS to end."""
        self._is_closed = True
        if self._connecting:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        for connection in self._connections:
            connection.close()
        self._wake()
        closing = [connection.wait_closed(CLOSE_SECONDS) for connection in self._connections]
        await asyncio.gather(*closing)

    async def _with_room(self, until: float) -> Connection:
        """A connection with room. No other request can take the room until the caller awaits."""
        connection = None if self._waiting or self._called else self._first_with_room()
        if connection is None:
            async with asyncio.timeout_at(until):
                while connection is None:
                    await self._wait_in_line()
                    connection = self._first_with_room()
        return connection

    def _first_with_room(self) -> Connection | None:
        """The first one, so that later ones become idle and are closed."""
        return next((each for each in self._connections if each.room), None)

    async def _wait_in_line(self) -> None:
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiting[turn] = None
        self._wake()
        try:
            await turn
        except asyncio.CancelledError:
            self._waiting.pop(turn, None)
            if turn in self._called:
                self._called.discard(turn)
                self._wake()  # gives the turn to the next request
            raise
        finally:
            self._called.discard(turn)

    def _wake(self) -> None:
        """Gives turns to as many queued requests as there is room for. Call it when room may have
        changed."""
        self._count_losses()
        room = sum(connection.room for connection in self._connections) - len(self._called)
        waiting = (turn for turn in self._waiting if not turn.done())
        for turn in list(islice(waiting, max(0, room))):
            del self._waiting[turn]
            self._called.add(turn)
            turn.set_result(None)
        if self._is_closed:
            self._refuse_waiting(ConnectionAbortedError("closed"))
        elif self._waiting:
            self._grow()

    def _count_losses(self) -> None:
        lost = [each for each in self._connections if each.is_lost]
        self._connections = [each for each in self._connections if not each.is_lost]
        self._failures += sum(not each.is_proven for each in lost)
        if self._newest and self._newest.is_proven:
            self._failures, self._newest = 0, None

    def _grow(self) -> None:
        """Opens one more connection, unless one is being opened or will soon have room."""
        usable = [each for each in self._connections if each.is_usable]
        is_soon = any(each.room or each.waits_for_proof for each in usable)
        is_enough = is_soon or len(usable) >= self._max_connections
        if not (self._connecting or is_enough):
            # Its own context, because the connection outlives the batch for which it is opened.
            self._connecting = self._loop.create_task(self._add(), context=Context())

    async def _add(self) -> None:
        try:
            if self._failures:
                await asyncio.sleep(FIRST_WAIT * 2 ** min(self._failures - 1, MAX_DOUBLINGS))
            self._newest = await self._connect(self._wake)
            self._connections.append(self._newest)
        except Exception as error:  # noqa: BLE001 - the queued requests get the error
            self._failures += 1
            logger.info("apns.no_connection", error=type(error).__name__)
            if not any(each.is_usable for each in self._connections):
                self._refuse_waiting(error)
        finally:
            self._connecting = None
            self._wake()

    def _refuse_waiting(self, cause: Exception) -> None:
        waiting, self._waiting = self._waiting, {}
        for turn in waiting:
            if not turn.done():
                turn.set_exception(NoConnectionError(cause))
