"""Encodes the header fields of requests that have most fields in common (HPACK, RFC 7541)."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hpack import Encoder
from hpack.hpack import encode_integer
from typing_extensions import override


class FieldEncoder(Encoder):
    """For requests whose first and last field are their own and never indexed.

    The library would look each of the other fields up again for each request. Once all of them are
    in the table of the connection, their encoding stays the same until the table changes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._shared: Sequence[tuple[bytes, bytes]] | None = None
        self._encoded = b""

    @override
    def encode(self, headers: Any, huffman: bool = True) -> bytes:
        if self.header_table.resized:  # the server is told at the beginning of the block
            self._shared = None
            return super().encode(headers, huffman)
        first, shared, last = headers[0], headers[1:-1], headers[-1]
        if shared != self._shared:
            self._shared = shared
            self._encoded = b""
        return (
            _never_indexed(*first) + (self._encoded or self._encode(shared)) + _never_indexed(*last)
        )

    def _encode(self, shared: Sequence[tuple[bytes, bytes]]) -> bytes:
        encoded = super().encode(shared)
        if len(encoded) == len(shared):  # each is an index of one byte, which changes no table
            self._encoded = encoded
        return encoded


def _never_indexed(name: bytes, value: bytes) -> bytes:
    """RFC 7541 section 6.2.3. Huffman coding would cost more time than the bytes are worth."""
    return b"\x10" + _length(len(name)) + name + _length(len(value)) + value


@lru_cache(maxsize=1_024)
def _length(count: int) -> bytes:
    """RFC 7541 section 5.2, of a string that is not in Huffman coding."""
    return bytes(encode_integer(count, 7))
