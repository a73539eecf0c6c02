"""Base classes of the console's pages. Only this module, rows.py and site.py import the theme."""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.core.exceptions import BadRequest
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.forms import Media
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext
from typing_extensions import override
from unfold.templatetags.unfold_list import result_headers

from pushsvc.common.console.rows import rows_of
from pushsvc.common.texts import later

if TYPE_CHECKING:  # the theme has no types, so its base classes are used instead
    ThemedModelAdmin = admin.ModelAdmin[Any]
    AnyPaginator = Paginator[Any]
    ThemedChangeList = ChangeList
else:
    AnyPaginator = Paginator
    from unfold.admin import ModelAdmin as ThemedModelAdmin
    from unfold.views import ChangeList as ThemedChangeList

__all__ = [
    "BoundedPaginator",
    "DropdownFilter",
    "ModelAdmin",
    "ReadOnlyAdmin",
    "badge",
    "refuse_nul",
    "site",
]

site = admin.site


class BoundedPaginator(AnyPaginator):
    """Counts only as many rows as its pages show. Users find older rows with a search."""

    most_rows = 1_000

    @cached_property
    @override
    def count(self) -> int:
        """The number of rows, at most `most_rows`. Reads no more rows."""
        rows: Any = self.object_list
        return int(rows.values("pk")[: self.most_rows].count())

    @property
    def is_cut(self) -> bool:
        """Whether there may be more rows."""
        return self.count >= self.most_rows


class DropdownFilter(admin.SimpleListFilter):
    """A filter with choices, as `lookups` names them."""

    template = "console/parts/filter.html"

    @override
    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        chosen = self.value() or ""
        offered = [("", gettext("All")), *self.lookup_choices]
        if chosen not in dict(offered):
            offered.append((chosen, chosen))  # the list is filtered by it
        for value, title in offered:
            yield {"value": value, "display": title, "selected": value == chosen}


class _List(ThemedChangeList):
    model_admin: "ModelAdmin"
    missing_role = ""

    @cached_property
    def headers(self) -> list[dict[str, Any]]:
        """With the names of fields in the reader's language."""
        return [
            each | {"text": gettext(capfirst(each["text"])) if each["text"] else ""}
            for each in result_headers(self)
        ]

    def rows(self) -> Iterator[SafeString]:
        return rows_of(self, [header["text"] for header in self.headers])

    @property
    def is_narrowed(self) -> bool:
        """Whether a search or a filter excludes rows."""
        given = {name: value for name, value in self._chosen.items() if value}
        return self.whole != urlencode(given)

    @property
    def whole(self) -> str:
        """The query of the unfiltered list."""
        kept = self.model_admin.list_always_of
        return urlencode({kept: self._chosen[kept]}) if kept in self._chosen else ""

    @property
    def _chosen(self) -> dict[str, str]:
        chosen: dict[str, str] = self.get_filters_params(self.params)
        return chosen | ({SEARCH_VAR: self.query} if self.query else {})


class ModelAdmin(ThemedModelAdmin):
    """A page for one model. It never counts all rows of a table.

    `list_name`: the heading of the list, if it is not the model's name. `list_always_of`: the
    parameter of a filter that is always set. `empty_help`: the text of an empty list: the
    origin of rows. `first_row`: the action that creates the first row, in words.
    """

    list_name = ""
    list_always_of = ""
    empty_help = ""
    first_row = later("add the first one")

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_filter_submit = True
    list_fullwidth = True
    compressed_fields = True

    @override
    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[_List]:
        return _List

    def missing_role(self, request: HttpRequest) -> str:
        """The role that the user lacks to add rows, for the text of an empty list; "" if none."""
        return ""

    @override
    def get_changelist_instance(self, request: HttpRequest) -> _List:
        changelist = cast(_List, super().get_changelist_instance(request))
        changelist.missing_role = self.missing_role(request)
        return changelist

    @override
    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allows only the list's filters. With others, such as `?secret__startswith=a`, users could
        find out a hidden value letter by letter."""
        return any(_takes(entry, lookup) for entry in self.get_list_filter(request))

    @override
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Refuses a NUL, which PostgreSQL does not store, before a filter uses it. Loads the
        admin's scripts only if there are actions, because only actions need them."""
        refuse_nul(request)
        title = capfirst(gettext(str(self.list_name or self.opts.verbose_name_plural)))
        context = {"title": title, "subtitle": None, **(extra_context or {})}
        if not self.actions:
            context = {"media": Media(), **context}
        return super().changelist_view(request, context)

    @override
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """With the name of the list for the breadcrumbs."""
        context = {"list_name": self.list_name, **(extra_context or {})}
        return super().changeform_view(request, object_id, form_url, context)

    @override
    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirects to the object's entries in the audit log. Django's own log is not written."""
        entries = reverse("admin:auditlog_logentry_changelist")
        return HttpResponseRedirect(f"{entries}?{urlencode({SEARCH_VAR: object_id})}")

    @override
    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Refuses a NUL here too, because forms whose fields search for rows also call this."""
        _refuse_nul(search_term)
        return super().get_search_results(request, queryset, search_term)


def refuse_nul(request: HttpRequest) -> None:
    """Raises BadRequest if the query contains a NUL, which PostgreSQL does not store."""
    _refuse_nul("".join(chain.from_iterable(values for _, values in request.GET.lists())))


def _refuse_nul(text: str) -> None:
    if "\x00" in text:
        raise BadRequest("The address contains a NUL.")


def _takes(entry: Any, lookup: str) -> bool:
    """Whether this entry of `list_filter` uses the lookup."""
    field = entry[0] if isinstance(entry, tuple | list) else entry
    if isinstance(field, str):
        return lookup in {field, f"{field}__exact"}
    return bool(lookup == field.parameter_name)


class ReadOnlyAdmin(ModelAdmin):
    """For rows that only services create and change."""

    actions: Any = None

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @override
    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    @override
    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


def badge(text: object, tone: str = "") -> str:
    """A short word in a coloured pill. Tones: good, warn, bad, busy, web, android, ios."""
    return format_html('<span class="ps-badge" data-tone="{}">{}</span>', tone, text)
