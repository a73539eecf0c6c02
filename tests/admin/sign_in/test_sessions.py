"""Who reads the database has no session of the console by it, nor a way to one."""

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
from channels_app.sign_in.sessions import sessions_purge
from pushsvc.common.store.sessions import SessionStore
from tests.admin.browsing import Browser
from tests.admin.support import PASSWORD
from tests.pipeline.processes import running_web


@pytest.fixture(autouse=True)
def _quick_passwords():
    """In place of the directory's: the web process knows the real hash only."""


@pytest.fixture
def alice(transactional_db):
    return User.objects.create_user("alice", password=PASSWORD, is_staff=True)


def dump():
    """The table as text, a line for each row."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT kept::text FROM django_session AS kept")
        return "\n".join(row for (row,) in cursor.fetchall())


def values(text):
    """What in it could be a cookie: whole lines, columns, and every word of eight or more."""
    columns = [str(value) for row in Session.objects.values_list() for value in row]
    return {*text.splitlines(), *columns, *re.findall(r"[\w-]{8,}", text)}


def readable(text):
    """Whatever can be read without any secret: base64 and zlib undone."""
    found = [text]
    for word in re.findall(r"[\w-]{8,}", text):
        raw = urlsafe_b64decode(word + "=" * (-len(word) % 4)) if len(word) % 4 != 1 else b""
        found.append(raw.decode("latin1"))
        try:
            found.append(zlib.decompress(raw).decode("latin1"))
        except zlib.error:
            continue
    return "\n".join(found)


def test_nothing_in_the_table_is_enough_to_sign_in(alice, tmp_path):
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


def test_a_link_to_set_a_password_that_was_opened_cannot_be_read(alice, tmp_path):
    link = set_password_path(user=alice)
    token = link.rstrip("/").rpartition("/")[2]
    assert token in readable(DjangosStore().encode({"kept": token}))  # Django's own session

    with running_web(tmp_path / "web.log") as address:
        browser = Browser(address)
        status, headers, _ = browser.get(link)
        assert (status, Session.objects.count()) == (302, 1)
        assert token not in readable(dump())
        assert "Choose a password" in browser.get(headers["Location"])[2]


def test_a_session_is_made_found_changed_renamed_and_ended(db):
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


def test_a_session_that_ended_elsewhere_is_not_brought_back(db):
    session = SessionStore()
    session.create()
    SessionStore(session.session_key).delete()
    session["a"] = 1

    with pytest.raises(UpdateError):
        session.save()

    assert not Session.objects.exists()


def test_a_session_whose_time_is_over_is_none_and_is_purged(db):
    session = SessionStore()
    session.create()
    Session.objects.update(expire_date=Now())

    assert SessionStore(session.session_key).load() == {}
    assert sessions_purge(10) == 1


def test_a_session_under_a_key_that_was_dropped_is_empty(db, settings):
    session = SessionStore()
    session["a"] = 1
    session.save()
    settings.CREDENTIAL_KEYS = [Fernet.generate_key().decode()]

    assert SessionStore(session.session_key).load() == {}


def test_the_asynchronous_ways_keep_no_cookie_either(transactional_db):
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
def test_a_cookie_that_never_was_one_is_none(client, db, cookie):
    client.cookies["sessionid"] = cookie

    assert client.get("/admin/").status_code == 302
