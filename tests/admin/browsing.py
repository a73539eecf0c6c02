"""A browser of the console of a running web process, with real sockets and cookies."""

from http.client import HTTPConnection
from http.cookies import SimpleCookie
from urllib.parse import urlencode, urlsplit

from tests.admin.support import PASSWORD


class Browser:
    def __init__(self, address, **headers):
        self.address = urlsplit(address).netloc
        self.headers = headers
        self.cookies = {"csrftoken": "c" * 32}  # Django only compares it with the form's field.

    def ask(self, method, path, fields=None):
        """Status, headers and text. Follows no redirect."""
        headers = {"Cookie": "; ".join(f"{name}={text}" for name, text in self.cookies.items())}
        body = None
        if fields is not None:
            body = urlencode(fields | {"csrfmiddlewaretoken": self.cookies["csrftoken"]})
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection = HTTPConnection(self.address, timeout=120)
        try:
            connection.request(method, path, body, self.headers | headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        for line in answer.headers.get_all("Set-Cookie", []):
            self.cookies |= {name: kept.value for name, kept in SimpleCookie(line).items()}
        return answer.status, answer.headers, text

    def get(self, path):
        return self.ask("GET", path)

    def post(self, path, **fields):
        return self.ask("POST", path, fields)

    def sign_in(self, username, password=PASSWORD):
        fields = {"login": username, "password": password, "next": "/admin/"}
        return self.post("/admin/login/", **fields)

    def is_signed_in(self):
        return self.get("/admin/")[0] == 200
