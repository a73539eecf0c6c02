"""Calls to the sign-in provider: bounded in time and size, without redirects and proxies."""

import time
from io import BytesIO
from typing import Any, Final
from urllib.parse import urlsplit

import requests  # noqa: TID251 - allauth's; it calls only the provider that operators named
from django.conf import settings
from requests.adapters import HTTPAdapter  # noqa: TID251
from typing_extensions import override
from urllib3.exceptions import HTTPError

from pushsvc.common.egress import verifying_context

MOST_BYTES: Final = 512 * 1024  # of a response; Entra's keys take about 20 KiB
_READ_BYTES: Final = 64 * 1024

Failed = requests.RequestException


class ResponseTooLong(Failed):
    """The response has more than MOST_BYTES."""


class ProviderSession(requests.Session):
    """Calls addresses of the issuer's scheme only."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.max_redirects = 0
        self.headers["Accept-Encoding"] = "identity"
        self.adapters.clear()
        self.mount(f"{urlsplit(settings.OIDC_ISSUER).scheme}://", _Bounded())


class _Bounded(HTTPAdapter):
    @override
    def init_poolmanager(self, *args: Any, **options: Any) -> Any:
        options["ssl_context"] = verifying_context(settings.PROVIDER_CA_FILE)
        return super().init_poolmanager(*args, **options)

    @override
    def send(self, request: Any, *args: Any, **options: Any) -> requests.Response:
        """Sends the request and reads the whole response. Raises Failed."""
        until = time.monotonic() + settings.OIDC_SECONDS
        options |= {"stream": True, "timeout": settings.OIDC_SECONDS, "proxies": None}
        response = super().send(request, **options)
        try:
            body = _read(response.raw, until)
        except HTTPError as error:
            raise requests.ConnectionError("the provider's response broke off") from error
        finally:
            response.raw.close()
        response.raw = BytesIO(body)
        return response


def _read(raw: Any, until: float) -> bytes:
    """Reads the whole body. Raises ResponseTooLong or requests.Timeout."""
    body = bytearray()
    while part := raw.read1(_READ_BYTES):
        body += part
        if len(body) > MOST_BYTES:
            raise ResponseTooLong("the provider's response is too long")
        if time.monotonic() > until:
            raise requests.Timeout("the provider's response takes too long")
    return bytes(body)
