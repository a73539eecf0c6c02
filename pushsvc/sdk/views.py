"""GET /sdk/<name>: for pages and workers of any origin."""

from typing import Final

from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pushsvc.common.errors import NotFound
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.sdk.files import SdkFile, files

# A year, as long as any cache keeps; and short enough for a fix to be everywhere soon.
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_SHORTLY: Final = "public, max-age=300"


@extend_schema(exclude=True)
class SdkView(ApiView):
    def get(self, request: Request, name: str) -> HttpResponse:
        file = files().get(name)
        if file is None:
            raise NotFound
        whole = _response(file, is_gzipped="gzip" in request.headers.get("Accept-Encoding", ""))
        unchanged = get_conditional_response(
            django_request(request), etag=whole["ETag"], response=whole
        )
        response = unchanged or whole
        # Also on 304. Integrity is checked across origins only where reading is allowed (CORS),
        # and pages under COEP load only what says that it is for others.
        response["Access-Control-Allow-Origin"] = "*"
        response["Cross-Origin-Resource-Policy"] = "cross-origin"
        return response


def _response(file: SdkFile, *, is_gzipped: bool) -> HttpResponse:
    headers = {
        "Cache-Control": _FOR_EVER if file.is_immutable else _SHORTLY,
        "ETag": f'"{file.digest}"',
        "Vary": "Accept-Encoding",
    }
    if not is_gzipped:
        return HttpResponse(file.content, content_type=file.content_type, headers=headers)
    headers |= {"ETag": f'"{file.digest}-gzip"', "Content-Encoding": "gzip"}
    return HttpResponse(file.gzipped, content_type=file.content_type, headers=headers)
