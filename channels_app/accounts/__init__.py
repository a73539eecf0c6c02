"""Accounts, their members, and what each may see and change."""
