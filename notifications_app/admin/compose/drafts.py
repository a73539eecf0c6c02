"""The list of drafts, and the actions that save, create and delete them."""

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.lists import ChannelFilter, ScopedAdmin
from channels_app.console.pages import id_or_404, own_or_404
from channels_app.models import Role
from notifications_app.admin.compose.approval import ApprovalPage
from notifications_app.admin.compose.form import ComposeForm
from notifications_app.admin.compose.sender import (
    WriterPage,
    approval_url,
    compose_url,
    find_draft,
    save_draft,
    seen_version,
)
from notifications_app.models import Draft
from notifications_app.sends.drafts import DraftGone, draft_delete
from pushsvc.common.console.admin import DropdownFilter, badge
from pushsvc.common.console.figures import NOTHING, moment
from pushsvc.common.errors import Conflict, PushsvcError
from pushsvc.common.texts import later


class ApprovalFilter(DropdownFilter):
    title = later("approval")
    parameter_name = "approval"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("waiting", gettext("Waiting for approval")), ("returned", gettext("Returned"))]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "waiting":
                return queryset.filter(asked_at__isnull=False)
            case "returned":
                return queryset.filter(returned_by__isnull=False)
        return queryset


@admin.register(Draft)
class DraftAdmin(ScopedAdmin):
    """A draft is edited on the compose page."""

    view_role = compose_role = Role.WRITER
    change_list_template = "console/notifications/list.html"
    list_before_template = "console/notifications/tabs.html"
    empty_help = later("What you write under “New notification” is saved here until you send it.")
    list_display = ("message", "state", "channel", "owner", "changed")
    list_filter = (ChannelFilter, ApprovalFilter)
    list_select_related = ("channel", "owner", "changed_by", "asked_by", "returned_by")
    search_fields = ("form__name", "form__title", "form__body")
    search_help_text = later("Words of the name, title or text")
    ordering = ("-changed_at", "-id")
    sortable_by = ()

    @admin.display(description=later("Draft"))
    def message(self, draft: Draft) -> str:
        return str(draft)

    @admin.display(description=later("Approval"))
    def state(self, draft: Draft) -> str:
        if draft.is_waiting:
            asked_by = gettext("asked by %(user)s") % {"user": draft.asked_by}
            return format_html("{} {}", badge(gettext("waits"), "warn"), asked_by)
        if draft.returned_by:
            returned_by = gettext("by %(user)s") % {"user": draft.returned_by}
            return format_html("{} {}", badge(gettext("returned"), "bad"), returned_by)
        return NOTHING

    @admin.display(description=later("Last change"))
    def changed(self, draft: Draft) -> str:
        return moment(draft.changed_at)

    @override
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        more = {"may_write": True, "tab": "drafts"}
        return super().changelist_view(request, {**(extra_context or {}), **more})

    @override
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Redirects to the page of the approval, or to the compose page."""
        draft = own_or_404(Draft, request, id_or_404(object_id))
        if draft.is_waiting:
            return HttpResponseRedirect(approval_url(draft))
        return HttpResponseRedirect(compose_url(draft.pk))

    @override
    def get_urls(self) -> list[URLPattern]:
        own = [
            self.page(
                "approval/<uuid:channel_id>/<uuid:draft_id>/", ApprovalPage, "draft_approval"
            ),
            self.page("save/", SaveAction, "draft_save"),
            self.page("delete/", DeleteAction, "draft_delete"),
        ]
        return own + super().get_urls()


class SaveAction(WriterPage):
    """Saves the form as the draft that it names, or as a new draft."""

    title = later("Save")
    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> HttpResponse:
        try:
            form = ComposeForm.posted(request.POST)
            draft = save_draft(request, channel=self.chosen, form=form)
        except PushsvcError as error:
            return JsonResponse({"detail": error.detail}, status=error.status)
        return JsonResponse({"draft": draft.pk, "version": draft.version})


class DeleteAction(WriterPage):
    title = later("Delete")
    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> HttpResponse:
        draft = find_draft(request)
        if draft is None:
            raise Http404
        try:
            draft_delete(
                draft_id=draft.pk, version=seen_version(request), user=cast(User, request.user)
            )
        except Conflict:
            words = gettext(
                "It was not deleted, because %(changed_by)s has changed it. Check it first."
            ) % {"changed_by": draft.changed_by}
            messages.warning(request, words)
            return HttpResponseRedirect(compose_url(draft.pk))
        except DraftGone as error:
            raise Http404 from error
        messages.success(request, gettext("The draft “%(draft)s” was deleted.") % {"draft": draft})
        return HttpResponseRedirect(reverse("admin:notifications_app_draft_changelist"))
