"""A desktop without a screen: shows Chromium's notifications, and presses their buttons.

It is the notification server of the Desktop Notifications Specification, on a session bus of its
own. Chromium, which hands its notifications to such a server, needs no screen for it.
"""

import asyncio
import shutil
import subprocess
from contextlib import contextmanager
from threading import Thread
from typing import Annotated

from dbus_fast.aio import MessageBus
from dbus_fast.annotations import DBusDict, DBusInt32, DBusSignature, DBusStr, DBusUInt32
from dbus_fast.service import ServiceInterface, dbus_method, dbus_signal

from tests import missing
from tests.pipeline.support import until

_NAME = "org.freedesktop.Notifications"
_PATH = "/org/freedesktop/Notifications"
_Texts = Annotated[list[str], DBusSignature("as")]
_About = Annotated[list[str], DBusSignature("ssss")]
_Pressed = Annotated[list[object], DBusSignature("us")]


@contextmanager
def running_desktop():
    """The desktop. Its `address` is what Chromium finds in DBUS_SESSION_BUS_ADDRESS."""
    if shutil.which("dbus-daemon") is None:
        missing.skip_without("dbus-daemon")
    command = ["dbus-daemon", "--session", "--nofork", "--print-address=1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:
        try:
            with _Desktop(daemon.stdout.readline().strip()) as desktop:
                yield desktop
        finally:
            daemon.terminate()


class _Desktop:
    """Runs the server in an event loop of its own, because Playwright has this thread's."""

    def __init__(self, address):
        self.address = address
        self._server = _Server()
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        self._bus = self._run(self._serve())
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._bus.disconnect)
        self._run(self._bus.wait_for_disconnect())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _serve(self):
        bus = await MessageBus(bus_address=self.address).connect()
        bus.export(_PATH, self._server)
        await bus.request_name(_NAME)
        return bus

    def press(self, title, label):
        """Presses the button of the notification with this title, once it is shown."""
        until(lambda: title in self._server.shown)
        number, buttons = self._server.shown[title]
        self._loop.call_soon_threadsafe(self._server.ActionInvoked, number, buttons[label])

    def buttons(self, title):
        """The labels of the notification's buttons, once it is shown."""
        until(lambda: title in self._server.shown)
        return list(self._server.shown[title][1])


class _Server(ServiceInterface):
    """The methods and signals that Chromium uses. `shown`: by title, the notification's number, and
    the keys of its buttons by label."""

    def __init__(self):
        super().__init__(_NAME)
        self.shown = {}

    @dbus_method()
    def GetCapabilities(self) -> _Texts:  # noqa: N802 (the interface's names)
        return ["actions", "body"]

    @dbus_method()
    def GetServerInformation(self) -> _About:  # noqa: N802
        return ["pushsvc tests", "pushsvc", "1", "1.2"]

    @dbus_method()
    def Notify(  # noqa: N802
        self,
        app: DBusStr,
        replaces: DBusUInt32,
        icon: DBusStr,
        title: DBusStr,
        body: DBusStr,
        actions: _Texts,
        hints: DBusDict,
        timeout: DBusInt32,
    ) -> DBusUInt32:
        number = replaces or len(self.shown) + 1
        self.shown[title] = number, dict(zip(actions[1::2], actions[::2], strict=True))
        return number

    @dbus_method()
    def CloseNotification(self, number: DBusUInt32):  # noqa: N802
        pass

    @dbus_signal()
    def ActionInvoked(self, number, key) -> _Pressed:  # noqa: N802
        return [number, key]
