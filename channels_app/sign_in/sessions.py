"""Deletes sessions of the console, and failed sign-ins."""

from typing import Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models.functions import Now

from channels_app.sign_in.session_store import SessionStore
from pushsvc.common.store import sql

_READ_AT_ONCE: Final = 500


def sessions_purge(limit: int) -> int:
    """Deletes at most `limit` sessions that have ended. Returns how many."""
    ended = Session.objects.filter(expire_date__lt=Now()).values("pk")[:limit]
    deleted, _ = Session.objects.filter(pk__in=ended).delete()
    return deleted


def failures_purge(limit: int) -> int:
    """Deletes at most `limit` failed sign-ins that no longer count for a lock-out, and returns how
    many. django-axes deletes them only when somebody signs in or out."""
    return sql.execute(_PURGE_FAILURES, {"age": settings.AXES_COOLOFF_TIME, "limit": limit})


def sessions_end(user: User) -> None:
    """Deletes all sessions of the user. Safe to repeat.

    Reads every session, because only the encrypted content names the user.
    """
    open_ones = Session.objects.filter(expire_date__gt=Now()).iterator(_READ_AT_ONCE)
    own = [session.pk for session in open_ones if _user_id(session) == str(user.pk)]
    Session.objects.filter(pk__in=own).delete()


def _user_id(session: Session) -> str | None:
    return SessionStore().decode(session.session_data).get(SESSION_KEY)


# Raw, because workers do not load django-axes.
_PURGE_FAILURES: Final = """
DELETE FROM axes_accessattempt WHERE id = ANY(ARRAY(
  SELECT id FROM axes_accessattempt WHERE attempt_time <= statement_timestamp() - %(age)s
  LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
"""
