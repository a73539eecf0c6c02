"""The console's pages of notifications, and the dashboard."""

from notifications_app.admin import notifications

__all__ = ["notifications"]
