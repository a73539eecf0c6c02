"""The console's pages about channels and their keys. Also registers the pages of other parts."""

from channels_app.accounts import admin as accounts
from channels_app.admin import channels
from channels_app.console import audit_log, schedule
from channels_app.sign_in import admin as sign_in

__all__ = ["accounts", "audit_log", "channels", "schedule", "sign_in"]
