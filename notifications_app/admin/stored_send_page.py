"""The pages of a send that is stored, and sent when its time comes: its form, and its switch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.pages import ActsPage, ChannelPage, own_or_404
from channels_app.models import Channel, Role
from notifications_app.admin.compose.audience import AUDIENCES, RULE, TAG
from notifications_app.admin.compose.errors import FIELDS, field_of
from notifications_app.admin.compose.form import ComposeForm, is_edited
from notifications_app.admin.compose.template_form import form_of
from notifications_app.admin.compose.writing import content_and_audience_context
from notifications_app.admin.schedule_form import read_send_of, send_form, split_errors
from notifications_app.content.values import SendRequest
from notifications_app.models import (
    MAX_REPEATED_NAME,
    Automation,
    Newsfeed,
    Schedule,
    Template,
)
from notifications_app.sends.stored_sends import loaded
from notifications_app.sends.templates import template_find, template_names
from pushsvc.common.errors import Conflict, FieldError, Invalid, Outdated, PushsvcError
from pushsvc.common.ids import parse_uuid

_NO_TARGETS = [(name, AUDIENCES[name]) for name in ("", TAG, RULE)]


def state_of(row: Schedule | Automation | Newsfeed) -> tuple[str, str]:
    """The state in a word, and the tone of its badge."""
    if row.disabled_code:
        return gettext("disabled: %(code)s") % {"code": row.disabled_code}, "bad"
    return (gettext("on"), "good") if row.is_enabled else (gettext("off"), "")


class _OfModel(ChannelPage):
    """A page about stored sends. Its addresses and arguments are named after the model."""

    model: ClassVar[Any]

    @property
    def noun(self) -> str:
        return str(self.model._meta.model_name)

    @property
    def list_url(self) -> str:
        return reverse(f"admin:channel_{self.noun}s", args=[self.channel.pk])


class StoredSendPage(_OfModel):
    """The form with name, content, audience, and a part of the page's own: when it is sent. The
    step `edit` shows the form again as it was posted."""

    post_role = Role.SENDER
    has_test: ClassVar[bool] = True  # whether its sends may test variants
    own_words: ClassVar[Mapping[tuple[str, str], str]]  # for errors of the own part
    own_attrs: ClassVar[frozenset[str]]  # begin the paths of these errors

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        form, own = ComposeForm.posted(request.POST), self.posted(request.POST)
        name = request.POST.get("name", "")
        if is_edited(request.POST):
            return self.shown(name, form, own)
        try:
            saved = self.save(self._given(name, form, own))
        except Invalid as error:
            return self.shown(name, form, own, error.errors)
        except PushsvcError as error:
            return self.shown(name, form, own, [FieldError("", error.code, error.detail)])
        words, address = self.said(saved)
        messages.success(request, words)
        return HttpResponseRedirect(address)

    def _given(self, name: str, form: ComposeForm, own: Any) -> dict[str, Any]:
        """The arguments of the service. Raises Invalid with the errors of all parts."""
        found: list[FieldError] = []
        given: dict[str, Any] = {"name": name}
        readers: dict[str, Callable[[], Any]] = {
            "send": lambda: replace(self.read_send(form), template_id=self.template_id())
        }
        for part, read in (readers | self.readers(own)).items():
            try:
                given[part] = read()
            except Invalid as error:
                found += error.errors
        if found:
            raise Invalid(found)
        return given

    def read_send(self, form: ComposeForm) -> SendRequest:
        """Raises Invalid."""
        return read_send_of(form)

    def template_id(self) -> UUID | None:
        """Of the template from which the content was copied."""
        raise NotImplementedError

    def posted(self, post: QueryDict) -> Any:
        """The own part as text."""
        raise NotImplementedError

    def readers(self, own: Any) -> dict[str, Callable[[], Any]]:
        """What reads the own part, by the argument of the service. They raise Invalid."""
        raise NotImplementedError

    def own_context(self, own: Any, errors: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """The context of the template for the own part. `errors`: by field."""
        raise NotImplementedError

    def save(self, given: Mapping[str, Any]) -> Any:
        """Returns the row. Raises what the service raises."""
        raise NotImplementedError

    def said(self, saved: Any) -> tuple[str, str]:
        """The message after saving, and the address of the row's page."""
        raise NotImplementedError

    def shown(
        self, name: str, form: ComposeForm, own: Any, errors: Sequence[FieldError] = ()
    ) -> HttpResponse:
        of_name = [each.detail for each in errors if each.attr == "name"]
        others = [each for each in errors if each.attr != "name"]
        rest, of_own = split_errors(others, self.own_attrs, self.own_words)
        context = self.get_context_data(
            name=name,
            name_errors=of_name,
            most_characters=MAX_REPEATED_NAME,
            has_errors=bool(errors),
            has_field_errors=bool(of_name or of_own)
            or any(field_of(each) in FIELDS for each in rest),
            may_send=self.may(Role.SENDER),
            has_test=self.has_test,
            **self.own_context(own, of_own),
            **content_and_audience_context(self.channel, form, rest, self.request)
            | {"audiences": _NO_TARGETS, "no_targets": True},
        )
        return self.render_to_response(context, status=400 if errors else 200)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        # The breadcrumbs lead to the channels, as on the channel's tabs.
        own = {"opts": Channel._meta, "list_name": "", "noun": self.noun, "list_url": self.list_url}
        return super().get_context_data(**kwargs) | own


class NewSendPage(StoredSendPage):
    """The form of a new stored send. GET may name a `template` whose content it begins with."""

    role = Role.SENDER
    create: ClassVar[Callable[..., Any]]

    def first_own(self) -> Any:
        """The own part that the form begins with, as text."""
        raise NotImplementedError

    def first_form(self) -> ComposeForm:
        """The form without a template."""
        return ComposeForm()

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        template = self._template()
        form = form_of(template.content) if template else self.first_form()
        return self.shown("", form.for_all(self.channel), self.first_own())

    @override
    def template_id(self) -> UUID | None:
        template = self._template()
        return template.pk if template else None

    def _template(self) -> Template | None:
        """The one that was chosen, unless it was deleted meanwhile."""
        chosen = self.request.GET.get("template", "")
        try:
            template_id = parse_uuid(chosen)
        except ValueError:
            return None
        return template_find(channel_id=self.channel.pk, template_id=template_id)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        own = {"templates": template_names(self.channel.pk), "template_id": self.template_id()}
        return super().get_context_data(**kwargs) | own

    @override
    def save(self, given: Mapping[str, Any]) -> Any:
        return self.create(channel=self.channel, **given)


class StoredPage(_OfModel):
    """A page about a stored send, `self.row`."""

    row: Any

    @override
    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        self.row = own_or_404(self.model, request, kwargs[f"{self.noun}_id"])
        channel: Channel = self.row.channel
        return channel

    def url_of(self, page: str) -> str:
        return reverse(f"admin:{self.noun}_{page}", args=[self.row.pk])

    @property
    def named(self) -> dict[str, Any]:
        """The arguments by which services find the row."""
        return {"channel_id": self.channel.pk, f"{self.noun}_id": self.row.pk}


class StoredFormPage(StoredPage, StoredSendPage):
    """The form of a stored send that exists. It is saved only if it is as the user saw it."""

    update: ClassVar[Callable[..., Any]]
    version: str  # the one that the user saw

    def own_of(self) -> Any:
        """The own part of the row as text."""
        raise NotImplementedError

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        self.version = self.row.version
        return self.shown(self.row.name, send_form(self.channel, self.row.send), self.own_of())

    @override
    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        self.version = request.POST.get("version", "")
        return super().post(request, **kwargs)

    @override
    def template_id(self) -> UUID | None:
        return loaded(self.row.send).template_id

    @override
    def save(self, given: Mapping[str, Any]) -> Any:
        # What staff turned off stays off.
        enabled = self.row.is_enabled or bool(self.row.disabled_code)
        try:
            return self.update(**self.named, **given, enabled=enabled, seen=self.version)
        except Outdated:
            self.row = own_or_404(self.model, self.request, self.row.pk)
            self.version = self.row.version
            raise

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        own = {"row": self.row, "title": self.row.name, "version": self.version}
        urls = {"edit_url": self.url_of("edit"), "act_url": self.url_of("act")}
        return super().get_context_data(**kwargs) | own | urls


class StoredActs(StoredPage, ActsPage):
    """Turns a stored send on or off, or deletes it.

    As on a notification's page, what sends nothing never depends on what the page showed. What
    sends something is done only if the page showed the row as it is.
    """

    role = Role.SENDER
    http_method_names = ["post"]
    switch: ClassVar[Callable[..., Any]]
    delete_row: ClassVar[Callable[..., None]]
    is_on: ClassVar[str]
    is_off: ClassVar[str]
    was_deleted: ClassVar[str]  # with the model's name as the placeholder of the row's

    def still_off(self) -> str:
        """Why it was not turned on, if it was changed meanwhile."""
        raise NotImplementedError

    @override
    def own_url(self) -> str:
        return self.url_of("edit")

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {"on": self._on, "off": self._off, "delete": self._delete}

    def _on(self, post: QueryDict) -> HttpResponseBase:
        try:
            self.switch(**self.named, on=True, seen=post.get("version", ""))
        except Outdated as error:
            raise Conflict(self.still_off()) from error
        return self.back(self.is_on)

    def _off(self, _: QueryDict) -> HttpResponseBase:
        self.switch(**self.named, on=False)
        return self.back(self.is_off)

    def _delete(self, _: QueryDict) -> HttpResponseBase:
        self.delete_row(**self.named)
        messages.success(self.request, str(self.was_deleted) % {self.noun: self.row})
        return HttpResponseRedirect(self.list_url)
