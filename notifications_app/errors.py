"""Errors of sends, of what sends by itself, and of inboxes, templates and segments."""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as noop

from pushsvc.common.errors import Conflict, FieldError, Invalid, PushsvcError
from pushsvc.common.platforms import Platform
from pushsvc.common.texts import later

IDEMPOTENCY_HEADER = "Idempotency-Key"


class SegmentNotFound(Invalid):
    """The channel has no such segment."""

    code = "segment_not_found"
    title = "Segment not found"

    def __init__(self) -> None:
        super().__init__(
            [FieldError("segment_id", self.code, gettext("The channel has no such segment."))]
        )


class TemplateNotFound(Invalid):
    """The channel has no such template."""

    code = "template_not_found"
    title = "Template not found"

    def __init__(self) -> None:
        super().__init__(
            [FieldError("template_id", self.code, gettext("The channel has no such template."))]
        )


class TemplateNameTaken(Conflict):
    """The names of a channel's templates are unique."""

    code = "template_name_taken"
    title = "Template name taken"
    detail = later("Another template of the channel has this name.")


class CategoryRequired(Invalid):
    """The channel's sends to everybody or to a rule must name a category."""

    code = "category_required"
    title = "Category required"

    def __init__(self) -> None:
        super().__init__(
            [
                FieldError(
                    "category", self.code, gettext("The channel's sends must name a category.")
                )
            ]
        )


class TooManyPending(Conflict):
    """The channel may have no further notification that waits to be sent."""

    code = "too_many_pending"
    title = "Too many pending notifications"


class TooManySchedules(Conflict):
    """The channel has as many schedules as it may have."""

    code = "too_many_schedules"
    title = "Too many schedules"


class TooManyAutomations(Conflict):
    """The channel has as many automations as it may have."""

    code = "too_many_automations"
    title = "Too many automations"


class TooManyNewsfeeds(Conflict):
    """The channel has as many newsfeeds as it may have."""

    code = "too_many_newsfeeds"
    title = "Too many newsfeeds"


class NeverHappens(Invalid):
    """A schedule without an occurrence."""

    code = "never_happens"
    title = "Never happens"

    def __init__(self) -> None:
        detail = gettext("No occurrence follows within five years.")
        super().__init__([FieldError("recurrence.rule", self.code, detail)])


_USERS = {
    "scheduled": noop("Schedule %(id)s is enabled and targets this segment."),
    "automated": noop("Automation %(id)s is enabled and targets this segment."),
    "newsfeed": noop("Newsfeed %(id)s is enabled and targets this segment."),
}


class SegmentInUse(Conflict):
    """An unfinished notification, an enabled schedule or an enabled automation uses the segment."""

    code = "segment_in_use"
    title = "Segment in use"

    def __init__(self, user_id: UUID, status: str) -> None:
        """`status`: of the notification, or a key of _USERS."""
        if status in _USERS:
            super().__init__(gettext(_USERS[status]) % {"id": user_id})
        else:
            super().__init__(
                gettext("Notification %(id)s is %(status)s and targets this segment.")
                % {"id": user_id, "status": status}
            )


class PayloadTooLarge(Invalid):
    """The message is larger than the push service accepts."""

    code = "payload_too_large"
    title = "Payload too large"

    def __init__(
        self, platform: Platform, size: int, limit: int, attr: str = "target_platforms"
    ) -> None:
        detail = gettext(
            "The message has %(size)s bytes on %(platform)s; the limit is %(limit)s."
        ) % {"size": size, "platform": platform, "limit": limit}
        super().__init__([FieldError(attr, self.code, detail)])


class InboxOff(Conflict):
    """The channel's devices cannot list what they were sent."""

    code = "inbox_off"
    title = "The inbox is off"
    detail = "The channel's delivery setting `inbox_days` is 0."


class IdempotencyKeyInvalid(Invalid):
    code = "idempotency_key_invalid"
    title = "Idempotency key invalid"

    def __init__(self) -> None:
        detail = "The key must be 1 to 255 printable ASCII characters."
        super().__init__([FieldError(IDEMPOTENCY_HEADER, self.code, detail)])


class IdempotencyKeyReused(PushsvcError):
    """The key was used for a send with another body."""

    status = 422
    code = "idempotency_key_reused"
    title = "Idempotency key reused"
    detail = "The key was used for a request with another body."


class IdempotencyKeyInFlight(Conflict):
    """A send with this key has not got its response yet."""

    code = "idempotency_key_in_flight"
    title = "Idempotency key in flight"
    detail = "A request with this key is still being processed. Repeat yours in a second."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "1"})


_STATES: Final[Mapping[str, str]] = {
    "pending": later("pending"),
    "processing": later("processing"),
    "sent": later("sent"),
    "failed": later("failed"),
    "cancelled": later("cancelled"),
    "stopped": later("stopped"),
    "test": later("a test"),
}


def in_state(notification_id: UUID, state: str, remedy: str) -> str:
    """What the notification is, and what to do first."""
    about = {"id": notification_id, "state": _STATES[state]}
    return f"{gettext('Notification %(id)s is %(state)s.') % about} {remedy}".rstrip()


class NotRunning(Conflict):
    """The notification cannot be paused or stopped in its state."""

    code = "not_running"
    title = "Not running"

    def __init__(self, notification_id: UUID, state: str, remedy: str = "") -> None:
        super().__init__(in_state(notification_id, state, remedy))


class NoTest(Conflict):
    """The notification tests no variants."""

    code = "no_test"
    title = "No test"

    def __init__(self, notification_id: UUID) -> None:
        super().__init__(
            gettext("Notification %(id)s was sent without `test`.") % {"id": notification_id}
        )


class AlreadyDecided(Conflict):
    """The test has found another variant."""

    code = "already_decided"
    title = "Already decided"

    def __init__(self, notification_id: UUID, name: str) -> None:
        super().__init__(
            gettext("The test of notification %(id)s was decided: %(name)s.")
            % {"id": notification_id, "name": name}
        )


class NotEditable(Conflict):
    """The notification, or what was to be changed of it, can no longer be changed."""

    code = "not_editable"
    title = "Not editable"


class NotCombinable(Invalid):
    """Fields that cannot be combined, or do not fit the notification."""

    code = "not_combinable"
    title = "Not combinable"

    def __init__(self, attr: str, detail: str) -> None:
        super().__init__([FieldError(attr, self.code, detail)])


class StillSending(Conflict):
    """Workers are still ending calls that they began before the pause, or a notification is to be
    corrected before it has ended."""

    code = "still_sending"
    title = "Still sending"
    detail = later("Workers are still ending calls that they began before the pause. Try again.")

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail, headers={"Retry-After": "5"})


class DeliveriesDeleted(Conflict):
    """The deliveries of the notification to correct are past their retention."""

    code = "deliveries_deleted"
    title = "Deliveries deleted"

    def __init__(self, notification_id: UUID, days: int) -> None:
        super().__init__(
            gettext(
                "The deliveries of notification %(id)s were deleted, %(days)s days after its end."
                " So it is not known who has it. Send a new notification instead."
            )
            % {"id": notification_id, "days": days}
        )


class NotCancellable(Conflict):
    """Only a pending notification can be cancelled."""

    code = "not_cancellable"
    title = "Not cancellable"

    def __init__(self, notification_id: UUID, status: str) -> None:
        super().__init__(
            gettext("Notification %(id)s is %(status)s, not pending.")
            % {"id": notification_id, "status": status}
        )
