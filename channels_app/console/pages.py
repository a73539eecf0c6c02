"""What the console's pages share. No page shows or changes channels of another account."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.views.generic import TemplateView
from typing_extensions import override

from channels_app.console.access import channels_of, is_superuser, may, may_anywhere
from channels_app.models import Channel, Role
from channels_app.selectors import ChannelDeleted
from pushsvc.common.console.admin import ModelAdmin, site
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.errors import Conflict, Invalid, NotFound
from pushsvc.common.ids import parse_number, parse_uuid
from pushsvc.common.texts import later

Row = TypeVar("Row", bound=Model)


class ConsolePage(TemplateView):
    """A page for users who have `role` in some account."""

    title: ClassVar[str]
    role: ClassVar[Role] = Role.VIEWER
    model_admin: Any = None

    @override
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.check_access(request, **kwargs)
        try:
            return super().dispatch(request, *args, **kwargs)
        except NotFound as error:  # the row was deleted after `check_access` found it
            raise Http404 from error

    @property
    def staff(self) -> User:
        """The signed-in user."""
        return self.request.user  # type: ignore[return-value] # the site admits no others

    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        """Raises PermissionDenied, or Http404 if the user may not learn that the row exists."""
        require(may_anywhere(request.user, self.role), self.role)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = site.each_context(self.request) | {"title": self.title, "has_heading": True}
        if self.model_admin is not None:
            context["opts"] = self.model_admin.model._meta
            context["list_name"] = self.model_admin.list_name
        return context | super().get_context_data(**kwargs)

    def shown_once(self, **context: Any) -> HttpResponseBase:
        """The page with a secret, in this response only: a redirect would have to store it."""
        response = self.render_to_response(self.get_context_data(**context))
        response.headers["Cache-Control"] = "no-store"
        return response

    def conflicting(self, **context: Any) -> HttpResponseBase:
        """The page again with status 409, for a form with values that somebody else changed."""
        return self.render_to_response(self.get_context_data(**context), status=409)

    def refused(self, **context: Any) -> HttpResponseBase:
        """The page again with status 400, for a form with errors."""
        return self.render_to_response(self.get_context_data(**context), status=400)


class FormPage(ConsolePage):
    """A page with one form. The form shows what `accept` raises as Invalid or Conflict.

    `submit`: the text of the form's button.
    """

    template_name = "console/parts/form_page.html"
    form_class: ClassVar[type[ConsoleForm]]
    submit: ClassVar[str] = later("Save")

    def make_form(self, data: QueryDict | None = None) -> ConsoleForm:
        return self.form_class(data)

    def accept(self, form: Any) -> HttpResponseBase:
        """Handles the valid form. May raise Invalid and Conflict."""
        raise NotImplementedError

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        form = self.make_form(request.POST)
        if form.is_valid():
            with form.showing_errors():
                return self.accept(form)
        return self.refused(form=form)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("form", self.make_form())
        return super().get_context_data(submit=self.submit, **kwargs)


class ActsPage(ConsolePage):
    """A page with several forms. Each is a POST whose field `do` names one of `acts`."""

    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        """The functions by their names. They may raise Invalid and Conflict, which the page
        shows as a message."""
        raise NotImplementedError

    def own_url(self) -> str:
        raise NotImplementedError

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        act = self.acts().get(request.POST.get("do", ""))
        if act is None:
            raise BadRequest("The form does not name an action.")
        try:
            return act(request.POST)
        except Invalid as error:
            detail = " ".join(str(each.detail) for each in error.errors)
        except Conflict as error:
            detail = error.detail
        messages.error(request, detail)
        return HttpResponseRedirect(self.own_url())

    def back(self, message: str) -> HttpResponseBase:
        """Redirects to this page, which then shows the message."""
        messages.success(self.request, message)
        return HttpResponseRedirect(self.own_url())


class SuperuserPage(ConsolePage):
    """A page about the installation as a whole."""

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        if not is_superuser(request.user):
            raise PermissionDenied(gettext("Only superusers may open this page."))


class ChannelPage(ConsolePage):
    """A page about a channel, or about a row of a channel. `self.channel` is that channel.

    The response is 404 for a channel that does not exist or that the user may not see. GET requires
    `role`; POST requires `post_role` if it is set. A channel that is being deleted can only be
    seen, except on a page that `changes_deleted` channels.
    """

    post_role: ClassVar[Role | None] = None
    changes_deleted: ClassVar[bool] = False
    channel: Channel

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        self.channel = self.find_channel(request, **kwargs)
        role = (self.post_role if request.method == "POST" else None) or self.role
        if request.method == "POST" or role != Role.VIEWER:
            self._refuse_deleted()
        require(may(request.user, self.channel.account_id, role), role)

    def _refuse_deleted(self) -> None:
        if not self.changes_deleted:
            require_kept(self.channel)

    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        """The channel that the page's address names. Raises Http404."""
        return channel_or_404(request, kwargs["channel_id"])

    def may(self, role: Role) -> bool:
        """Whether the user has `role` or more for this channel, and the channel is kept if that is
        needed."""
        if self.channel.is_to_be_deleted and role != Role.VIEWER:
            return False
        return may(self.request.user, self.channel.account_id, role)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(channel=self.channel, **kwargs)


def channel_or_404(request: HttpRequest, channel_id: UUID) -> Channel:
    """Returns the channel. Raises Http404 if the user may not see it."""
    seen = channels_of(request.user).select_related("account")
    return get_object_or_404(seen, pk=channel_id)


def own_or_404(model: type[Row], request: HttpRequest, pk: UUID) -> Row:
    """Returns a row of a model with a `channel`. Raises Http404 if the user may not see the
    channel."""
    seen = model._default_manager.filter(channel__in=channels_of(request.user))
    return get_object_or_404(seen.select_related("channel"), pk=pk)


def id_or_404(text: str) -> UUID:
    try:
        return parse_uuid(text)
    except ValueError as error:
        raise Http404 from error


def number_or_404(text: str) -> int:
    """Parses a numeric key of a row of Django or another package. Raises Http404."""
    try:
        return parse_number(text)
    except ValueError as error:
        raise Http404 from error


class WithPages(ModelAdmin):
    """A model's admin with custom pages.

    `new_page` and `row_page` replace the admin's forms; None keeps them. `row_page` gets the row's
    key under the name `row_name`.
    """

    new_page: ClassVar[type[ConsolePage] | None] = None
    row_page: ClassVar[type[ConsolePage] | None] = None
    row_name: ClassVar[str] = ""

    def page(self, route: str, view: type[ConsolePage], name: str) -> URLPattern:
        """The pattern of another page of the model, with the name `admin:{name}`."""
        return path(route, site.admin_view(view.as_view(model_admin=self)), name=name)

    def show(self, view: type[ConsolePage], request: HttpRequest, **ids: str) -> HttpResponse:
        """Shows the page instead of the admin's form. Raises Http404 for a malformed key."""
        parsed = {name: self.read_key(text) for name, text in ids.items()}
        return view.as_view(model_admin=self)(request, **parsed)

    def read_key(self, text: str) -> UUID | int:
        """Parses the key of a row in an address. Raises Http404."""
        return id_or_404(text)

    @override
    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if self.new_page is None:
            return super().add_view(request, form_url, extra_context)
        return self.show(self.new_page, request)

    @override
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if self.row_page is None:
            return super().change_view(request, object_id, form_url, extra_context)
        return self.show(self.row_page, request, **{self.row_name: object_id})


def require_kept(channel: Channel) -> None:
    """Raises PermissionDenied if the channel is being deleted."""
    if channel.is_to_be_deleted:
        raise PermissionDenied(ChannelDeleted.detail)


def require(is_allowed: bool, role: Role) -> None:
    """Raises PermissionDenied with the required role, unless `is_allowed`."""
    if not is_allowed:
        raise PermissionDenied(
            gettext(
                "You need the role “%(value)s” in the channel's account. Ask an owner of the "
                "account to change yours; the change takes effect immediately."
            )
            % {"value": role.value}
        )
