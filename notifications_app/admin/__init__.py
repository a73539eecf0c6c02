"""The console's pages about notifications and people, and the dashboard."""

from notifications_app.admin import drafts, notifications, people

__all__ = ["drafts", "notifications", "people"]
