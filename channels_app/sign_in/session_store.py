"""Sessions of the console (SESSION_ENGINE). A dump of their table is not enough to sign in.

The key of a row is a hash of the cookie. The content is encrypted, because it may contain the token
of an opened but unused link to set a password.
"""

from hashlib import sha256
from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.contrib.sessions.models import Session
from django.utils import timezone
from typing_extensions import override

from pushsvc.common.store.crypto import SecretUnreadable, decrypt, encrypt


class SessionStore(db.SessionStore):
    @override
    def load(self) -> dict[str, Any]:
        """The session's content. Empty if there is no such session or it has expired."""
        found = Session.objects.filter(
            session_key=_kept(self.session_key or ""), expire_date__gt=timezone.now()
        ).first()
        if found is None:
            self._session_key = None
            return {}
        return self.decode(found.session_data)

    @override
    def exists(self, session_key: str) -> bool:
        return super().exists(_kept(session_key))

    @override
    def create_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        row = super().create_model_instance(data)
        row.session_key = _kept(row.session_key)
        return row

    @override
    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key:
            super().delete(_kept(key))

    @override
    def encode(self, session_dict: dict[str, Any]) -> str:
        return encrypt(super().encode(session_dict))

    @override
    def decode(self, session_data: str) -> dict[str, Any]:  # type: ignore[override] # text column
        try:
            return super().decode(decrypt(session_data))
        except SecretUnreadable:  # CREDENTIAL_KEYS no longer has its key
            return {}

    # These call the methods above in a thread. Those of `db.SessionStore` would store the cookie.
    aload = SessionBase.aload
    aexists = SessionBase.aexists
    acreate = SessionBase.acreate
    asave = SessionBase.asave
    adelete = SessionBase.adelete


def _kept(cookie: str) -> str:
    """The stored form of a cookie: 160 bits of its SHA-256, as many as the column can store."""
    return sha256(cookie.encode()).hexdigest()[:40]
