"""The form of a template: the content of the form that composes a notification."""

from collections.abc import Mapping
from typing import Any, Final

from notifications_app.admin.compose.form import ComposeForm, content_body, validated
from notifications_app.content.values import DEFAULTS, Content
from notifications_app.sends.schema import TemplateContent
from pushsvc.common.errors import FieldError

# The form's values of fields that were not filled in.
_LEFT_ALONE: Final[Mapping[str, Any]] = {"body": "", **DEFAULTS}


def form_of(content: Mapping[str, Any]) -> ComposeForm:
    """The form with a template's content."""
    return ComposeForm.saying(content_of(content))


def content_of(content: Mapping[str, Any]) -> Content:
    """The template's content with the defaults of a send. The body may be missing."""
    return Content(**{"body": "", **content})


def read_template(form: ComposeForm) -> dict[str, Any]:
    """The content in the form. Raises Invalid with every error, by the names of the fields."""
    errors: list[FieldError] = []
    # `on_missing` is kept for sends that set `personalize` themselves.
    given = {"on_missing": form.on_missing} | content_body(form, errors)
    content = {name: value for name, value in given.items() if value != _LEFT_ALONE.get(name)}
    validated(content, errors, TemplateContent.checked)
    return content
