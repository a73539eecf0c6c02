import os

from django.core.wsgi import get_wsgi_application

from channels_app.checks import require_working_settings
from pushsvc.common.chunked import read_chunked

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pushsvc.settings")

application = read_chunked(get_wsgi_application())
require_working_settings()
