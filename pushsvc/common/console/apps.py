"""Sets the console's site as the site of Django's admin."""

from django.contrib.admin.apps import AdminConfig


class ConsoleConfig(AdminConfig):
    default_site = "pushsvc.common.console.site.ConsoleSite"
