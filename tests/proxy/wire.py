"""Requests as bytes, over any connection."""

import json
from contextlib import suppress
from http.client import HTTPResponse

from tests.proxy.nginx import HOST


def message(method, path, *headers, body=""):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def post(path, content, *headers):
    body = json.dumps(content)
    return message("POST", path, "Content-Type: application/json", *headers, body=body)


def send_notification(owner, text):
    return post("/send-notification", {"body": text}, f"Authorization: Key {owner.key}")


def answer(connection):
    """Status, headers, body."""
    response = HTTPResponse(connection)
    response.begin()
    return response.status, response.headers, response.read()


def ask(connection, data):
    with connection:
        connection.sendall(data)
        return answer(connection)


def everything(connection, data):
    """Everything that is answered until the other end closes."""
    found = b""
    with connection, suppress(ConnectionError):
        connection.sendall(data)
        while part := connection.recv(65_536):
            found += part
    return found
