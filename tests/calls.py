"""Defined moments in the middle of a send. The sandbox that is called observes them, so a busy
machine does not miss one."""

import itertools
import threading
from concurrent.futures import Future
from contextlib import contextmanager

_TOO_LONG = 60.0


def when_called(devices, nth, act):
    """Calls `act()` during the sandbox's first answer to the nth of these devices; its future.

    Until `act` returns, the sandbox gives neither this nor any other answer. None of the devices
    may have been called before.
    """
    done = Future()
    called = itertools.count(1)

    def note_first_call():
        if next(called) == nth:
            try:
                done.set_result(act())
            except Exception as error:  # noqa: BLE001 (raised where the test waits)
                done.set_exception(error)

    for device in devices:
        device.receipts = _Receipts(note_first_call)
    return done


@contextmanager
def standing_still(devices, nth=1):
    """From the call to the nth of the devices to the end of the block, their sandbox gives no
    answer. Yields a function that waits for this call."""
    stands, may_go_on = threading.Event(), threading.Event()

    def stand():
        stands.set()
        assert may_go_on.wait(_TOO_LONG)

    def wait_until_called():
        assert stands.wait(_TOO_LONG), "the devices were not called"

    done = when_called(devices, nth, stand)
    try:
        yield wait_until_called
    finally:
        may_go_on.set()
    done.result(_TOO_LONG)


class _Receipts(list):
    """The receipts of a device. The sandbox adds one before it answers."""

    def __init__(self, at_first):
        super().__init__()
        self._at_first = at_first

    def append(self, receipt):
        super().append(receipt)
        if len(self) == 1:
            self._at_first()
