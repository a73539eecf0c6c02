"""What a sandbox notes of each request to a device."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class Receipt:
    """One request to a device.

    `at` is Unix time in seconds. `status` is None if there was no HTTP response. `taken`: the
    service accepted the message for the device. `complete`: the whole response was written.
    `unread`: the sender left before it read the response, or over HTTP/2 before it confirmed this;
    known a moment later.
    """

    at: float
    headers: Mapping[str, str]
    status: int | None = None
    taken: bool = False
    complete: bool = False
    unread: bool = False

    @property
    def accepted(self) -> bool:
        """Whether a whole 2xx response told the sender that the message was accepted."""
        return self.taken and self.complete


@dataclass(frozen=True, slots=True)
class ReceiptCounts:
    """How many requests there were, by result. In `statuses`, None means no response."""

    requests: int
    taken: int
    accepted: int
    statuses: Mapping[int | None, int]

    @classmethod
    def of(cls, receipts: Iterable[Receipt]) -> "ReceiptCounts":
        counted = list(receipts)
        return cls(
            requests=len(counted),
            taken=sum(receipt.taken for receipt in counted),
            accepted=sum(receipt.accepted for receipt in counted),
            statuses=Counter(receipt.status for receipt in counted),
        )
