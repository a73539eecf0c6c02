"""GET /sdk/<name>: files for pages and service workers of any origin."""

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pushsvc.common.errors import NotFound
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.http.static_files import file_response
from pushsvc.sdk.files import files


@extend_schema(exclude=True)
class SdkView(ApiView):
    def get(self, request: Request, name: str) -> HttpResponseBase:
        file = files().get(name)
        if file is None:
            raise NotFound
        response = file_response(django_request(request), file)
        # Also on 304. Across origins, integrity requires CORS, and pages with COEP load only files
        # with these headers.
        response["Access-Control-Allow-Origin"] = "*"
        response["Cross-Origin-Resource-Policy"] = "cross-origin"
        return response
