"""Forms of the console's own pages: plain HTML, with the faults that services raise in place."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django import forms

from pushsvc.common.errors import Invalid


class ConsoleForm(forms.Form):
    """Shown by templates/console/parts/form.html."""

    @contextmanager
    def showing_faults(self) -> Iterator[None]:
        """Ends early where a service in it refuses; the form then says why."""
        try:
            yield
        except Invalid as error:
            self.add_faults(error)

    def add_faults(self, error: Invalid, fields: Mapping[str, str] | None = None) -> None:
        """Puts each fault beside its field: the one that `fields` names for its path, else the
        field of the same name, else above the form."""
        for fault in error.faults:
            name = (fields or {}).get(fault.attr, fault.attr)
            self.add_error(name if name in self.fields else None, fault.detail)
