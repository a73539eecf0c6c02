"""The page with the form of a send that is stored, and sent when its time comes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from typing_extensions import override

from channels_app.console.pages import ChannelPage
from channels_app.models import Channel, Role
from notifications_app.admin.compose.audience import AUDIENCES, RULE, TAG
from notifications_app.admin.compose.errors import FIELDS, field_of
from notifications_app.admin.compose.form import ComposeForm, is_edited
from notifications_app.admin.compose.writing import content_and_audience_context
from notifications_app.admin.schedule_form import read_send_of, split_errors
from pushsvc.common.errors import FieldError, Invalid, PushsvcError

_NO_TARGETS = [(name, AUDIENCES[name]) for name in ("", TAG, RULE)]


class StoredSendPage(ChannelPage):
    """The form with name, content, audience, and a part of the page's own: when it is sent. The
    step `edit` shows the form again as it was posted."""

    post_role = Role.SENDER
    most_characters: ClassVar[int]  # of the name
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
            "send": lambda: replace(read_send_of(form), template_id=self.template_id())
        }
        for part, read in (readers | self.readers(own)).items():
            try:
                given[part] = read()
            except Invalid as error:
                found += error.errors
        if found:
            raise Invalid(found)
        return given

    def template_id(self) -> UUID | None:
        """Of the template from which the content was copied."""
        return None

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
            most_characters=self.most_characters,
            has_errors=bool(errors),
            has_field_errors=bool(of_name or of_own)
            or any(field_of(each) in FIELDS for each in rest),
            may_send=self.may(Role.SENDER),
            **self.own_context(own, of_own),
            **content_and_audience_context(self.channel, form, rest, self.request)
            | {"audiences": _NO_TARGETS, "no_targets": True},
        )
        return self.render_to_response(context, status=400 if errors else 200)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        # The breadcrumbs lead to the channels, as on the channel's tabs.
        return super().get_context_data(**kwargs) | {"opts": Channel._meta, "list_name": ""}
