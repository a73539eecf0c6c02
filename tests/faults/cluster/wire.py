"""A slow link: passes frames on between two TAP devices, because few kernels have netem.

    python -m tests.faults.cluster.wire pushc-w1 0.1

It makes pushc-w1-i and pushc-w1-o. What comes in at the first leaves the other after so many
seconds, and what comes in at the other leaves the first at once. The devices end with it.
"""

import contextlib
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

_TUNSETIFF = 0x400454CA  # linux/if_tun.h
_IFF_TAP, _IFF_NO_PI = 0x0002, 0x1000
_FRAME_BYTES = 65_536


def main():
    link, seconds = sys.argv[1], float(sys.argv[2])
    inner, outer = (_tap(f"{link}-{side}") for side in ("i", "o"))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    late = deque()  # (when it is due, frame)
    while True:
        wait = max(0.0, late[0][0] - time.monotonic()) if late else None
        readable, _, _ = select.select([inner, outer], [], [], wait)
        if inner in readable:
            late.append((time.monotonic() + seconds, os.read(inner, _FRAME_BYTES)))
        if outer in readable:
            _write(inner, os.read(outer, _FRAME_BYTES))
        while late and late[0][0] <= time.monotonic():
            _write(outer, late.popleft()[1])


def _tap(name):
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", name.encode(), _IFF_TAP | _IFF_NO_PI))
    return device


def _write(device, frame):
    with contextlib.suppress(OSError):  # the device is not up yet: the frame is lost
        os.write(device, frame)


if __name__ == "__main__":
    main()
