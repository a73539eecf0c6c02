"""Header compression (HPACK, RFC 7541) for requests and responses that have most fields in
common."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from hpack import Decoder, Encoder
from hpack.exceptions import HPACKError
from hpack.hpack import decode_integer, encode_integer
from typing_extensions import override

from notifications_app.delivery.apns.frames import ErrorCode, ProtocolError

Fields: TypeAlias = Sequence[tuple[str, str]]

_SIZE_UPDATES: Final = frozenset(bytes([first]) for first in range(0x20, 0x40))
_ENTRY: Final = 32  # what a field counts in addition to its bytes (RFC 7541 section 4.1)
_LONGEST_INTEGER: Final = 6
_LONGEST_CACHED: Final = 200
_ONE_BYTE_LENGTH: Final = 127  # a longer text has a length of more bytes
_NOTHING_KNOWN: Final[tuple[bytes, bytes, Fields]] = b"", b"", ()
# How a literal apns-id begins: indexed, not indexed or never (RFC 7541 section 6.2), its name with
# and without Huffman coding.
_APNS_ID: Final = tuple(
    first + Encoder().encode([("apns-id", "")], huffman=huffman)[1:-1]
    for first in (b"\x40", b"\x00", b"\x10")
    for huffman in (False, True)
)


class FieldEncoder(Encoder):
    """For requests in which only the first and last field differ and are never indexed.

    The library would look up all other fields again for each request. Once they are in the
    connection's table, their encoding stays the same until the table changes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._shared: Sequence[tuple[bytes, bytes]] | None = None
        self._encoded = b""

    def resize(self, size: int) -> None:
        """Changes the table's size. The next block gives the server the smallest size since the
        last block, and this one (RFC 7541 section 4.2). The library forgets a size that is set
        twice."""
        if size != self.header_table_size:
            self.header_table_size = size
            self.table_size_changes = sorted({min(self.table_size_changes), size})

    @override
    def encode(self, headers: Any, huffman: bool = True) -> bytes:
        if self.header_table.resized:  # sent at the beginning of the block
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


class FieldDecoder(Decoder):
    """Reads the fields of responses.

    Most fields are the same in every response. If the server keeps no table, as our SETTINGS
    request, equal bytes mean equal fields, and each is decoded only once. Then the request's id is
    skipped: it differs in every response and is not used. So a block that differs from an earlier
    one of its length in nothing but the id's value has the same fields.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, tuple[bytes, bytes, Fields]] = {}

    def fields(self, block: bytes) -> Fields:
        """Decodes a block. Raises ProtocolError, also if the fields are larger than 64 KiB (the
        library's limit)."""
        try:
            if self.header_table_size or block[:1] in _SIZE_UPDATES:
                return [_texts(*field) for field in self.decode(block, raw=True)]
            begin, end, known = self._known.get(len(block), _NOTHING_KNOWN)
            if known and block.startswith(begin) and block.endswith(end):
                return known
            parts = list(_parts(block))
            fields = [_field(part) for part in parts if not part.startswith(_APNS_ID)]
        except (HPACKError, IndexError, TypeError, ValueError) as error:
            raise ProtocolError(ErrorCode.COMPRESSION_ERROR) from error
        if (
            sum(_ENTRY + len(name) + len(value) for name, value in fields)
            > self.max_header_list_size
        ):
            raise ProtocolError(ErrorCode.COMPRESSION_ERROR)
        self._keep(block, parts, fields)
        return fields

    def _keep(self, block: bytes, parts: Sequence[bytes], fields: Fields) -> None:
        """Keeps the fields of a block with one id, and its bytes before and after the id's value.
        Those before it end with its length, so that the value is where it is in this block."""
        ids = [place for place, part in enumerate(parts) if part.startswith(_APNS_ID)]
        if len(ids) != 1 or len(block) > _LONGEST_CACHED:
            return
        name = next(each for each in _APNS_ID if parts[ids[0]].startswith(each))
        begin = sum(map(len, parts[: ids[0]])) + len(name) + 1
        end = sum(map(len, parts[: ids[0] + 1]))
        if end - begin < _ONE_BYTE_LENGTH:
            self._known[len(block)] = block[:begin], block[end:], fields


def _parts(block: bytes) -> Iterator[bytes]:
    """The bytes of each field (RFC 7541 section 6)."""
    begin = 0
    while begin < len(block):
        end = _end(block, begin)
        yield block[begin:end]
        begin = end


def _end(block: bytes, at: int) -> int:
    first = block[at]
    prefix = 7 if first & 0x80 else 6 if first & 0x40 else 4
    index, at = _integer(block, at, prefix)
    if first & 0x80:
        return at
    for _ in range(1 if index else 2):  # the name is in the static table, or written too
        length, at = _integer(block, at, 7)
        at += length
    return at


def _integer(block: bytes, at: int, prefix: int) -> tuple[int, int]:
    """Decodes a number; returns it and its end (RFC 7541 section 5.1). Most numbers take one byte,
    for which the library is slow."""
    most = (1 << prefix) - 1
    value = block[at] & most
    if value < most:
        return value, at + 1
    value, used = decode_integer(block[at : at + _LONGEST_INTEGER], prefix)
    return value, at + used


def _field(part: bytes) -> tuple[str, str]:
    return _read_once(part) if len(part) <= _LONGEST_CACHED else _read(part)


def _read(part: bytes) -> tuple[str, str]:
    """One field, without a table. Raises HPACKError or ValueError."""
    decoder = Decoder()
    decoder.header_table_size = 0
    [(name, value)] = decoder.decode(part, raw=True)
    return _texts(name, value)


_read_once = lru_cache(maxsize=1_024)(_read)


def _texts(name: str | bytes, value: str | bytes) -> tuple[str, str]:
    return _text(name), _text(value)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _never_indexed(name: bytes, value: bytes) -> bytes:
    """RFC 7541 section 6.2.3. Huffman coding would cost more time than the bytes are worth."""
    return b"\x10" + _length(len(name)) + name + _length(len(value)) + value


@lru_cache(maxsize=1_024)
def _length(count: int) -> bytes:
    """RFC 7541 section 5.2, of a string that is not in Huffman coding."""
    return bytes(encode_integer(count, 7))
