"""Deletes sessions of the console."""

from typing import Final

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models.functions import Now

from channels_app.sign_in.session_store import SessionStore

_READ_AT_ONCE: Final = 500


def sessions_purge(limit: int) -> int:
    """Deletes at most `limit` sessions that have ended. Returns how many."""
    ended = Session.objects.filter(expire_date__lt=Now()).values("pk")[:limit]
    deleted, _ = Session.objects.filter(pk__in=ended).delete()
    return deleted


def sessions_end(user: User) -> None:
    """Deletes all sessions of the user. Safe to repeat.

    Reads every session, because only the encrypted content names the user.
    """
    open_ones = Session.objects.filter(expire_date__gt=Now()).iterator(_READ_AT_ONCE)
    own = [session.pk for session in open_ones if _user_id(session) == str(user.pk)]
    Session.objects.filter(pk__in=own).delete()


def _user_id(session: Session) -> str | None:
    return SessionStore().decode(session.session_data).get(SESSION_KEY)
