"""The errors of calls and of webhooks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class PushsvcError(Exception):
    """The base of these errors."""


class Unreachable(PushsvcError):
    """No answer came, after all retries."""


class InvalidWebhook(PushsvcError):
    """A request that does not prove who sent it. Answer it with 400."""


@dataclass(frozen=True)
class FieldError:
    """One error of the input. `attr` is a path such as `target_platforms.1`."""

    attr: str
    code: str
    detail: str


class Refused(PushsvcError):
    """The service answered with an error (RFC 9457). Use `code`, which is stable.

    `retry_after`: the seconds that the service says to wait, or None. `request_id` finds the
    request in the service's log.
    """

    def __init__(
        self, status: int, problem: Mapping[str, Any], retry_after: float | None = None
    ) -> None:
        self.status = status
        self.code = str(problem.get("code", ""))
        self.detail = str(problem.get("detail", ""))
        self.request_id = str(problem.get("request_id", ""))
        self.retry_after = retry_after
        self.errors = tuple(
            FieldError(each["attr"], each["code"], each["detail"])
            for each in problem.get("errors", ())
        )
        super().__init__(status, problem, retry_after)  # with which pickle makes it again

    def __str__(self) -> str:
        if not self.code:
            return f"{self.status} not from pushsvc: check the address and proxies"
        each = "; ".join(f"{error.attr}: {error.detail}" for error in self.errors)
        return f"{self.status} {self.code}: {each or self.detail}"
