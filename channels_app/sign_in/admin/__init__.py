"""The console's pages about signing in: a user's own, and lock-outs."""

from channels_app.sign_in.admin import lockouts, own

__all__ = ["lockouts", "own"]
