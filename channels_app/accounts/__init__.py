"""Accounts, their members with a role, and the users of the console."""
