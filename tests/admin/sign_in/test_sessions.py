"""Somebody who reads the database gets no session of the console from it."""

import re
import zlib
from base64 import urlsafe_b64decode

import pytest
from asgiref.sync import async_to_sync
from cryptography.fernet import Fernet
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import CreateError, UpdateError
from django.contrib.sessions.backends.db import SessionStore as DjangosStore
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models.functions import Now

from channels_app.sign_in.passwords import set_password_path
from channels_app.sign_in.session_store import SessionStore
from channels_app.sign_in.sessions import sessions_purge
from tests.admin.browsing import Browser
from tests.admin.support import PASSWORD
from tests.pipeline.processes import running_web


@pytest.fixture(autouse=True)
def _quick_passwords():
    """Replaces the directory's fixture: the web process knows only the real hash."""


@pytest.fixture
def alice(transactional_db):
    return User.objects.create_user("alice", password=PASSWORD, is_staff=True)


def dump():
    """The table as text, a line for each row."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT kept::text FROM django_session AS kept")
        return "\n".join(row for (row,) in cursor.fetchall())


def values(text):
    """Everything in the dump that could be a cookie: lines, columns, and words of eight or more
    characters."""
    columns = [str(value) for row in Session.objects.values_list() for value in row]
    return {*text.splitlines(), *columns, *re.findall(r"[\w-]{8,}", text)}


def readable(text):
    """Everything that can be read without a secret: base64 and zlib are undone."""
    found = [text]
    for word in re.findall(r"[\w-]{8,}", text):
        raw = urlsafe_b64decode(word + "=" * (-len(word) % 4)) if len(word) % 4 != 1 else b""
        found.append(raw.decode("latin1"))
        try:
            found.append(zlib.decompress(raw).decode("latin1"))
        except zlib.error:
            continue
    return "\n".join(found)


def test_nothing_in_the_session_table_signs_anybody_in(alice, tmp_path):
    with running_web(tmp_path / "web.log") as address:
        browser = Browser(address)
        assert browser.sign_in("alice")[0] == 302
        assert browser.is_signed_in()
        for value in values(dump()):
            thief = Browser(address)
            thief.cookies["sessionid"] = value.replace(";", "").replace('"', "")
            assert not thief.is_signed_in(), value
        assert browser.is_signed_in()
        cookie = browser.cookies["sessionid"]
        assert cookie not in dump()

        browser.post("/admin/logout/")
        browser.cookies["sessionid"] = cookie
        assert not browser.is_signed_in()


def test_the_token_of_an_opened_password_link_is_not_readable(alice, tmp_path):
    link = set_password_path(user=alice)
    token = link.rstrip("/").rpartition("/")[2]
    assert token in readable(
        DjangosStore().encode({"kept": token})
    )  # Django's own session stores it readable

    with running_web(tmp_path / "web.log") as address:
        browser = Browser(address)
        status, headers, _ = browser.get(link)
        assert (status, Session.objects.count()) == (302, 1)
        assert token not in readable(dump())
        assert "Choose a password" in browser.get(headers["Location"])[2]


def test_a_session_is_created_found_changed_renamed_and_deleted(db):
    session = SessionStore()
    session["a"] = 1
    session.save()
    first = session.session_key
    assert session.exists(first)
    assert SessionStore(first)["a"] == 1
    assert not Session.objects.filter(pk=first).exists()

    session["a"] = 2
    session.save()
    session.cycle_key()
    session.save()
    assert (SessionStore(first).load(), SessionStore(session.session_key)["a"]) == ({}, 2)
    assert Session.objects.count() == 1

    session.flush()
    assert not Session.objects.exists()


def test_two_sessions_never_share_a_key(db):
    session = SessionStore()
    session.create()
    twin = SessionStore(session.session_key)
    with pytest.raises(CreateError):
        twin.save(must_create=True)


def test_saving_a_session_that_ended_elsewhere_does_not_restore_it(db):
    session = SessionStore()
    session.create()
    SessionStore(session.session_key).delete()
    session["a"] = 1

    with pytest.raises(UpdateError):
        session.save()

    assert not Session.objects.exists()


def test_an_expired_session_is_not_loaded_and_is_purged(db):
    session = SessionStore()
    session.create()
    Session.objects.update(expire_date=Now())

    assert SessionStore(session.session_key).load() == {}
    assert sessions_purge(10) == 1


def test_a_session_encrypted_with_a_removed_key_is_empty(db, settings):
    session = SessionStore()
    session["a"] = 1
    session.save()
    settings.CREDENTIAL_KEYS = [Fernet.generate_key().decode()]

    assert SessionStore(session.session_key).load() == {}


def test_the_asynchronous_methods_store_no_cookie_either(transactional_db):
    @async_to_sync
    async def key():
        session = SessionStore()
        await session.aset("a", 1)
        await session.asave()
        assert await session.aexists(session.session_key)
        assert await SessionStore(session.session_key).aload() == {"a": 1}
        return session.session_key

    assert key() not in dump()
    async_to_sync(SessionStore(key()).adelete)()
    assert Session.objects.count() == 1


@pytest.mark.parametrize("cookie", ["", "short", "x" * 4000, "ü" * 20, "a'b\\c" * 5])
def test_a_made_up_cookie_is_no_session(client, db, cookie):
    client.cookies["sessionid"] = cookie

    assert client.get("/admin/").status_code == 302
