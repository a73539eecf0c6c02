"""Forms of the console's own pages. They show the errors of services next to the fields."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django import forms

from pushsvc.common.errors import Conflict, Invalid


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
