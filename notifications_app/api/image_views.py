"""/images/<name>: an image of a notification, for any device."""

from typing import Final

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from typing_extensions import override

from notifications_app.images.services import content_of, image_at, require_image
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.http.ratelimit import Limit

# The name is a hash of the content, so what it names never changes.
_FOREVER: Final = "public, max-age=31536000, immutable"


@extend_schema(exclude=True)
class ImageView(ApiView):
    is_limit_told = False  # caches keep the response
    http_method_names = ["get", "head"]

    @override
    def limit(self, request: Request) -> Limit:
        address = counted_address(django_request(request))
        return Limit("images", address, settings.IMAGES_PER_MINUTE, 60)

    def get(self, request: Request, name: str) -> HttpResponse:
        image = require_image(image_at(name))
        tag = f'"{image.name}"'
        if tag in request.headers.get("If-None-Match", ""):
            response = HttpResponse(status=304)
        else:
            response = HttpResponse(content_of(image), content_type=image.content_type)
        response["ETag"] = tag
        response["Cache-Control"] = _FOREVER
        # Pages with COEP load only files with this header.
        response["Cross-Origin-Resource-Policy"] = "cross-origin"
        return response
