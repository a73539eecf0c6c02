"""The console's pages of notifications, and the dashboard."""

from notifications_app.admin import drafts, notifications

__all__ = ["drafts", "notifications"]
