"""What every page of the console starts from: one place to change how all of them look."""

from django.contrib import admin
from django.http import HttpRequest
from typing_extensions import override


class ModelAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # generic in its stubs only
    """A page for one model."""


class ReadOnlyAdmin(ModelAdmin):
    """Rows that only services make and change."""

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @override
    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    @override
    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False
