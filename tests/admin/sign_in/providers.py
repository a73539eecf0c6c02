"""Providers of OpenID Connect on the loopback: a certified one, and one that forges.

`Person` is the browser of somebody at the certified one.
"""

import json
import re
import subprocess
import time
from contextlib import contextmanager
from http.cookiejar import CookieJar
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, Request, build_opener

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from django.test import Client

from bench.ports import own_port
from tests import leftovers, missing
from tests.ops.helpers import CHECKOUT
from tests.pipeline.processes import kill

START = "/admin/auth/user/provider/"
CALLBACK = f"{START}callback/"
CODE = "/admin/login/second-step/"
PUBLIC = "http://testserver"
CLIENT, SECRET = "pushsvc", "the-secret-of-the-client"
_CLIENTS = CHECKOUT / ".venv" / "clients"
_SCRIPT = Path(__file__).with_name("oidc_provider.mjs")


def use(settings, issuer):
    """Lets the settings name the provider."""
    settings.OIDC_ISSUER, settings.OIDC_LABEL = issuer, "Example"
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = CLIENT, SECRET
    settings.OIDC_TRUST_SECOND_STEP = False
    settings.PUBLIC_BASE_URL = PUBLIC


def path_of(url):
    """Path and query, for Django's test client."""
    parts = urlsplit(url)
    assert f"{parts.scheme}://{parts.netloc}" == PUBLIC, url
    return f"{parts.path}?{parts.query}"


# --- the certified one ----------------------------------------------------------------------------


@contextmanager
def certified_provider():
    """Its issuer. Skips the test where the npm package is not installed."""
    if not (_CLIENTS / "node_modules" / "oidc-provider").is_dir():
        missing.skip_without("oidc-provider")
    port = own_port()
    process = subprocess.Popen(
        [_CLIENTS / "bin" / "node", _SCRIPT, _CLIENTS, str(port), SECRET, PUBLIC + CALLBACK],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    leftovers.end_group_with_us(process.pid)
    try:
        for line in process.stdout:
            if line == "ready\n":
                break
        assert process.poll() is None
        yield f"http://127.0.0.1:{port}"
    finally:
        kill(process)  # with its children: the wheel's node starts the real one
        process.stdout.close()


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Person:
    """At the provider, as `name`, whose address is `email`."""

    def __init__(self, name, email="", *, verified=True):
        self.login = f"{name}|{email}|{str(verified).lower()}"
        self._opener = build_opener(_NoRedirects, HTTPCookieProcessor(CookieJar()))

    def ask(self, url, form=None):
        """Where the answer leads, and its text."""
        body = urlencode(form).encode() if form is not None else None
        try:
            with self._opener.open(Request(url, body), timeout=120) as answer:
                return "", answer.read().decode()
        except HTTPError as error:
            with error:
                text = error.read().decode()
                if error.code not in {302, 303}:
                    raise AssertionError(text) from error
                return urljoin(url, error.headers["Location"]), text

    def approve(self, url):
        """Signs in at the provider and consents; the address to which it sends the browser."""
        for _ in range(12):
            if url.startswith(PUBLIC):
                return url
            leads, text = self.ask(url)
            if not leads:
                (prompt,) = re.findall(r'name="prompt" value="(\w+)"', text)
                action, *_ = re.findall(r'action="([^"]+)"', text)
                form = {"prompt": prompt, "login": self.login, "password": "any"}
                leads, _ = self.ask(urljoin(url, action), form)
            url = leads
        raise AssertionError(f"the provider does not send the browser back: {url}")


def sign_in(person, client=None, path=START):
    """The service's answer at the end."""
    client = client or Client()
    begun = client.get(path)
    assert begun.status_code == 302, begun.content
    return client.get(path_of(person.approve(begun["Location"])))


# --- the one that forges --------------------------------------------------------------------------


def new_key():
    return generate_private_key(65537, 2048)


class Forger:
    """Says what the test wants. `claims`, `header` and `key` make the next ID token."""

    def __init__(self, issuer):
        self.issuer = issuer
        self._own_key = new_key()
        self.asked = []
        self.reset()

    def reset(self):
        self.asked.clear()
        self.metadata = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
        }
        self.keys = {"one": self._own_key}
        self.claims, self.header, self.key = {}, {"alg": "RS256", "kid": "one"}, self._own_key
        self.userinfo, self.nonce, self.answers = {}, "", {}

    def id_token(self):
        now = int(time.time())
        usual = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "subject",
            "iat": now,
            "exp": now + 300,
            "nonce": self.nonce,
            "email": "viewer@example.com",
            "email_verified": True,
        }
        claims = {name: text for name, text in {**usual, **self.claims}.items() if text is not None}
        return jwt.encode(claims, self.key, self.header["alg"], headers=self.header)

    def answer(self, path):
        """The body of an answer, as bytes or for JSON."""
        self.asked.append(path)
        if path in self.answers:
            return self.answers[path]
        match path:
            case "/.well-known/openid-configuration":
                return self.metadata
            case "/jwks":
                return {"keys": [_public(name, key) for name, key in self.keys.items()]}
            case "/userinfo":
                return self.userinfo
            case "/token":
                bearer = {"access_token": "access", "token_type": "Bearer"}
                return bearer | {"id_token": self.id_token()}
        raise AssertionError(path)


def _public(name, key):
    described = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    return described | {"kid": name, "alg": "RS256", "use": "sig"}


@contextmanager
def forging_provider():
    port = own_port()
    forger = Forger(f"http://127.0.0.1:{port}")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._answer()

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer()

        def _answer(self):
            answer = forger.answer(self.path)
            if callable(answer):
                answer(self)
                return
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield forger
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()


def begin(forger, client, path=START):
    """The parameters with which the browser goes to the provider, which answers for them."""
    asked = parse_qs(urlsplit(client.get(path)["Location"]).query)
    parameters = {name: values[0] for name, values in asked.items()}
    forger.nonce = parameters["nonce"]
    return parameters


def come_back(client, parameters, **changes):
    """The service's answer to a browser that the provider sends back."""
    answer = {"code": "code", "state": parameters["state"], **changes}
    return client.get(CALLBACK, {name: text for name, text in answer.items() if text is not None})
