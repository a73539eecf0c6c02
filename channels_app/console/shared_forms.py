"""Forms of settings that several people change: nobody overwrites a change without seeing it.

The page contains the values with which it was drawn. If one of them has changed when the form is
saved, nothing is stored, and the form shows who changed what, next to the user's input. The page
then contains the new values, so saving it again replaces them.
"""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

from django import forms
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.utils.html import format_html
from django.utils.translation import gettext
from typing_extensions import override

from channels_app import audit
from channels_app.console.pages import ConsolePage, FormPage
from pushsvc.common.console.figures import moment
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.http.strict_json import MalformedJSON, loads_strict


class SharedForm(ConsoleForm):
    """`audited_as`: under which names the audit log shows a field, if not under its own name.

    `seen`: the values with which the page was drawn, as JSON, for templates. `outdated`: what a
    page says above a form with values that somebody else changed.
    """

    audited_as: ClassVar[Mapping[str, Collection[str]]] = {}
    outdated = ""

    def __init__(self, data: Any = None, **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        self.present = {
            name: _plain(self.get_initial_for_field(field, name))
            for name, field in self.fields.items()
        }
        self.seen = json.dumps(self.present) if data is None else data.get("seen", "")

    def changed_meanwhile(self) -> list[str]:
        """The fields with a value that the user has not seen, and that this valid form would
        replace."""
        seen = self._seen()
        return [
            name
            for name, now in self.present.items()
            if now not in (seen.get(name, ...), _plain(self.cleaned_data[name]))
        ]

    def redrawn(self, fresh: "SharedForm", row: Model) -> "SharedForm":
        """`fresh`, a form with the present values, with the user's input, and with a note at each
        field that somebody else changed."""
        seen = self._seen()
        changed = self.changed_meanwhile()
        wanted = {name: self.audited_as.get(name, (name,)) for name in changed}
        found = audit.last_changes(row, {each for names in wanted.values() for each in names})
        fresh.outdated = _outdated(found)
        for name in self.fields:
            if _plain(self.cleaned_data[name]) != seen.get(name, ...):
                fresh.initial[name] = self[name].data
        for name in changed:
            by = next((found[each] for each in wanted[name] if each in found), None)
            fresh.fields[name].now = _note(fresh.fields[name], self.present[name], by)  # type: ignore[attr-defined] # for field.html
        return fresh

    def _seen(self) -> dict[str, Any]:
        try:
            seen = loads_strict(self.seen.encode())
        except MalformedJSON:
            return {}
        return seen if isinstance(seen, dict) else {}


class SharedFormPage(FormPage):
    """A page with a SharedForm about one row."""

    def lock(self) -> Model:
        """Locks the row, and reads it for `make_form`."""
        raise NotImplementedError

    @override
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with transaction.atomic():
            return save_shared(self, self.lock(), self.make_form, self.accept)

    @override
    def make_form(self, data: QueryDict | None = None) -> SharedForm:
        raise NotImplementedError


def save_shared(
    page: ConsolePage,
    row: Model,
    make_form: Callable[[QueryDict | None], SharedForm],
    accept: Callable[[Any], HttpResponseBase],
    name: str = "form",
) -> HttpResponseBase:
    """The response to a posted SharedForm about a row that the transaction has locked: what
    `accept` returns, or the page with the form as `name` in its context."""
    form = make_form(page.request.POST)
    if form.is_valid():
        if form.changed_meanwhile():
            return page.conflicting(**{name: form.redrawn(make_form(None), row)})
        with form.showing_errors():
            return accept(form)
    return page.refused(**{name: form})


def _plain(value: Any) -> Any:
    """The value for comparisons: what is stored and what a form read are the same."""
    match value:
        case bool():
            return value
        case None:
            return ""
        case list() | tuple():
            return sorted(str(each) for each in value)
        case _:
            return str(value)


def _outdated(changes: Mapping[str, audit.Change]) -> str:
    both = f" {gettext('and')} "
    people = both.join(sorted({each.who for each in changes.values()})) or gettext("Somebody")
    return gettext(
        "Not saved: %(people)s changed the marked values after you opened this page. The form "
        "shows what you wrote: saving it again replaces what was changed."
    ) % {"people": people}


def _note(field: forms.Field, value: Any, by: audit.Change | None) -> str:
    words = _words(field, value)
    if by is None:
        return format_html(gettext("Changed meanwhile. It is now: {}"), words)
    return format_html(gettext("{} changed this {}. It is now: {}"), by.who, moment(by.at), words)


def _words(field: forms.Field, value: Any) -> str:
    """The value as the form shows it."""
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    chosen = value if isinstance(value, list) else [value]
    labels = {str(key): str(label) for key, label in getattr(field, "choices", ())}
    return ", ".join(labels.get(str(each), str(each)) for each in chosen if each) or gettext(
        "empty"
    )
