"""JSON over HTTP to our own processes. Ignores proxies in the environment."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from local.embedded.home import EmbeddedError

BUSY_SECONDS = 30.0  # for a response while other processes start


class UnreachableError(EmbeddedError):
    """There is no server, or it does not speak HTTP."""


@dataclass(frozen=True)
class Reply:
    status: int
    body: Any  # None unless it is JSON


@dataclass(frozen=True)
class Origin:
    """A server at host:port. Its clients call it `public_url`. It may take `seconds` to respond."""

    host: str
    port: int
    public_url: str
    seconds: float = 5.0

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Sends a request. Raises UnreachableError if there is no response in time."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=self.seconds)
        sent = {"Host": urlsplit(self.public_url).netloc, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, sent)
            response = connection.getresponse()
            return Reply(response.status, _json(response.read()))
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(f"{method} {path} got no response: {error!r}") from error
        finally:
            connection.close()


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None
