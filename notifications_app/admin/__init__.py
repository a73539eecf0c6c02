"""The console's pages about notifications and people, and the dashboard."""

from notifications_app.admin import notifications, people
from notifications_app.admin.compose import drafts

__all__ = ["drafts", "notifications", "people"]
