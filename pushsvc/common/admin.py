"""What every page of the console starts from: the one module that knows which theme it has."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.forms import AdminAuthenticationForm
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject, cached_property
from django.utils.html import format_html
from typing_extensions import override

if TYPE_CHECKING:  # the theme has no types; its classes keep to those that they extend
    ThemedModelAdmin = admin.ModelAdmin[Any]
    ThemedTabularInline = admin.TabularInline[Any, Any]
    DropdownFilter = admin.SimpleListFilter
    SignInForm = AdminAuthenticationForm
    AnyPaginator = Paginator[Any]
else:
    AnyPaginator = Paginator
    from unfold.admin import ModelAdmin as ThemedModelAdmin
    from unfold.admin import TabularInline as ThemedTabularInline
    from unfold.contrib.filters.admin import DropdownFilter
    from unfold.forms import AuthenticationForm as SignInForm

__all__ = [
    "BoundedPaginator",
    "DropdownFilter",
    "ModelAdmin",
    "ReadOnlyAdmin",
    "SignInForm",
    "TabularInline",
    "badge",
    "site",
]

# Looked up when it is first used: the theme puts its own in place while Django starts.
site: admin.AdminSite = SimpleLazyObject(lambda: admin.site)  # type: ignore[assignment] # stands in


class BoundedPaginator(AnyPaginator):
    """Counts no further than the pages that it offers: who looks for an older row searches."""

    most_rows = 1_000

    @cached_property
    @override
    def count(self) -> int:
        """At most `most_rows`, read from as many rows."""
        rows: Any = self.object_list
        return int(rows[: self.most_rows].count())


class ModelAdmin(ThemedModelAdmin):
    """A page for one model. Big tables are never counted to show how many rows there are."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_filter_submit = True
    list_fullwidth = True
    compressed_fields = True

    @override
    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Only what the list's filters offer: `?secret__startswith=a` would read it letter by
        letter, though no page shows it."""
        return any(_takes(entry, lookup) for entry in self.get_list_filter(request))


def _takes(entry: Any, lookup: str) -> bool:
    """Whether the entry of `list_filter` reads this: a field's lookups, or a filter's parameter."""
    field = entry[0] if isinstance(entry, tuple | list) else entry
    if isinstance(field, str):
        return lookup == field or lookup.startswith(f"{field}__")
    return bool(lookup == field.parameter_name)


class TabularInline(ThemedTabularInline):
    """Rows of another model within a page."""


class ReadOnlyAdmin(ModelAdmin):
    """Rows that only services make and change."""

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


def moment(at: datetime | None) -> str:
    """In UTC, for `console/times.js` to turn into the reader's own time; a dash for none."""
    if at is None:
        return "-"
    in_utc = f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return format_html('<time data-local datetime="{}">{}</time>', at.isoformat(), in_utc)
