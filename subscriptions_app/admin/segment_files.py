"""A segment from a file of people's ids, by a tag. The browser reads the file and sends the ids."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.pages import ChannelPage
from channels_app.models import Role
from pushsvc.common.errors import BadRequest, FieldError, Invalid, PushsvcError
from pushsvc.common.http.strict_json import MalformedJSON, loads_strict
from pushsvc.common.ids import is_tag
from pushsvc.common.texts import later
from subscriptions_app.admin.imports import LookPage
from subscriptions_app.admin.segment_errors import NOT_A_TAG
from subscriptions_app.errors import SegmentNameTaken
from subscriptions_app.models import MAX_SEGMENT_NAME, MAX_TAG
from subscriptions_app.segments.services import segment_check, segment_create
from subscriptions_app.tags.selectors import is_being_removed, tag_exists
from subscriptions_app.tags.services import MAX_MEMBERS, tag_members_change

_USED: Final = later("Devices have this tag already. Choose another one, or add to them.")
_REMOVED: Final = later("This tag is being removed from its devices. Choose another one.")


class _JsonPost(ChannelPage):
    """Responds with JSON; to errors with `errors`, by the field that they concern ("" if none)."""

    title = later("Segment from a file")
    role = Role.EDITOR

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return JsonResponse(self.answer(request))
        except PushsvcError as error:
            return JsonResponse({"errors": _by_field(error)}, status=error.status)

    def answer(self, request: HttpRequest) -> Mapping[str, Any]:
        """May raise PushsvcError."""
        raise NotImplementedError


class SegmentFilePage(_JsonPost):
    """GET shows the form. POST has its `name` and `tag`, and a `step`: `check` refuses what cannot
    become a segment, before anything is stored; `create` creates the segment of the tag. `extend`
    allows a tag that devices have already."""

    template_name = "console/segments/file.html"

    @override
    def answer(self, request: HttpRequest) -> Mapping[str, Any]:
        steps: dict[str, Callable[[str, str], Mapping[str, Any]]] = {
            "check": self._check,
            "create": self._create,
        }
        step = steps.get(request.POST.get("step", ""))
        if step is None:
            raise BadRequest("The form does not name a step.")
        return step(request.POST.get("name", "").strip(), request.POST.get("tag", ""))

    def _check(self, name: str, tag: str) -> Mapping[str, Any]:
        errors: dict[str, str] = {}
        problem = self._problem_of(tag)
        if problem:
            errors["tag"] = problem
        try:
            segment_check(channel=self.channel, name=name, rule={"tag": tag})
        except PushsvcError as error:
            errors = _by_field(error) | errors
        if errors:
            raise Invalid([FieldError(name, "malformed", words) for name, words in errors.items()])
        return {}

    def _problem_of(self, tag: str) -> str:
        if not is_tag(tag):
            return NOT_A_TAG
        if is_being_removed(self.channel.pk, tag):
            return _REMOVED
        is_used = "extend" not in self.request.POST and tag_exists(self.channel.pk, tag)
        return _USED if is_used else ""

    def _create(self, name: str, tag: str) -> Mapping[str, Any]:
        segment = segment_create(channel=self.channel, name=name, rule={"tag": tag})
        messages.success(
            self.request, gettext("The segment “%(name)s” was saved.") % {"name": segment.name}
        )
        return {"url": reverse("admin:subscriptions_app_segment_change", args=[segment.pk])}

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            most_characters=MAX_SEGMENT_NAME, most_of_tag=MAX_TAG, most_ids=MAX_MEMBERS, **kwargs
        )


class SegmentFileLookPage(LookPage):
    """The columns of a file, by its beginning."""

    title = later("Segment from a file")
    role = Role.EDITOR


class SegmentFilePartPage(_JsonPost):
    """POST only, with `tag` and at most MAX_MEMBERS `external_ids` as JSON: adds the tag to the
    devices of these people. Safe to repeat."""

    http_method_names = ("post",)

    @override
    def answer(self, request: HttpRequest) -> Mapping[str, Any]:
        tag, ids = _given(request.read())
        changed = tag_members_change(
            channel=self.channel, tag=tag, external_ids=ids, subscription_ids=[], remove=False
        )
        return {
            "devices": changed.devices,
            "full": changed.full,
            "unknown": list(changed.missing_external_ids),
        }


def _given(body: bytes) -> tuple[str, list[str]]:
    match loads_strict(body):
        case {"tag": str(tag), "external_ids": list(ids)} if is_tag(tag):
            if len(ids) <= MAX_MEMBERS and all(isinstance(each, str) for each in ids):
                return tag, ids
    raise MalformedJSON(
        gettext("Must have a tag, and at most %(max_members)s external_ids.")
        % {"max_members": MAX_MEMBERS}
    )


def _by_field(error: PushsvcError) -> dict[str, str]:
    """The texts of the error by field of the form."""
    if isinstance(error, SegmentNameTaken):
        return {"name": error.detail}
    if isinstance(error, Invalid):
        return {each.attr.replace("rule.", ""): each.detail for each in error.errors}
    return {"": error.detail}
