"""The fields that say what an automation follows. The API and the console read them with the same
serializer."""

from typing import Any

from notifications_app.models import MAX_LABEL, MAX_NOTIFICATION_NAME
from notifications_app.sends.automations import EVENTS, MAX_HOURS
from notifications_app.sends.content_schema import ActionId
from pushsvc.common.http.fields import Choice, StrictSerializer, Text, WholeNumber
from subscriptions_app.tags.fields import TagName


class TriggerInput(StrictSerializer):
    """What an automation follows."""

    event = Choice(choices=EVENTS, help_text="See docs/automations.md.")
    tag = TagName(
        required=False, help_text="Of `subscriptions.tagged`: the tag that a device gets."
    )
    name = Text(
        required=False,
        min_length=1,
        max_length=MAX_NOTIFICATION_NAME,
        help_text="Of `notifications.clicked` and `.unclicked`: only of notifications with this"
        " name.",
    )
    label: Any = Text(
        required=False,
        min_length=1,
        max_length=MAX_LABEL,
        help_text="Of `notifications.clicked` and `.unclicked`: only of notifications with this"
        " label.",
    )
    action = ActionId(
        required=False,
        help_text="Of `notifications.clicked`: only clicks of the button with this id.",
    )
    hours = WholeNumber(
        required=False,
        min=1,
        max=MAX_HOURS,
        help_text="Of `notifications.unclicked`: how long after the notification's end.",
    )
