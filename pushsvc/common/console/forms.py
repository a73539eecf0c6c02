"""Forms of the console's own pages. They show the errors of services next to the fields."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from typing_extensions import override

from pushsvc.common.errors import Conflict, Invalid
from pushsvc.common.timestamps import timezone_names


class _ZoneSelect(forms.Select):
    """Without a template for each option, as Django's has, because there are 600."""

    @override
    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        options = format_html_join(
            "",
            "<option{}>{}</option>",
            ((" selected" if each == value else "", each) for each in timezone_names()),
        )
        own = flatatt(self.build_attrs(self.attrs, {"name": name, **(attrs or {})}))
        return format_html("<select{}>{}</select>", own, options)


class ZoneField(forms.ChoiceField):
    """A time zone by its name in tzdata."""

    widget = _ZoneSelect

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=lambda: [(name, name) for name in timezone_names()], **options)


class ConsoleForm(forms.Form):
    """Rendered by templates/console/parts/form.html."""

    @contextmanager
    def showing_errors(self) -> Iterator[None]:
        """A context that catches Invalid and Conflict and adds their errors to the form."""
        try:
            yield
        except Invalid as error:
            self.add_errors(error)
        except Conflict as error:
            self.add_error(None, error.detail)

    def add_errors(self, error: Invalid, fields: Mapping[str, str] | None = None) -> None:
        """Adds each error to the field that `fields` names for its path, or the field of the same
        name, or the whole form."""
        for field_error in error.errors:
            name = (fields or {}).get(field_error.attr, field_error.attr)
            self.add_error(name if name in self.fields else None, field_error.detail)
