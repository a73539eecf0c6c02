"""Composing a notification: write it, test it on one device, review it, send it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.access import channels_of, may, may_anywhere
from channels_app.console.lists import list_url
from channels_app.console.pages import require
from channels_app.models import Channel, Role
from notifications_app.admin.compose.audience import choices_for, rule_errors_of
from notifications_app.admin.compose.choices import form_for_segment
from notifications_app.admin.compose.errors import errors_by_field, labelled
from notifications_app.admin.compose.form import (
    ComposeForm,
    is_edited,
    moment_of,
    read_content,
    read_form,
)
from notifications_app.admin.compose.languages import shown_shares
from notifications_app.admin.compose.personal import chosen_content, personal_preview
from notifications_app.admin.compose.rendered import audience_shares
from notifications_app.admin.compose.review import (
    ReviewOutdated,
    is_past,
    named_context,
    new_key,
    paced_context,
    reach_of,
    review_context,
    seen_of,
)
from notifications_app.admin.compose.sections import languages_of
from notifications_app.admin.compose.sender import (
    WriterPage,
    approval_url,
    compose_url,
    find_draft,
    named_drafts,
    save_draft,
    seen_version,
)
from notifications_app.admin.compose.times import timed_words
from notifications_app.admin.compose.writing import content_and_audience_context
from notifications_app.content.values import SendRequest
from notifications_app.errors import IdempotencyKeyInFlight
from notifications_app.models import Draft, Notification
from notifications_app.sends.approvals import MOST_NOTE, draft_ask
from notifications_app.sends.drafts import DraftGone, draft_send
from notifications_app.sends.dry_run import (
    DryRun,
    notification_dry_run,
)
from notifications_app.sends.idempotency import checked_key, once
from notifications_app.sends.services import notification_accept, notification_test
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.errors import FieldError, Invalid, NotFound, PushsvcError, TooManyRequests
from pushsvc.common.http.ratelimit import Limit, enforce
from pushsvc.common.texts import later
from subscriptions_app.devices.selectors import devices_known_as
from subscriptions_app.devices.test_devices import devices_of
from subscriptions_app.models import Subscription
from subscriptions_app.segments.selectors import segment_find

MOST_CHANNELS: Final = 500
TESTS_OF_A_WRITER: Final = {60: 20, 24 * 3600: 200}  # by seconds


class ComposePage(WriterPage):
    """Writes, reviews and sends a notification; `step` in the form decides which.

    The review page contains an idempotency key, so confirming it twice sends one notification. If
    what it shows has changed meanwhile, confirming it shows it again.
    """

    title = later("New notification")
    template_name = "console/notifications/compose.html"
    draft: Draft | None = None

    @override
    def find_channel(self, request: HttpRequest) -> Channel | None:
        self.draft = find_draft(request)
        if request.method == "GET" and "draft" in request.GET:
            if self.draft is None:
                raise Http404
            return self.draft.channel
        return super().find_channel(request) or self._only_channel(request)

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if self.channel is None:
            return self.render_to_response(self.get_context_data())
        return self._writing(self._first_form(self.channel))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = ComposeForm.posted(request.POST)
        steps = {
            "edit": self._writing,
            "save": self._save,
            "send": self._send,
            "ask": self._ask,
            "review": self._review,
            "personalize": self._personalize,
        }
        step = "edit" if is_edited(request.POST) else request.POST.get("step", "")
        try:
            if step != "send":  # which finds the draft itself, unless the key is repeated
                self._require_draft()
            return steps.get(step, self._review)(form)
        except IdempotencyKeyInFlight:
            messages.warning(request, gettext("It is already being sent. See the list."))
            return HttpResponseRedirect(list_url("notifications_app_notification", self.chosen.pk))
        except Invalid as error:
            return self._writing(form, error.errors)
        except PushsvcError as error:
            return self._writing(form, [FieldError("", error.code, error.detail)])

    def _version(self) -> int | str:
        """The draft's version that the user saw. A form that is shown again keeps this version."""
        if self.draft is None:
            return ""
        return seen_version(self.request) if self.request.method == "POST" else self.draft.version

    def _require_draft(self) -> None:
        if self.draft is None and named_drafts(self.request) is not None:
            raise DraftGone

    def _only_channel(self, request: HttpRequest) -> Channel | None:
        channels = list(channels_of(request.user, self.role)[:2])
        return channels[0] if len(channels) == 1 else None

    def _may(self, role: Role) -> bool:
        user, channel = self.request.user, self.channel
        return channel is not None and may(user, channel.account_id, role)

    def _first_form(self, channel: Channel) -> ComposeForm:
        if self.draft is not None:
            return ComposeForm.kept(self.draft.form)
        return form_for_segment(channel, self.request.GET.get("segment", ""))

    def _writing(self, form: ComposeForm, errors: Sequence[FieldError] = ()) -> HttpResponse:
        writer = None if self._may(Role.SENDER) else self.staff
        context = self.get_context_data(
            devices=[each for each in devices_of(self.chosen.id, writer=writer) if each.platform],
            audiences=choices_for(form),
            **content_and_audience_context(self.chosen, form, errors, self.request),
        )
        return self.render_to_response(context, status=400 if errors else 200)

    def _review(self, form: ComposeForm, *, is_repeated: bool = False) -> HttpResponse:
        context = self.get_context_data(
            **review_context(self.chosen, form, self.request),
            is_repeated=is_repeated,
            key=new_key(),
        )
        self.template_name = "console/notifications/review.html"
        return self.render_to_response(context)

    def _personalize(self, form: ComposeForm) -> HttpResponse:
        return self._review(replace(form, personalize="on"))

    def _save(self, form: ComposeForm) -> HttpResponse:
        """For browsers without JavaScript. With JavaScript, drafts are saved while the user
        types."""
        draft = save_draft(self.request, channel=self.chosen, form=form)
        messages.success(self.request, gettext("The draft is saved."))
        return HttpResponseRedirect(compose_url(draft.pk))

    def _ask(self, form: ComposeForm) -> HttpResponse:
        """Saves the draft, and asks another person to send it."""
        read_form(form)
        user = self.staff
        with transaction.atomic():
            draft = save_draft(self.request, channel=self.chosen, form=form)
            note = self.request.POST.get("note", "").replace("\r\n", "\n")
            draft_ask(draft_id=draft.pk, version=draft.version, user=user, note=note)
        return HttpResponseRedirect(f"{approval_url(draft)}?composed=1")

    def _send(self, form: ComposeForm) -> HttpResponse:
        require(self._may(Role.SENDER), Role.SENDER)
        send, body = read_form(form)
        key = checked_key(self.request.POST.get("key", ""))
        try:
            stored = once(
                channel_id=self.chosen.id,
                key=key,
                body=body,
                act=lambda: {"notification_id": str(self._accept(send).id)},
            )
        except ReviewOutdated:
            return self._review(form, is_repeated=True)
        stored_as = Notification.objects.get(pk=stored["notification_id"])
        when = (
            gettext("It is scheduled.")
            if not is_past(stored_as.scheduled_at)
            else gettext("It is on its way.")
        )
        messages.success(
            self.request, gettext("The notification is stored. %(when)s") % {"when": when}
        )
        page = reverse(
            "admin:notifications_app_notification_change", args=[stored["notification_id"]]
        )
        return HttpResponseRedirect(f"{page}?composed=1")

    def _accept(self, send: SendRequest) -> Notification:
        """Stores the notification, and removes the draft if one is sent. Raises ReviewOutdated."""
        segment = segment_find(channel_id=self.chosen.id, segment_id=send.segment_id)
        if self.request.POST.get("seen", "") != seen_of(send, segment):
            raise ReviewOutdated
        drafts = named_drafts(self.request)
        if drafts is None:
            return notification_accept(channel=self.chosen, request=send)
        return draft_send(
            drafts, version=seen_version(self.request), channel=self.chosen, request=send
        )

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        channels = channels_of(self.request.user, self.role).order_by("name", "id")
        version = self._version()
        return super().get_context_data(
            channel=self.channel,
            channels=list(channels[:MOST_CHANNELS]),
            draft=self.draft,
            version=version,
            is_outdated=self.draft is not None and version != self.draft.version,
            may_edit=self._may(Role.EDITOR),
            may_send=self._may(Role.SENDER),
            most_note=MOST_NOTE,
            note=self.request.POST.get("note", ""),
            may_make_channels=may_anywhere(self.request.user, Role.MANAGER),
            **kwargs,
        )


class ComposeCheck(WriterPage):
    """Returns the form's errors, sizes and reach while the user writes."""

    title = later("Check")
    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> JsonResponse:
        form = ComposeForm.posted(request.POST)
        errors: Sequence[FieldError] = ()
        found: DryRun | None = None
        personal: Mapping[str, Any] | None = None
        shares: Mapping[str, str] = {}
        paced: dict[str, str] = {}
        try:
            send, _ = read_form(form)
            found = notification_dry_run(channel=self.chosen, request=send)
            reach = reach_of(found)
            if tags := languages_of(form):
                shares = shown_shares(tags, audience_shares(self.chosen, send, found))
            personal = personal_preview(self.chosen, send, request.POST)
            paced = paced_context(found, send)
        except Invalid as error:
            errors, found = error.errors, _audience_alone(self.chosen, form)
            counted = reach_of(found) if found else []
            reach = [replace(each, payload_bytes=None, too_large=()) for each in counted]
        return JsonResponse(
            {
                "errors": errors_by_field(errors),
                "rule_errors": rule_errors_of(form, errors),
                "platforms": [asdict(each) | {"name": each.name} for each in reach],
                "moment": _moment_json(form),
                "timed": timed_words(found, reader_zone(request)) if found else "",
                "personal": personal,
                "languages": shares,
            }
            | (named_context(found) if found else {})
            | paced
        )


class ComposeTest(WriterPage):
    """Sends a test to one device and shows its progress. A writer can only choose own devices, and
    sends at most TESTS_OF_A_WRITER."""

    title = later("Test")
    http_method_names = ["post"]
    template_name = "console/notifications/test.html"

    def post(self, request: HttpRequest) -> HttpResponse:
        try:
            device = _test_device(self.chosen, request, self.own_devices_of)
            form = ComposeForm.posted(request.POST)
            content = chosen_content(read_content(form, platform=device.platform), request.POST)
            self._count()
            test = notification_test(
                channel=self.chosen, content=content, subscription_id=device.id
            )
        except Invalid as error:
            return self._shown(errors=labelled(error.errors))
        except (NotFound, TooManyRequests) as error:
            return self._shown(errors=[error.detail])
        return self._shown(notification=test, device=device)

    def _count(self) -> None:
        """Raises TooManyRequests. Who may send to everybody has no limit."""
        if self.own_devices_of is not None:
            for seconds, most in TESTS_OF_A_WRITER.items():
                enforce(Limit(f"tests-in-{seconds}", str(self.staff.pk), most, seconds))

    @property
    def own_devices_of(self) -> User | None:
        """The user, if only their own test devices may be chosen."""
        return None if may(self.staff, self.chosen.account_id, Role.SENDER) else self.staff

    def _shown(self, **context: Any) -> HttpResponse:
        return self.render_to_response(context)


def _audience_alone(channel: Channel, form: ComposeForm) -> DryRun | None:
    """The reach of a form that has errors elsewhere. None if an error concerns the audience."""
    names = ("platforms", "audience", "segment_id", "tag", "rule", "ids", "replaces", "category")
    anything = ComposeForm(body="-", **{name: getattr(form, name) for name in names})
    try:
        send, _ = read_form(anything)
        return notification_dry_run(channel=channel, request=send)
    except Invalid:
        return None


def _moment_json(form: ComposeForm) -> dict[str, Any] | None:
    try:
        moment = moment_of(form)
    except Invalid:
        return None
    if moment is None:
        return None
    return {"utc": moment.isoformat(), "is_past": is_past(moment)}


def _test_device(channel: Channel, request: HttpRequest, writer: User | None) -> Subscription:
    """The chosen test device; of a person's devices, the one that was seen last. Raises NotFound,
    Invalid if no device was chosen, and PermissionDenied if it is not one of the `writer`."""
    known_as = request.POST.get("test_device") or request.POST.get("test_known_as", "").strip()
    if not known_as:
        raise Invalid(
            [FieldError("", "required", gettext("Choose the device that gets the test."))]
        )
    found = devices_known_as(channel_id=channel.id, text=known_as, limit=1)
    if not found:
        raise NotFound(gettext("No active device has this user id, subscriber id or token hash."))
    if writer is not None:
        own = devices_of(channel.id, writer=writer)
        require(any(each.device.subscription_id == found[0].id for each in own), Role.SENDER)
    return found[0]
