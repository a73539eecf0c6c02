"""The console's pages about accounts, their members, and users."""

from channels_app.accounts.admin import accounts, users

__all__ = ["accounts", "users"]
