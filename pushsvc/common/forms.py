"""Forms of the console's own pages: plain HTML, with the faults that services raise in place."""

from collections.abc import Mapping
from typing import Any

from django import forms

from pushsvc.common.errors import Invalid


class ConsoleForm(forms.Form):
    """Shown by templates/console/parts/form.html."""

    required_css_class = "ps-required"

    def add_faults(self, error: Invalid, fields: Mapping[str, str] | None = None) -> None:
        """Puts each fault beside its field: the one that `fields` names for its path, else the
        field of the same name, else above the form."""
        for fault in error.faults:
            name = (fields or {}).get(fault.attr, fault.attr)
            self.add_error(name if name in self.fields else None, fault.detail)

    def values(self) -> dict[str, Any]:
        """What a valid form holds, with None for what was left empty."""
        return {name: None if value == "" else value for name, value in self.cleaned_data.items()}
