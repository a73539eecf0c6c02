"""The web process with one more route: POST /bare, which inserts one row and does nothing else."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pushsvc.settings")

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from pushsvc import asgi
from pushsvc.urls import urlpatterns as pushsvc_urls

TABLE = "bench_bare"


@csrf_exempt
def _bare(_request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {TABLE} (text) VALUES (%s)", ["x"])  # noqa: S608 - our name
    return HttpResponse(b'{"message":"x"}', content_type="application/json", status=201)


urlpatterns = [path("bare", _bare), *pushsvc_urls]
settings.ROOT_URLCONF = __name__
application = asgi.application
