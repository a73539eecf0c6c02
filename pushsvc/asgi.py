"""The web process. Importing this module starts its threads, so only a server may import it."""

import os
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

from django.conf import settings
from django.core.wsgi import get_wsgi_application

# Set before our modules are imported, because some of them read settings.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pushsvc.settings")

from channels_app.checks import require_working_settings
from pushsvc.common.store import metric_reports
from pushsvc.web.application import BufferedApplication
from pushsvc.web.bulkhead import THREADS
from pushsvc.web.sockets import require_files

application = BufferedApplication(
    get_wsgi_application(), ThreadPoolExecutor(THREADS, thread_name_prefix="web")
)
require_working_settings()
require_files(settings.WEB_CONNECTIONS)
# Or the first request would load the routes with all that they need, and wait for it.
import_module(settings.ROOT_URLCONF)
application.count_beacons()
metric_reports.start("web")  # last, because a process counts as running when it reports
