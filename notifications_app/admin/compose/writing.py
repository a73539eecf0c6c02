"""The context of the templates for the forms that write a notification."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext

from channels_app.console.access import may
from channels_app.models import Channel, Role
from notifications_app.admin.compose.audience import rule_errors_of
from notifications_app.admin.compose.choices import choices_of, segments_for
from notifications_app.admin.compose.errors import errors_by_field, general
from notifications_app.admin.compose.extras import is_extra
from notifications_app.admin.compose.form import TEXTS, ComposeForm, added_language, posted_text
from notifications_app.admin.compose.languages import languages_context
from notifications_app.admin.compose.personal import personal_context
from notifications_app.admin.compose.sections import sections_of
from notifications_app.admin.compose.tested import test_choices
from pushsvc.common.errors import FieldError
from pushsvc.common.languages import NOT_A_LANGUAGE
from subscriptions_app.admin.conditions import builder_context


def content_context(
    channel: Channel,
    form: ComposeForm,
    errors: Sequence[FieldError],
    request: HttpRequest,
    *,
    attributes: Iterable[str],
) -> dict[str, Any]:
    """The context of a form's content. `attributes`: names of the channel's attributes, for
    placeholders."""
    added = added_language(request.POST)
    if not added and request.POST.get("add_language", "").strip():
        errors = [*errors, FieldError("translations", "not_a_language", gettext(NOT_A_LANGUAGE))]
    by_field = errors_by_field(errors)
    sections = sections_of(form, by_field)
    return {
        "form": form,
        "errors": by_field,
        "general_errors": general(errors),
        "is_posted": request.method == "POST",
        "replaced_texts": _replaced_texts(request.POST, form),
        "may_add_images": may(request.user, channel.account_id, Role.WRITER),
        **choices_of(channel),
        **sections,
        **test_choices(
            [each.inputs[0].value for each in sections["variants"]], form.test_inconclusive
        ),
        **personal_context(list(attributes), form),
        **languages_context(channel.pk, form, sections["languages"], opened=added),
    }


def content_and_audience_context(
    channel: Channel, form: ComposeForm, errors: Sequence[FieldError], request: HttpRequest
) -> dict[str, Any]:
    """The context of a form with content and audience."""
    offered = builder_context(channel.pk)
    attributes = [each["name"] for each in offered["known"]["attributes"]]
    return {
        **content_context(channel, form, errors, request, attributes=attributes),
        **offered,
        **segments_for(channel, form),
        "rule_errors": rule_errors_of(form, errors),
    }


def _replaced_texts(post: QueryDict, form: ComposeForm) -> list[str]:
    """What the user wrote for all devices and the last variant replaced, when the others were
    removed."""
    left = dict(form.inputs())
    names = [name for name in post if name in TEXTS or is_extra(name)]
    common = {name: posted_text(post, name) for name in names if not name.startswith("variants.")}
    return [text for name, text in common.items() if text and text != left.get(name)]
