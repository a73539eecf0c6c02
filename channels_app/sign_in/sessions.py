"""Sessions of the console that have ended."""

from django.contrib.sessions.models import Session
from django.db.models.functions import Now


def sessions_purge(limit: int) -> int:
    """Deletes at most `limit` sessions that have ended. Returns how many."""
    ended = Session.objects.filter(expire_date__lt=Now()).values("pk")[:limit]
    deleted, _ = Session.objects.filter(pk__in=ended).delete()
    return deleted
