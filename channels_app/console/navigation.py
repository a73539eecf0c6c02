"""Which links the side bar shows to a user (pushsvc/common/console/theme.py names these)."""

from django.http import HttpRequest

from channels_app.console.access import is_superuser, may_anywhere
from channels_app.models import Role


def shows_accounts(request: HttpRequest) -> bool:
    return may_anywhere(request.user, Role.OWNER)


def shows_channels(request: HttpRequest) -> bool:
    return may_anywhere(request.user, Role.VIEWER)


def shows_installation(request: HttpRequest) -> bool:
    return is_superuser(request.user)
