"""Parses and validates the credentials that a channel's owner got from Google and Apple. Pure.

Texts are accepted as editors, shells and web forms leave them, where only one meaning is possible.
Private keys are loaded before anything is stored. The details of errors repeat no value.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from pushsvc.common.errors import MAX_UNKNOWN, FieldError, Invalid
from pushsvc.common.http.strict_json import MalformedJSON, loads_strict

_CONFIG = "providers_config"
_FCM = f"{_CONFIG}.fcm_service_account"
_APNS = f"{_CONFIG}.apns_key"
_LEAST_RSA_BITS = 2048
# An RSA key of 4,096 bits has 3,300 characters. The time to check a key grows with the cube of its
# size, so a key as long as a request's body would take half a minute.
_MOST_PEM = 4_096
_BLANKS = " \t\r\n\v\f\u00a0\u200b\ufeff"
_QUOTES = "'\"`"
# A key in PEM (RFC 7468). Around it and in it: blanks, quotes and literal `\n`.
_AROUND = rf"(?:\\[nrt]?|[{_BLANKS}{_QUOTES},;])*"
_PEM = re.compile(rf"{_AROUND}-----BEGIN ([A-Z0-9 ]{{1,40}})-----([^-]*)-----END \1-----{_AROUND}")
_BREAK = re.compile(rf"\\[nrt]?|[{_BLANKS}]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
# A key in a JSON text, which has real line breaks after `echo`.
_PEM_IN_JSON = re.compile(r"-----BEGIN [^\"]*")
_LINE_BREAK = re.compile(r"\r\n?|\n")


class _Shape(NamedTuple):
    pattern: str
    meaning: str

    def fits(self, text: str) -> bool:
        return re.fullmatch(self.pattern, text, re.ASCII) is not None


# https://cloud.google.com/resource-manager/docs/creating-managing-projects. Old projects of a
# domain have its name in front: `example.com:my-project`. It goes into a URL as it is: RFC 3986
# allows a colon in a path, and Google's libraries do not encode it either.
_PROJECT_DOMAIN = r"[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63}){1,8}"
_PROJECT_ID = _Shape(rf"({_PROJECT_DOMAIN}:)?[a-z][a-z0-9-]{{4,28}}[a-z0-9]", "a project id")
_DOMAIN = r"[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63}){1,8}"
_EMAIL = _Shape(rf"[A-Za-z0-9._+-]{{1,64}}@{_DOMAIN}", "an e-mail address")
_GOOGLE_KEY_ID = _Shape(r"[A-Za-z0-9_-]{0,128}", "a key id")
_GOOGLE_NAMES = ("project_id", "client_email", "private_key")
# https://google.aip.dev/auth: the types that files of credentials have.
_OTHER_GOOGLE_TYPES = {
    name: f"an “{name}” file"
    for name in (
        "authorized_user",
        "external_account",
        "external_account_authorized_user",
        "impersonated_service_account",
    )
}
# Files that have no type, by the name of an entry.
_OTHER_GOOGLE_FILES = {
    "installed": "an “OAuth client” file",
    "web": "an “OAuth client” file",
    "project_info": "the app's “google-services.json”",
}
# https://developer.apple.com/documentation/usernotifications/establishing-a-token-based-connection-to-apns
_APPLE_SHAPES = {
    "key_id": _Shape(r"[A-Z0-9]{10}", "10 capital letters and digits"),
    "team_id": _Shape(r"[A-Z0-9]{10}", "10 capital letters and digits"),
    "topic": _Shape(r"[A-Za-z0-9.-]{1,255}", "a bundle id"),
    "environment": _Shape(r"production|sandbox", "`production` or `sandbox`"),
}


@dataclass(frozen=True)
class ServiceAccount:
    """The parts of the downloaded JSON that are needed to sign. Entries such as `token_uri` are
    ignored, because with them a tenant could choose where we connect to."""

    project_id: str
    client_email: str
    private_key: str
    private_key_id: str

    @property
    def facts(self) -> dict[str, str]:
        return {"project_id": self.project_id, "client_email": self.client_email}


@dataclass(frozen=True)
class ApnsKey:
    key: str
    key_id: str
    team_id: str
    topic: str
    environment: str

    @property
    def facts(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in _APPLE_SHAPES}


def secret_json(credential: ServiceAccount | ApnsKey) -> str:
    """The JSON that is encrypted and stored, and that the transport reads."""
    return json.dumps(asdict(credential))


def parse_service_account(text: str) -> ServiceAccount:
    """Parses the JSON file of Google's console. Raises Invalid with all errors and their paths."""
    given = _json_object(text, _FCM)
    _check_google_file(given)
    values = _Values(given, _FCM)
    account = ServiceAccount(
        project_id=values.text("project_id", _PROJECT_ID),
        client_email=values.text("client_email", _EMAIL),
        private_key=values.private_key("private_key", _rsa_error),
        private_key_id=values.text("private_key_id", _GOOGLE_KEY_ID, default=""),
    )
    values.raise_errors()
    return account


def _check_google_file(given: Mapping[str, Any]) -> None:
    """Raises Invalid for another kind of Google's files, and names the kind."""
    missing = [name for name in _GOOGLE_NAMES if name not in given]
    kind = _OTHER_GOOGLE_TYPES.get(str(given.get("type"))) or next(
        (name for mark, name in _OTHER_GOOGLE_FILES.items() if mark in given), None
    )
    if missing and kind:
        detail = f"This is {kind}. A “service_account” file is needed. Missing: "
        raise Invalid([FieldError(_FCM, "wrong_file", f"{detail}{', '.join(missing)}.")])


def parse_apns_key(text: str, *, entries: Mapping[str, str], stored: Mapping[str, str]) -> ApnsKey:
    """Parses a JSON string with all five values, or the text of a .p8 file.

    With a .p8 file, the other four values (`key_id`, `team_id`, `topic`, `environment`) come from
    `entries`, which were sent with it, or from `stored`.
    """
    if _unwrapped(text).startswith("{"):
        return _apns_from_json(text, entries)
    values = _Values({"apns_key": text}, _CONFIG)
    key = values.private_key("apns_key", _p8_error)
    given = {f"apns_{name}": value for name, value in {**stored, **entries}.items()}
    others = _Values(given, _CONFIG, values.errors)
    found = {name: others.text(f"apns_{name}", shape) for name, shape in _APPLE_SHAPES.items()}
    others.raise_errors()
    return ApnsKey(key, **found)


def _apns_from_json(text: str, entries: Mapping[str, str]) -> ApnsKey:
    values = _Values(_json_object(text, _APNS), _APNS)
    values.refuse_others({"key", *_APPLE_SHAPES})
    for name in entries:
        detail = "apns_key has this value already."
        values.errors.append(FieldError(f"{_CONFIG}.apns_{name}", "given_twice", detail))
    key = values.private_key("key", _p8_error)
    found = {name: values.text(name, shape) for name, shape in _APPLE_SHAPES.items()}
    values.raise_errors()
    return ApnsKey(key, **found)


class _KeyProblem(NamedTuple):
    code: str
    detail: str


class _Values:
    """Reads texts from an object and collects the errors, to report them together."""

    def __init__(
        self, values: Mapping[str, Any], path: str, errors: list[FieldError] | None = None
    ) -> None:
        self.values = values
        self.path = path
        self.errors: list[FieldError] = [] if errors is None else errors

    def text(self, name: str, shape: _Shape | None = None, default: str | None = None) -> str:
        value = self.values.get(name, default)
        if value is None:
            return self.invalid(name, "required", "This field is required.")
        if not isinstance(value, str):
            return self.invalid(name, "not_a_string", "Must be a string.")
        if shape and not shape.fits(value):
            return self.invalid(name, "malformed", f"Must be {shape.meaning}.")
        return value

    def private_key(self, name: str, error_of: Callable[[str], _KeyProblem | None]) -> str:
        text = clean_pem(self.text(name))
        if len(text) > _MOST_PEM:
            return self.invalid(name, "too_long", f"Must be at most {_MOST_PEM} characters long.")
        if isinstance(self.values.get(name), str) and (field_error := error_of(text)):
            return self.invalid(name, *field_error)
        return text

    def refuse_others(self, known: set[str]) -> None:
        if len(self.values) > len(known) + MAX_UNKNOWN:
            detail = f"Must have at most {len(known)} fields."
            raise Invalid([FieldError(self.path, "too_many", detail)])
        for name in self.values.keys() - known:
            self.invalid(name, "unknown_field", "There is no such field.")

    def invalid(self, name: str, code: str, detail: str) -> str:
        self.errors.append(FieldError(f"{self.path}.{name}", code, detail))
        return ""

    def raise_errors(self) -> None:
        if self.errors:
            raise Invalid(self.errors)


def _json_object(text: str, path: str) -> dict[str, Any]:
    try:
        value = loads_strict(_PEM_IN_JSON.sub(_escaped, _unwrapped(text)).encode())
    except MalformedJSON as error:
        raise Invalid([FieldError(path, "malformed_json", error.detail)]) from error
    if not isinstance(value, dict):
        raise Invalid([FieldError(path, "not_an_object", "The string must hold a JSON object.")])
    return value


def _escaped(found: re.Match[str]) -> str:
    return _LINE_BREAK.sub(r"\\n", found[0])


def _unwrapped(text: str) -> str:
    """The value of a JSON string; of another text, what is inside blanks and quotes."""
    text = text.strip(_BLANKS)
    if text[:1] not in set(_QUOTES) or text[-1] != text[0]:
        return text
    with suppress(MalformedJSON):
        value = loads_strict(text.encode())
        return value.strip(_BLANKS) if isinstance(value, str) else text
    return text[1:-1].strip(_BLANKS)


def clean_pem(text: str) -> str:
    """The key as its issuer wrote it. A text of another form stays as it is, for the loader."""
    found = _PEM.fullmatch(text)
    body = _BREAK.sub("", found[2]) if found else ""
    if not found or not _BASE64.fullmatch(body):
        return text
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return "\n".join([f"-----BEGIN {found[1]}-----", *lines, f"-----END {found[1]}-----", ""])


def _load(pem: str) -> object:
    try:
        return load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None


def _rsa_error(pem: str) -> _KeyProblem | None:
    key = _load(pem)
    if not isinstance(key, rsa.RSAPrivateKey):
        return _other_key("an RSA private key (PEM)")
    if key.key_size < _LEAST_RSA_BITS:
        detail = f"The RSA key has {key.key_size} bits. It must have {_LEAST_RSA_BITS} or more."
        return _KeyProblem("key_too_short", detail)
    return None


def _p8_error(pem: str) -> _KeyProblem | None:
    key = _load(pem)
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        return None
    return _other_key("the text of a .p8 file")


def _other_key(meaning: str) -> _KeyProblem:
    return _KeyProblem("not_a_private_key", f"Must be {meaning}, not encrypted.")


def is_vapid_subject(subject: str) -> bool:
    """Whether it is `mailto:` or `https:` with a real domain, as RFC 8292 and Apple require."""
    if len(subject) > 255 or not subject.isascii() or any(char <= " " for char in subject):
        return False
    scheme, _, rest = subject.partition(":")
    if scheme == "mailto":
        return _EMAIL.fits(rest) and _is_real_domain(rest.rpartition("@")[2])
    try:
        parts = urlsplit(subject)
        return parts.scheme == "https" and _is_real_domain(parts.hostname or "")
    except ValueError:
        return False


def _is_real_domain(host: str) -> bool:
    """Whether the last label has letters and is not reserved for local use."""
    last = host.rpartition(".")[2]
    is_name = _Shape(_DOMAIN, "").fits(host) and any(char.isalpha() for char in last)
    return is_name and last not in {"localhost", "local", "internal", "invalid", "test", "lan"}
