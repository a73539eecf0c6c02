"""A channel's templates: the list, the form of a template, and actions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, QueryDict
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.console.pages import ChannelPage, id_or_404, own_or_404
from channels_app.models import Channel, Role
from notifications_app.admin.compose.errors import FIELDS, errors_by_field, field_of, general
from notifications_app.admin.compose.form import ComposeForm, is_edited
from notifications_app.admin.compose.personal import personal_preview
from notifications_app.admin.compose.sender import compose_url
from notifications_app.admin.compose.template_form import content_of, form_of, read_template
from notifications_app.admin.compose.writing import content_context
from notifications_app.content.values import SendRequest
from notifications_app.errors import TemplateNameTaken
from notifications_app.models import MAX_TEMPLATE_NAME, Notification, Template
from notifications_app.sends.drafts import draft_create
from notifications_app.sends.templates import (
    template_create,
    template_delete,
    template_page,
    template_update,
)
from pushsvc.common.errors import FieldError, Invalid, Outdated, PushsvcError
from pushsvc.common.ids import parse_number
from pushsvc.common.texts import later
from subscriptions_app.audiences.sizes import attribute_names

_SHOWN: Final = 50


class TemplatesPage(TabPage):
    """The templates with `q` in their name. `page` counts from 1."""

    title = later("Templates")
    template_name = "console/channels/templates.html"
    tab = "channel_templates"
    http_method_names = ["get", "head"]

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        words, page = self.request.GET.get("q", "").strip(), _page(self.request.GET)
        found = template_page(
            channel_id=self.channel.pk,
            limit=_SHOWN + 1,
            offset=(page - 1) * _SHOWN,
            words=words.replace("\x00", ""),
        )
        return super().get_context_data(
            listed=found[:_SHOWN],
            words=words,
            previous_page=page - 1,
            next_page=page + 1 if len(found) > _SHOWN else None,
            may_edit=self.may(Role.EDITOR),
            **kwargs,
        )


class _WritingPage(ChannelPage):
    """The form with name and content. The step `edit` shows the form again as it was posted."""

    template_name = "console/notifications/template.html"
    post_role = Role.EDITOR

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        form = ComposeForm.posted(request.POST)
        name = request.POST.get("name", form.title)  # the compose page has no name
        if is_edited(request.POST):
            return self.shown(name, form)
        try:
            template = self.save(name, read_template(form))
        except Invalid as error:
            return self.shown(name, form, error.errors)
        except TemplateNameTaken as error:
            return self.shown(name, form, [FieldError("name", error.code, error.detail)])
        except PushsvcError as error:
            return self.shown(name, form, [FieldError("", error.code, error.detail)])
        messages.success(
            request, gettext("The template “%(template)s” was saved.") % {"template": template}
        )
        return HttpResponseRedirect(reverse("admin:template_edit", args=[template.pk]))

    def save(self, name: str, content: Mapping[str, Any]) -> Template:
        """Raises what the service raises."""
        raise NotImplementedError

    def shown(
        self, name: str, form: ComposeForm, errors: Sequence[FieldError] = ()
    ) -> HttpResponse:
        of_name = [each for each in errors if field_of(each) == "name"]
        elsewhere = general(each for each in errors if each not in of_name)
        names = (each.name for each in attribute_names(self.channel.pk))
        context = self.get_context_data(
            name=name,
            name_errors=[each.detail for each in of_name],
            has_field_errors=any(field_of(each) in {*FIELDS, "name"} for each in errors),
            is_template=True,
            may_edit=self.may(Role.EDITOR),
            may_manage=self.may(Role.MANAGER),
            may_write=self.may(Role.WRITER),
            most_characters=MAX_TEMPLATE_NAME,
            **content_context(self.channel, form, errors, self.request, attributes=names)
            | {"general_errors": elsewhere},
        )
        return self.render_to_response(context, status=400 if errors else 200)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        # The breadcrumbs lead to the channels, as on the channel's tabs.
        return super().get_context_data(**kwargs) | {"opts": Channel._meta, "list_name": ""}


class NewTemplatePage(_WritingPage):
    """GET may name a `notification` whose content the form begins with."""

    title = later("New template")
    role = Role.EDITOR

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        named = request.GET.get("notification")
        if not named:
            return self.shown("", ComposeForm())
        notification = own_or_404(Notification, request, id_or_404(named))
        return self.shown(notification.title, ComposeForm.saying(notification.content))

    @override
    def save(self, name: str, content: Mapping[str, Any]) -> Template:
        return template_create(channel=self.channel, name=name, content=content)


class _OfTemplate(ChannelPage):
    """A page about one template, which is `self.template`."""

    template: Template

    @override
    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        self.template = own_or_404(Template, request, kwargs["template_id"])
        return self.template.channel

    @property
    def named(self) -> dict[str, Any]:
        return {"channel_id": self.channel.pk, "template_id": self.template.pk}


class TemplatePage(_OfTemplate, _WritingPage):
    title = later("Template")
    version: str  # the one that the user saw

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        self.version = self.template.version
        return self.shown(self.template.name, form_of(self.template.content))

    @override
    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        self.version = request.POST.get("version", "")
        return super().post(request, **kwargs)

    @override
    def save(self, name: str, content: Mapping[str, Any]) -> Template:
        try:
            return template_update(**self.named, name=name, content=content, seen=self.version)
        except Outdated:
            self.template = own_or_404(Template, self.request, self.template.pk)
            self.version = self.template.version
            raise

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        own = {
            "template": self.template,
            "title": self.template.name,
            "version": self.version,
        }
        return super().get_context_data(**kwargs) | own


class UseAction(_OfTemplate):
    """Creates a draft with the template's content, for every platform of the channel."""

    title = later("Use")
    role = Role.WRITER
    http_method_names = ["post"]

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        form = form_of(self.template.content).for_all(self.channel)
        user = cast(User, request.user)
        try:
            draft = draft_create(channel=self.channel, owner=user, form=form.stored())
        except PushsvcError as error:
            messages.error(request, error.detail)
            return HttpResponseRedirect(reverse("admin:template_edit", args=[self.template.pk]))
        messages.success(
            request,
            gettext("This draft has the content of “%(template)s”.") % {"template": self.template},
        )
        return HttpResponseRedirect(compose_url(draft.pk))


class RemoveAction(_OfTemplate):
    title = later("Delete")
    role = Role.MANAGER
    http_method_names = ["post"]

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        template_delete(**self.named)
        messages.success(
            request,
            gettext("The template “%(template)s” was deleted.") % {"template": self.template},
        )
        return HttpResponseRedirect(reverse("admin:channel_templates", args=[self.channel.pk]))


class TemplateCheck(ChannelPage):
    """Returns the form's errors and the preview of personal texts while the user writes."""

    title = later("Check")
    role = Role.EDITOR
    http_method_names = ["post"]

    def post(self, request: HttpRequest, **kwargs: Any) -> JsonResponse:
        errors: Sequence[FieldError] = ()
        personal: Mapping[str, Any] | None = None
        try:
            content = content_of(read_template(ComposeForm.posted(request.POST)))
            to_all = SendRequest(content=content, target_platforms=())
            personal = personal_preview(self.channel, to_all, request.POST)
        except Invalid as error:
            errors = error.errors
        return JsonResponse(
            {"errors": errors_by_field(errors), "platforms": [], "personal": personal}
        )


def _page(query: QueryDict) -> int:
    try:
        return min(max(parse_number(query.get("page", "1")), 1), 1_000)
    except ValueError:
        return 1
