"""Notifications in the console, and the dashboard."""

from notifications_app.admin import notifications

__all__ = ["notifications"]
