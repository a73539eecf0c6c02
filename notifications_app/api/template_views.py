"""Views of templates, for programs with an API key."""

from collections.abc import Callable
from typing import Any, Final

from rest_framework.request import Request

from channels_app.http import KeyedView
from channels_app.models import Channel
from channels_app.resources import Resource
from notifications_app.api.template_serializers import TemplateInput, TemplateOutput
from notifications_app.errors import (
    IdempotencyKeyInFlight,
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
    TemplateNameTaken,
)
from notifications_app.sends.idempotency import IDEMPOTENCY_PARAMETER, idempotency_key, once
from notifications_app.sends.templates import (
    template_create,
    template_delete,
    template_get,
    template_page,
    template_update,
)
from pushsvc.common.errors import FieldError, Invalid

_GIVEN: Final[dict[str, Any]] = {
    "name": "Order shipped",
    "content": {
        "title": "Your order",
        "body": "It left our warehouse.",
        "ios": {"sound": "ding.wav"},
        "translations": {"de": {"title": "Ihre Bestellung"}},
    },
}
_TEMPLATE: Final = Resource(
    "template",
    "templates",
    tag="templates",
    id_name="template_id",
    id_field="template_id",
    input=TemplateInput,
    output=TemplateOutput,
    given=_GIVEN,
    shown={
        "template_id": "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52",
        **_GIVEN,
        "created_at": "2026-11-20T15:11:00.123Z",
        "updated_at": "2026-11-20T15:11:00.123Z",
    },
    follow_ups=("get_template", "update_template", "delete_template"),
)
_BAD_CONTENT: Final = Invalid(
    [FieldError("content.soung", "unknown_field", "There is no such field.")]
)


def _once(request: Request, channel: Channel, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    key = idempotency_key(request)
    return once(channel_id=channel.pk, key=key, body=request.data, act=act)


class TemplateListView(KeyedView):
    permission_classes = _TEMPLATE.permissions
    get = _TEMPLATE.list(template_page, "List the channel's templates, newest first")
    post = _TEMPLATE.create(
        template_create,
        "Create a template",
        "A template is a name and content. A send names it in `template_id`.",
        _BAD_CONTENT,
        IdempotencyKeyInvalid(),
        TemplateNameTaken(),
        IdempotencyKeyInFlight(),
        IdempotencyKeyReused(),
        parameters=[IDEMPOTENCY_PARAMETER],
        once=_once,
    )


class TemplateView(KeyedView):
    permission_classes = _TEMPLATE.permissions
    get = _TEMPLATE.read(
        template_get, "Get a template", "Its name and its content, as they were stored last."
    )
    put = _TEMPLATE.update(
        template_update,
        "Replace a template's name and content",
        "For sends that are accepted from now on; earlier ones keep their content. Safe to repeat.",
        _BAD_CONTENT,
        TemplateNameTaken(),
    )
    delete = _TEMPLATE.delete(
        template_delete,
        "Delete a template",
        "Sends that were accepted with it keep its content, even if they are scheduled. A second"
        " call returns 404.",
    )
