"""Checks who signs in: the address's limit, then the lock-out, then password and code.

Every check of a password or of a code goes through `django.contrib.auth.authenticate`, so that it
counts towards the limit of the address (SIGN_INS_PER_MINUTE) and towards the lock-out. django-axes
counts failures by user name and address, whether or not the user exists. Before a password is
hashed, the process limits how many it hashes at once (channels_app/sign_in/hashing.py).
"""

from typing import Any

from allauth.mfa.base.forms import AuthenticateForm
from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from typing_extensions import override

from channels_app.sign_in import two_step
from channels_app.sign_in.hashing import hashing_for
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.ratelimit import Limit, enforce


class AddressLimit:
    """The first backend. It refuses an address that made too many attempts, successful or not."""

    def authenticate(self, request: HttpRequest | None, **_credentials: Any) -> None:
        """Raises TooManyRequests."""
        if request is not None:
            count_attempt(request)


class StaffBackend(ModelBackend):
    """Users are staff. The response does not say whether the password or the code was wrong."""

    @override
    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        code: str = "",
        known: User | None = None,
        **kwargs: Any,
    ) -> User | None:
        """Needs the code if the user has a second step. `known`: a user who has proved who they are
        in another way, and only needs the code."""
        user: Any = known
        if user is None:
            with hashing_for(counted_address(request) if request else ""):
                user = super().authenticate(request, username=username, password=password, **kwargs)
        if user is None or not (known or two_step.is_on(user)):
            return user
        step = AuthenticateForm({"code": code}, user=user)
        if not step.is_valid():
            return None
        user.passed_step = step
        return user

    @override
    def user_can_authenticate(self, user: User | AnonymousUser | None) -> bool:
        """Whether the user may sign in. Django also checks this at each request, so deactivating a
        user takes effect at once."""
        return super().user_can_authenticate(user) and bool(getattr(user, "is_staff", False))


def count_attempt(request: HttpRequest) -> None:
    """Counts an attempt to sign in from the request's address. Raises TooManyRequests."""
    enforce(Limit("sign-ins", counted_address(request), settings.SIGN_INS_PER_MINUTE, 60))


def proven(request: HttpRequest, user: User, code: str, password: str | None = None) -> Any:
    """The user if password and code are right, or the code alone without a password. None if not;
    that counts towards the lock-out. A passed second step is in `passed_step`."""
    given: dict[str, Any] = {"known": user} if password is None else {"password": password}
    return authenticate(request, username=user.get_username(), code=code, **given)
