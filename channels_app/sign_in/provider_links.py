"""Which user somebody at the sign-in provider is.

The first sign-in finds the users by the e-mail address that the provider verified. If there are
several, the person chooses one. Otherwise an owner, who chooses the addresses of new users, could
keep a person out of another owner's account. The complete sign-in, with the second step here,
stores the link (allauth's SocialAccount). From then on only the link counts, so that another person
who later gets the address from the provider cannot sign in with it. No user is created: members
must be invited.

A user with somebody's address may have been made by an owner to whom this person is a stranger. So
when a user with the address was made after the link, the person chooses again, and the link moves.
"""

import time
from typing import Any, Final

from allauth.account.stages import LoginStage
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.crypto import get_random_string
from typing_extensions import override

from channels_app import audit
from channels_app.sign_in import two_step
from channels_app.sign_in.addresses import users_with
from channels_app.sign_in.provider import Provider, failed, refuse
from channels_app.sign_in.provider_http import ProviderSession
from channels_app.sign_in.sessions import sessions_end
from pushsvc.common.texts import later

_VOUCHES: Final = "provider_vouches"
_ENTERED_AT: Final = "provider_entered_at"
_CHOOSING: Final = "provider_users"
_STEP_SECONDS: Final = 300  # for the choice
_DEACTIVATED: Final = later("Your user of this service is deactivated.")
_NO_ADDRESS: Final = later("It did not confirm an e-mail address of yours.")
_UNKNOWN: Final = later(
    "No user of this service has your e-mail address. Ask an owner to invite you with it."
)
_TAKEN: Final = later(
    "The user who has your e-mail address signs in as somebody else there. Ask a superuser."
)


class NobodyFound(Exception):
    """No user for the person. `reason`: a text for the person who wanted to sign in."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class SocialAdapter(DefaultSocialAccountAdapter):
    @override
    def get_provider(self, request: HttpRequest, provider: str, client_id: Any = None) -> Provider:
        return Provider(request)

    @override
    def get_requests_session(self) -> ProviderSession:
        return ProviderSession()

    @override
    def generate_state_param(self, state: dict[str, Any]) -> str:
        return get_random_string(32)

    @override
    def on_authentication_error(
        self, request: HttpRequest, provider: Any, exception: Any = None, **options: Any
    ) -> None:
        refuse(request, exception)

    @override
    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Finds the user. Raises ImmediateHttpResponse with a page for the choice or an error."""
        if "is_proof" in sociallogin.state and _is_old(_entered_at(sociallogin)):
            refuse(request, None)
        try:
            users = users_of(sociallogin.account)
        except NobodyFound as error:
            raise ImmediateHttpResponse(failed(request, error.reason)) from error
        if "chosen" in sociallogin.state:
            users = [user for user in users if str(user.pk) == sociallogin.state["chosen"]]
        if len(users) != 1:
            request.session[_CHOOSING] = {
                "identity": sociallogin.account.extra_data["id_token"],
                "next": sociallogin.state.get("next"),
                "until": time.time() + _STEP_SECONDS,
            }
            raise ImmediateHttpResponse(HttpResponseRedirect(reverse("provider_choice")))
        sociallogin.user = users[0]


class LinkStage(LoginStage):
    """The last stage of a sign-in by the provider: links user and person."""

    key = "link"

    @override
    def handle(self) -> tuple[HttpResponseBase | None, bool]:
        sign_in = (self.login.signal_kwargs or {}).get("sociallogin")
        if sign_in is None:
            return None, True
        need = two_step.need_of(self.login.user)
        is_proven = bool(need.steps) and need.is_met(self.request)
        try:
            link(user=self.login.user, account=sign_in.account, is_proven=is_proven)
        except NobodyFound as error:
            self.request.session.flush()
            return failed(self.request, error.reason), False
        self.login.user.refresh_from_db(fields=["password"])
        self.request.session.set_expiry(None)  # it may have been a visitor's
        self.request.session[_VOUCHES] = True
        self.request.session[_ENTERED_AT] = min(_entered_at(sign_in), time.time())
        return None, True


def is_linked(user: User) -> bool:
    """Whether somebody at the provider signs in as the user."""
    return bool(SocialAccount.objects.filter(user=user).exists())


def vouches(request: HttpRequest) -> bool:
    """Whether the session began with a sign-in by the provider."""
    return bool(request.session.get(_VOUCHES))


def first_step_needs_proof(request: HttpRequest) -> bool:
    """Whether the user, who has no second step, must prove themselves to set one up: not if they
    just gave their password, here or to the provider."""
    last = getattr(request.user, "last_login", None)
    signed_in_at = last.timestamp() if last else 0.0
    if vouches(request):
        signed_in_at = request.session.get(_ENTERED_AT, 0.0)
    return _is_old(signed_in_at)


def waiting_choice(request: HttpRequest) -> dict[str, Any] | None:
    """The sign-in that waits for the person's choice; None if it has expired."""
    waiting: dict[str, Any] | None = request.session.get(_CHOOSING)
    return waiting if waiting and waiting["until"] > time.time() else None


def forget_choice(request: HttpRequest) -> None:
    request.session.pop(_CHOOSING, None)


def users_of(person: SocialAccount) -> list[User]:
    """The user to whom the person is linked, with the users with the person's address who were made
    since, or else all users with that address; at least one. The person may sign in as any of them.
    Raises NobodyFound."""
    address = person.extra_data["id_token"].get("email", "")
    link = _links(person).first()
    if link is None:
        return _users_with(address)
    own = [link.user] if link.user.is_active and link.user.is_staff else []
    users = own + _made_since(link, address)
    if not users:
        raise NobodyFound(_DEACTIVATED)
    return users


@transaction.atomic
def link(*, user: User, account: SocialAccount, is_proven: bool) -> None:
    """Links the person to one of the `users_of` them, and to no other. Safe to repeat. Raises
    NobodyFound if the user is linked to another person.

    The first time, removes the password of a member who passed no second step now (`is_proven`),
    because whoever created the user may know the password.
    """
    user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    before = _links(account).first()
    if before is not None and before.user_id == user.pk:
        if _made_since(before, account.extra_data["id_token"].get("email", "")):
            _links(account).update(date_joined=Now())  # the person has chosen among them
        return
    if SocialAccount.objects.filter(user=user, provider=account.provider).exists():
        raise NobodyFound(_TAKEN)
    if before is not None:
        before.delete()
        note = f"The user no longer signs in by {account.provider}: the person chose {user}."
        audit.record(before.user, audit.Action.UPDATE, note=note, actor=user)
    row = {"provider": account.provider, "uid": account.uid, "extra_data": account.extra_data}
    try:
        with transaction.atomic():
            SocialAccount.objects.create(user=user, **row)
    except IntegrityError as error:
        raise NobodyFound(_TAKEN) from error
    note = f"The user can now sign in by {account.provider}."
    audit.record(user, audit.Action.UPDATE, note=note, actor=user)
    if user.has_usable_password() and not (is_proven or user.is_superuser):
        user.set_unusable_password()
        user.save(update_fields=["password"])
        note = "The password was removed at the first sign-in by the provider."
        audit.record(user, audit.Action.UPDATE, note=note, actor=user)


@transaction.atomic
def unlink(*, user: User) -> None:
    """Removes the link, so that the next sign-in with the provider finds the user by the e-mail
    address again. Ends the user's sessions, because the linked person may be another one. Safe to
    repeat."""
    deleted, _ = SocialAccount.objects.filter(user=user).delete()
    if deleted:
        sessions_end(user)
        note = "The link to the sign-in provider was removed."
        audit.record(user, audit.Action.UPDATE, note=note)


def _entered_at(sign_in: Any) -> float:
    """When the provider last authenticated the person, in seconds since the epoch; 0 if unknown.
    If the provider was asked to do so again and states no time, this is now."""
    unknown = time.time() if "is_proof" in sign_in.state else 0.0
    at: float = sign_in.account.extra_data["id_token"].get("auth_time", unknown)
    return at


def _is_old(moment: float) -> bool:
    return moment < time.time() - settings.ACCOUNT_REAUTHENTICATION_TIMEOUT


def _links(person: SocialAccount) -> Any:
    links = SocialAccount.objects.filter(provider=person.provider, uid=person.uid)
    return links.select_related("user")


def _made_since(link: SocialAccount, address: str) -> list[User]:
    users = users_with(address) if address else []
    return [each for each in users if each.date_joined > link.date_joined]


def _users_with(address: str) -> list[User]:
    if not (address and address.isprintable()):
        raise NobodyFound(_NO_ADDRESS)
    users = users_with(address)
    if not users:
        raise NobodyFound(_UNKNOWN)
    return users
