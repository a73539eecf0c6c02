"""The address at which outsiders reach this service."""

from django.conf import settings
from django.http import HttpRequest


def own_origin(request: HttpRequest) -> str:
    """PUBLIC_BASE_URL; where it is unset, as this request came. Without a slash at the end."""
    return settings.PUBLIC_BASE_URL or f"{request.scheme}://{request.get_host()}"
