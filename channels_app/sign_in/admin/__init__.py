"""The console's pages about signing in: a user's own, and lock-outs."""

from django.apps import apps

from channels_app.sign_in.admin import lockouts
from pushsvc.common.console.admin import site

__all__ = ["lockouts"]

# The pages of django-allauth would show the secrets of second steps.
for app in ("account", "mfa", "socialaccount"):
    site.unregister(filter(site.is_registered, apps.get_app_config(app).get_models()))
