"""Sends webhooks: facts become messages, and messages become signed requests."""
