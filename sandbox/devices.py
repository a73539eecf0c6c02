"""The devices of a sandbox, and the requests that they received."""

from typing import Any, Generic, Protocol, TypeVar

from sandbox.behaviours import Behaving, R

D = TypeVar("D", bound=Behaving[Any])
D_co = TypeVar("D_co", bound=Behaving[Any], covariant=True)


class Registry(Protocol[D_co]):
    """The devices of a sandbox by id."""

    def find(self, device_id: str) -> D_co | None: ...

    def ids(self) -> list[str]: ...


class Inbox(Generic[D, R]):
    """Reads what the devices of a sandbox received."""

    registry: Registry[D]

    def messages(self, device_id: str) -> list[R]:
        """Every request to the device, oldest first; raises KeyError for an unknown one."""
        return list(self._device(device_id).receipts)

    def accepted_count(self, device_id: str | None = None) -> int:
        """How many messages the device, or all devices, accepted."""
        ids = self.registry.ids() if device_id is None else [device_id]
        return sum(self._device(each).totals().accepted for each in ids)

    def _device(self, device_id: str) -> D:
        device = self.registry.find(device_id)
        if device is None:
            raise KeyError(device_id)
        return device
