"""Accounts, their members, and the users of the console."""
