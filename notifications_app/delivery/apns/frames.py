"""Hides GOAWAY frames from h2.

After GOAWAY, a server still answers the requests that it has begun (RFC 9113 section 6.8). But h2
(4.4.1) neither reads nor sends anything after that frame.
"""

from typing import Final, cast

from hyperframe.frame import Frame, GoAwayFrame

_HEADER: Final = 9


class GoawayFilter:
    """Separates GOAWAY frames from the other frames that a server sends."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> tuple[list[bytes], list[GoAwayFrame]]:
        """The other frames that are complete, one by one, and the complete GOAWAY frames.

        Raises HyperframeError for a malformed GOAWAY.
        """
        self._held += data
        others, goaways = [], []
        while len(self._held) >= _HEADER:
            end = _HEADER + int.from_bytes(self._held[:3])
            if len(self._held) < end:
                break
            whole = bytes(self._held[:end])
            del self._held[:end]
            if whole[3] == GoAwayFrame.type:
                goaways.append(_parse_goaway(whole))
            else:
                others.append(whole)
        return others, goaways


def _parse_goaway(whole: bytes) -> GoAwayFrame:
    frame, _ = Frame.parse_frame_header(memoryview(whole)[:_HEADER])
    frame.parse_body(memoryview(whole)[_HEADER:])
    return cast(GoAwayFrame, frame)
