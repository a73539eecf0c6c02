"""Accounts, users, channels, their keys and credentials, and the audit log in the console."""

from channels_app.admin import accounts, audit, channels, lockouts, schedule, users

__all__ = ["accounts", "audit", "channels", "lockouts", "schedule", "users"]
