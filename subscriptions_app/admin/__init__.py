"""Subscribers and segments in the console."""

from subscriptions_app.admin import subscriptions

__all__ = ["subscriptions"]
