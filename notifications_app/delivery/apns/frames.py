"""GOAWAY, kept away from h2.

Once a server has said GOAWAY, h2 (4.4.1) takes nothing more from it and sends nothing more, though
the server goes on answering what it began before (RFC 9113 section 6.8).
"""

from typing import Final, cast

from hyperframe.frame import Frame, GoAwayFrame

_HEADER: Final = 9


class GoawayFilter:
    """Parts GOAWAY frames from the others in what a server sends."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> tuple[list[bytes], list[GoAwayFrame]]:
        """The other frames that are whole by now, one by one, and the GOAWAY frames.

        Raises HyperframeError where one of these is malformed.
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
