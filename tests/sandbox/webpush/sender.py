"""An application server as client teams write it: pywebpush, py_vapid and one HTTP request."""

import http.client
import json
import socket
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from py_vapid import Vapid02, b64urlencode
from pywebpush import WebPusher

from sandbox import Device
from sandbox.webpush.encryption import uncompressed_point

TEXT = b'{"title": "Hello"}'


@dataclass(frozen=True)
class Answered:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def errno(self):
        return json.loads(self.body)["errno"]


class Sender:
    """One VAPID key and what can be sent with it."""

    def __init__(self) -> None:
        self.vapid = Vapid02()
        self.vapid.generate_keys()
        self.public_key = b64urlencode(uncompressed_point(self.vapid.public_key))

    def authorization(self, device: Device, **claims: object) -> str:
        parts = urlsplit(device.endpoint)
        usual = {
            "aud": f"{parts.scheme}://{parts.netloc}",
            "exp": int(time.time()) + 3600,
            "sub": "mailto:push@example.com",
        }
        return self.vapid.sign(usual | claims)["Authorization"]

    def headers(self, device: Device, **changes: str | None) -> dict[str, str]:
        """Valid headers; a change of None leaves one out, `_` in a name stands for `-`."""
        good = {
            "TTL": "60",
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "Authorization": self.authorization(device),
        }
        changed = good | {name.replace("_", "-"): value for name, value in changes.items()}
        return {name: value for name, value in changed.items() if value is not None}

    def send(
        self,
        device: Device,
        body: bytes | None = None,
        *,
        timeout: float = 10,
        **changes: str | None,
    ) -> Answered:
        body = encoded(device) if body is None else body
        return post(device.endpoint, self.headers(device, **changes), body, timeout)


def encoded(device: Device, text: bytes = TEXT) -> bytes:
    return WebPusher(device.subscription).encode(text, content_encoding="aes128gcm")["body"]


def encrypted(device: Device, text: bytes = TEXT, **options) -> bytes:
    """As `encoded`, with a key, salt and record size that the test chooses."""
    return http_ece.encrypt(
        text,
        private_key=options.pop("private_key", None) or ec.generate_private_key(ec.SECP256R1()),
        dh=device.keys.public_key,
        auth_secret=device.keys.auth_secret,
        version="aes128gcm",
        **options,
    )


def request(method: str, url: str, body: bytes = b"", headers=(), timeout: float = 10) -> Answered:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=timeout)
    try:
        connection.request(method, url[url.index(parts.path) :], body, dict(headers))
        response = connection.getresponse()
        return Answered(response.status, response.headers, response.read())
    finally:
        connection.close()


def post(url: str, headers: dict[str, str], body: bytes, timeout: float = 10) -> Answered:
    return request("POST", url, body, headers, timeout)


def raw_post(device: Device, headers: list[tuple[str, str]], body: bytes) -> bytes:
    """Sends the request line by line, because HTTP clients refuse to send some; returns the
    status line."""
    parts = urlsplit(device.endpoint)
    lines = [f"POST {parts.path} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in [*headers, ("Content-Length", len(body))]]
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        with connection.makefile("rb") as answer:
            return answer.readline()
