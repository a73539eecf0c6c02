"""Forms of the console's own pages. They show the faults that services raise at their fields."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django import forms

from pushsvc.common.errors import Invalid


class ConsoleForm(forms.Form):
    """Rendered by templates/console/parts/form.html."""

    @contextmanager
    def showing_faults(self) -> Iterator[None]:
        """If a service in the block raises Invalid, ends the block and adds the faults to the
        form."""
        try:
            yield
        except Invalid as error:
            self.add_faults(error)

    def add_faults(self, error: Invalid, fields: Mapping[str, str] | None = None) -> None:
        """Adds each fault to its field: the field that `fields` names for its path, else the field
        of the same name, else the whole form."""
        for fault in error.faults:
            name = (fields or {}).get(fault.attr, fault.attr)
            self.add_error(name if name in self.fields else None, fault.detail)
