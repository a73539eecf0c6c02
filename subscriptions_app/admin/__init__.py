"""Subscribers and segments in the console."""

from subscriptions_app.admin import segments, subscriptions

__all__ = ["segments", "subscriptions"]
