"""Routes that match with and without a slash at the end, without a redirect."""

from typing import Any

from django.urls import URLPattern, register_converter
from django.urls.resolvers import RoutePattern
from rest_framework.views import APIView
from typing_extensions import override

from pushsvc.common.ids import TagConverter, UUIDConverter

register_converter(UUIDConverter, "id")
register_converter(TagConverter, "tag")


class _EitherSpelling(RoutePattern):
    @override
    def match(self, path: str) -> Any:
        return super().match(path.removesuffix("/"))


def endpoint(route: str, view: type[APIView]) -> URLPattern:
    """A pattern for a view. `route`: in Django's notation, without slashes around it; `<id:name>`
    is a UUID, `<tag:name>` a tag."""
    return URLPattern(_EitherSpelling(route, is_endpoint=True), view.as_view())
