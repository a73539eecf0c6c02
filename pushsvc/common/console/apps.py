"""Makes the console's site the one that Django's admin uses."""

from django.contrib.admin.apps import AdminConfig


class ConsoleConfig(AdminConfig):
    default_site = "pushsvc.common.console.site.ConsoleSite"
