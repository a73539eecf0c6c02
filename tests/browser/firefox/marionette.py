"""A client of Firefox's remote control, Marionette, with the part of the protocol that the tests
need.

A message is its length, a colon, and JSON: `[0, id, command, parameters]` to Firefox, `[1, id,
error, result]` back (Firefox source docs, Testing & Test Harnesses, Marionette, Protocol).
"""

import itertools
import json
import socket

_TIMEOUT = 60


class RemoteError(Exception):
    """Firefox refused the command, with its message."""


class Marionette:
    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT)
        self._file = self._socket.makefile("rb")
        self._ids = itertools.count(1)
        self._read()  # Firefox introduces itself

    def close(self):
        self._file.close()
        self._socket.close()

    def call(self, command, **parameters):
        id_ = next(self._ids)
        message = json.dumps([0, id_, command, parameters]).encode()
        self._socket.sendall(b"%d:%b" % (len(message), message))
        _, answered, error, result = self._read()
        assert answered == id_
        if error:
            raise RemoteError(f"{error['error']}: {error['message']}")
        return result["value"] if isinstance(result, dict) and "value" in result else result

    def _read(self):
        length = b""
        while (byte := self._file.read(1)) != b":":
            assert byte, "Firefox has closed the connection"
            length += byte
        return json.loads(self._file.read(int(length)))
