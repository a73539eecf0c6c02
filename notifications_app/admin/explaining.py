"""*Why?* on the pages of a person, a subscriber and a notification, and *Try as…* in the form."""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from typing_extensions import override

from channels_app.console.pages import ChannelPage, channel_or_404, id_or_404
from channels_app.models import Channel
from notifications_app.admin.compose.errors import labelled
from notifications_app.admin.compose.form import ComposeForm, read_form
from notifications_app.admin.compose.sender import WriterPage
from notifications_app.reporting.explaining import Explanation
from notifications_app.reporting.judging import Explained, Verdict
from notifications_app.sends.explaining import Who, notification_explain, send_explain
from pushsvc.common.errors import Invalid, NotFound
from pushsvc.common.ids import parse_uuid
from pushsvc.common.texts import later
from subscriptions_app.models import Person

_TEMPLATE: Final = "console/notifications/explained.html"
_NOBODY: Final = later(
    "The channel has no person with this external id and no subscriber with this id."
)

# The text and the tone of a verdict's badge.
_VERDICTS: Final = {
    Verdict.GETS: (later("gets it"), "good"),
    Verdict.BOUNCES: (later("would bounce"), "bad"),
    Verdict.LEFT_OUT: (later("left out"), "warn"),
    Verdict.NOT_IN_AUDIENCE: (later("not in the audience"), "warn"),
    Verdict.GOT: (later("delivered"), "good"),
    Verdict.BOUNCED: (later("bounced"), "bad"),
    Verdict.WAITING: (later("waiting"), "busy"),
    Verdict.UNKNOWN: (later("cannot be known"), ""),
}
_STEPS: Final = {
    "notification": later("Notification"),
    "active": later("Subscription"),
    "platform": later("Platform"),
    "audience": later("Audience"),
    "category": later("Category"),
    "once": later("Schedule"),
    "cap": later("Cap"),
    "test": later("A/B test"),
    "release": later("Release"),
    "content": later("Message"),
    "paused": later("Pause"),
    "delivery": later("Delivery"),
    "retention": later("Results"),
    "changes": later("Now"),
}


class WhyPart(ChannelPage):
    """Why a person or a subscriber got a notification or did not. POST, so that external ids are in
    no log of addresses."""

    title = later("Why?")
    http_method_names = ["post"]
    template_name = _TEMPLATE

    @override
    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        return channel_or_404(request, kwargs["channel_id"])

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        notification_id = id_or_404(request.POST.get("notification", ""))
        return self.render_to_response(_context(lambda: self._explained(notification_id)))

    def _explained(self, notification_id: UUID) -> Explanation:
        who = who_is(self.channel, self.request.POST.get("who", ""))
        return notification_explain(channel=self.channel, notification_id=notification_id, who=who)


class TryPart(WriterPage):
    """Whether a person or a subscriber would get what the form has."""

    title = later("Try as…")
    http_method_names = ["post"]
    template_name = _TEMPLATE

    def post(self, request: HttpRequest) -> HttpResponse:
        return self.render_to_response(_context(self._explained))

    def _explained(self) -> Explanation:
        who = who_is(self.chosen, self.request.POST.get("try_as", ""))
        send, _ = read_form(ComposeForm.posted(self.request.POST))
        return send_explain(channel=self.chosen, request=send, who=who)


def who_is(channel: Channel, text: str) -> Who:
    """The person with this external id, or else the subscriber with this id. Raises NotFound."""
    name = text.strip()
    if "\x00" not in name and Person.objects.filter(channel=channel, external_id=name).exists():
        return Who(external_id=name)
    try:
        return Who(subscription_id=parse_uuid(name.lower()))
    except ValueError as error:
        raise NotFound(_NOBODY) from error


def _context(explain: Callable[[], Explanation]) -> dict[str, Any]:
    try:
        found = explain()
    except Invalid as error:
        return {"errors": labelled(error.errors)}
    except NotFound as error:
        return {"errors": [error.detail]}
    return {"as_of": found.as_of, "devices": [_shown(each) for each in found.devices]}


def _shown(found: Explained) -> dict[str, Any]:
    words, tone = _VERDICTS[found.verdict]
    steps = [(_STEPS[each.step], each) for each in found.steps]
    return {"found": found, "words": words, "tone": tone, "steps": steps}
