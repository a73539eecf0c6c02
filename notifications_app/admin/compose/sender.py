"""What the pages for composing notifications and drafts share."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.urls import reverse
from typing_extensions import override

from channels_app.console.access import channels_of, may
from channels_app.console.pages import (
    ConsolePage,
    channel_or_404,
    id_or_404,
    require,
    require_kept,
)
from channels_app.models import Channel, Role
from notifications_app.admin.compose.form import ComposeForm
from notifications_app.models import Draft
from notifications_app.sends.drafts import DraftGone, draft_create, draft_save
from pushsvc.common.ids import parse_number


class WriterPage(ConsolePage):
    """A page for writers about the channel that the query or the form names."""

    role = Role.WRITER
    channel: Channel | None = None

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        super().check_access(request, **kwargs)
        self.channel = self.find_channel(request)
        if self.channel is not None:
            require_kept(self.channel)
            require(may(request.user, self.channel.account_id, self.role), self.role)

    def find_channel(self, request: HttpRequest) -> Channel | None:
        named = request.POST.get("channel") or request.GET.get("channel")
        return channel_or_404(request, id_or_404(named)) if named else None

    @property
    def chosen(self) -> Channel:
        if self.channel is None:
            raise Http404
        return self.channel


def named_drafts(request: HttpRequest) -> QuerySet[Draft] | None:
    """The draft that the posted form or the query names, if it exists and the user may write in its
    channel. None if no draft is named."""
    named = (request.POST if request.method == "POST" else request.GET).get("draft")
    if not named:
        return None
    writable = Draft.objects.filter(channel__in=channels_of(request.user, Role.WRITER))
    return writable.filter(pk=id_or_404(named))


def find_draft(request: HttpRequest) -> Draft | None:
    """The draft of `named_drafts`, if there is one."""
    named = named_drafts(request)
    if named is None:
        return None
    return named.select_related("channel", "owner", "changed_by").first()


def save_draft(request: HttpRequest, *, channel: Channel, form: ComposeForm) -> Draft:
    """Saves the form as the draft that the request names, or as a new draft. Raises what
    `draft_save` and `draft_create` raise."""
    user, stored = cast(User, request.user), form.stored()
    if not request.POST.get("draft"):
        return draft_create(channel=channel, owner=user, form=stored)
    draft = find_draft(request)
    if draft is None:
        raise DraftGone
    return draft_save(
        draft_id=draft.pk, version=seen_version(request), channel=channel, user=user, form=stored
    )


def compose_url(draft_id: object) -> str:
    """The address at which the draft is edited."""
    return f"{reverse('admin:notification_compose')}?draft={draft_id}"


def approval_url(draft: Draft) -> str:
    """The address at which its approval is decided."""
    return reverse("admin:draft_approval", args=[draft.channel_id, draft.pk])


def seen_version(request: HttpRequest) -> int:
    """The version of the draft that the user saw, from the form."""
    try:
        return parse_number(request.POST.get("version", ""))
    except ValueError:
        return 0  # no draft has this version
