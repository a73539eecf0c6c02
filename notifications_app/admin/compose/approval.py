"""The page on which another person sends a draft, or returns it to who asked for approval."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.access import channels_of, may
from channels_app.console.lists import list_url
from channels_app.console.pages import ActsPage, ChannelPage, require
from channels_app.models import Channel, Role
from notifications_app.admin.compose.errors import labelled
from notifications_app.admin.compose.form import ComposeForm, read_form
from notifications_app.admin.compose.review import (
    ReviewOutdated,
    new_key,
    review_context,
    seen_of,
)
from notifications_app.admin.compose.sender import approval_url, compose_url, seen_version
from notifications_app.content.values import SendRequest
from notifications_app.errors import IdempotencyKeyInFlight
from notifications_app.models import Draft
from notifications_app.sends.approvals import (
    MOST_NOTE,
    NotWaiting,
    draft_approve,
    draft_return,
    draft_withdraw,
)
from notifications_app.sends.drafts import DraftGone
from notifications_app.sends.idempotency import checked_key, once
from pushsvc.common.errors import Invalid, PushsvcError
from pushsvc.common.texts import later
from subscriptions_app.segments.selectors import segment_find

_MOST_WAITING: Final = 5  # on the dashboard
_OUTDATED: Final = later(
    "Nothing was sent yet: the scheduled time passed, or the segment was changed. Check it again."
)


class ApprovalPage(ActsPage, ChannelPage):
    """The review of a draft that waits. Senders decide; who asked can withdraw.

    It shows and sends the stored draft. Approving it twice sends it once.
    """

    title = later("Approval")
    role = Role.WRITER
    template_name = "console/notifications/approval.html"
    draft: Draft | None = None

    @override
    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        channel = super().find_channel(request, **kwargs)
        own = Draft.objects.filter(channel=channel, pk=kwargs["draft_id"])
        self.draft = own.select_related("asked_by", "owner", "changed_by").first()
        return channel

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if self.draft is None:
            return self._left(DraftGone.detail)
        if not self.draft.is_waiting:
            messages.warning(request, gettext("It does not wait for approval."))
            return HttpResponseRedirect(compose_url(self.draft.pk))
        return super().get(request, *args, **kwargs)

    @override
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if self.draft is None and request.POST.get("do") != "approve":  # which may be repeated
            return self._left(DraftGone.detail)
        try:
            return super().post(request, *args, **kwargs)
        except ReviewOutdated:
            messages.warning(request, _OUTDATED)
        except IdempotencyKeyInFlight:
            messages.warning(request, gettext("It is already being sent. See the list."))
        except PushsvcError as error:
            messages.error(request, error.detail)
        return HttpResponseRedirect(self.own_url())

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {"approve": self._approve, "return": self._return, "withdraw": self._withdraw}

    @override
    def own_url(self) -> str:
        """Of the list, if the draft was sent or deleted."""
        return approval_url(self.draft) if self.draft else _list_url(self.channel)

    def _approve(self, post: QueryDict) -> HttpResponseBase:
        require(self.may(Role.SENDER), Role.SENDER)
        version, draft_id = seen_version(self.request), self.kwargs["draft_id"]
        stored = once(
            channel_id=self.channel.pk,
            key=checked_key(post.get("key", "")),
            body={"draft": str(draft_id), "version": version},
            act=lambda: {"notification_id": str(self._sent(draft_id, version).pk)},
        )
        messages.success(self.request, gettext("It is approved, and the notification is stored."))
        page = "admin:notifications_app_notification_change"
        return HttpResponseRedirect(reverse(page, args=[stored["notification_id"]]))

    def _sent(self, draft_id: Any, version: int) -> Any:
        return draft_approve(
            drafts=Draft.objects.filter(channel=self.channel, pk=draft_id),
            version=version,
            user=self.staff,
            is_writer=self._is_writer,
            read=self._read,
        )

    def _is_writer(self, user: User) -> bool:
        return may(user, self.channel.account_id, Role.WRITER)

    def _read(self, stored: Mapping[str, Any]) -> SendRequest:
        """The send of the stored form. Raises ReviewOutdated, and Invalid."""
        send, _ = read_form(ComposeForm.kept(stored))
        segment = segment_find(channel_id=self.channel.pk, segment_id=send.segment_id)
        if self.request.POST.get("seen", "") != seen_of(send, segment):
            raise ReviewOutdated
        return send

    def _return(self, post: QueryDict) -> HttpResponseBase:
        require(self.may(Role.SENDER), Role.SENDER)
        draft = self._kept()
        note = post.get("note", "").replace("\r\n", "\n")
        version = seen_version(self.request)
        draft_return(draft_id=draft.pk, version=version, user=self.staff, note=note)
        return self._left(
            gettext("The draft was returned to %(asked_by)s.") % {"asked_by": draft.asked_by},
            is_done=True,
        )

    def _withdraw(self, _: QueryDict) -> HttpResponseBase:
        draft = self._kept()
        draft_withdraw(draft_id=draft.pk)
        messages.success(self.request, gettext("The request is withdrawn. The draft is kept."))
        return HttpResponseRedirect(compose_url(draft.pk))

    def _kept(self) -> Draft:
        if self.draft is None:
            raise DraftGone
        if not self.draft.is_waiting:
            raise NotWaiting
        return self.draft

    def _left(self, words: str, *, is_done: bool = False) -> HttpResponse:
        level = messages.SUCCESS if is_done else messages.WARNING
        messages.add_message(self.request, level, words)
        return HttpResponseRedirect(_list_url(self.channel))

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        draft = self._kept()
        is_own = draft.asked_by == self.staff
        return super().get_context_data(
            draft=draft,
            is_own=is_own,
            may_send=self.may(Role.SENDER),
            may_decide=self.may(Role.SENDER) and not is_own,
            may_be_sent=draft.asked_by is not None and self._is_writer(draft.asked_by),
            most_note=MOST_NOTE,
            key=new_key(),
            composed="composed" in self.request.GET,
            **_reviewed(self.channel, draft, self.request),
            **kwargs,
        )


def waiting_context(request: HttpRequest, chosen: Channel | None) -> dict[str, Any]:
    """The drafts that wait for approval in the chosen channel, or in all in which the user writes
    or sends; the oldest first."""
    writable = channels_of(request.user, Role.WRITER)
    own = writable if chosen is None else writable.filter(pk=chosen.pk)
    found = Draft.objects.filter(asked_at__isnull=False, channel__in=own)
    drafts = found.select_related("channel", "asked_by").order_by("asked_at", "id")
    chosen_id = chosen.pk if chosen else None
    return {
        "waiting": [(each, approval_url(each)) for each in drafts[: _MOST_WAITING + 1]],
        "most_waiting": _MOST_WAITING,
        "waiting_url": list_url("notifications_app_draft", chosen_id, approval="waiting"),
    }


def _reviewed(channel: Channel, draft: Draft, request: HttpRequest) -> dict[str, Any]:
    """The review, or why the draft cannot be sent as it is."""
    errors: Sequence[str] = ()
    try:
        return review_context(channel, ComposeForm.kept(draft.form), request)
    except Invalid as error:
        errors = labelled(error.errors)
    except PushsvcError as error:
        errors = [error.detail]
    return {"errors": errors}


def _list_url(channel: Channel) -> str:
    return list_url("notifications_app_draft", channel.pk)
