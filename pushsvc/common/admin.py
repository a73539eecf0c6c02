"""What every page of the console starts from: the one module that knows which theme it has."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from typing_extensions import override

if TYPE_CHECKING:  # the theme has no types; its classes keep to those that they extend
    ThemedModelAdmin = admin.ModelAdmin[Any]
    ThemedTabularInline = admin.TabularInline[Any, Any]
else:
    from unfold.admin import ModelAdmin as ThemedModelAdmin
    from unfold.admin import TabularInline as ThemedTabularInline

__all__ = ["ModelAdmin", "ReadOnlyAdmin", "TabularInline", "badge", "site"]

site = admin.site


class ModelAdmin(ThemedModelAdmin):
    """A page for one model. Big tables are never counted to show how many rows there are."""

    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_filter_submit = True
    list_fullwidth = True
    compressed_fields = True


class TabularInline(ThemedTabularInline):
    """Rows of another model within a page."""


class ReadOnlyAdmin(ModelAdmin):
    """Rows that only services make and change."""

    actions = None

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
