"""Django's own entry point, for tools that ask for one; the web process runs pushsvc.asgi."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pushsvc.settings")

application = get_wsgi_application()
