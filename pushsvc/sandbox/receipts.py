"""What a sandbox notes of each request to a device."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class Receipt:
    """One request to a device.

    `at` is Unix time in seconds. `status` is None where no HTTP answer was given. `taken`: the
    service took the message over for the device. `complete`: the answer was written to its end.
    """

    at: float
    headers: Mapping[str, str]
    status: int | None = None
    taken: bool = False
    complete: bool = False

    @property
    def accepted(self) -> bool:
        """The sender can know that the message was taken: a 2xx answer was written to its end."""
        return self.taken and self.complete


@dataclass(frozen=True, slots=True)
class Totals:
    """How many requests came, by what became of them; `statuses` has None for no answer."""

    requests: int
    taken: int
    accepted: int
    statuses: Mapping[int | None, int]

    @classmethod
    def of(cls, receipts: Iterable[Receipt]) -> "Totals":
        counted = list(receipts)
        return cls(
            requests=len(counted),
            taken=sum(receipt.taken for receipt in counted),
            accepted=sum(receipt.accepted for receipt in counted),
            statuses=Counter(receipt.status for receipt in counted),
        )
