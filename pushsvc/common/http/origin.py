"""The address at which clients reach this service."""

from django.conf import settings
from django.http import HttpRequest


def own_origin(request: HttpRequest) -> str:
    """PUBLIC_BASE_URL, or the origin of this request if it is unset; without a slash at the end."""
    return settings.PUBLIC_BASE_URL or f"{request.scheme}://{request.get_host()}"
