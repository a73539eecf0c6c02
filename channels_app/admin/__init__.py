"""Accounts, channels, their keys and credentials in the console."""

from channels_app.admin import accounts, channels

__all__ = ["accounts", "channels"]
