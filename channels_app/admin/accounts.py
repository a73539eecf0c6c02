"""Accounts and who belongs to them."""

from django.contrib import admin

from channels_app.models import Account, Membership
from pushsvc.common.admin import ModelAdmin, TabularInline


class MembershipInline(TabularInline):
    model = Membership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(Account)
class AccountAdmin(ModelAdmin):
    list_display = ("name", "created_at")
    search_fields = ("name",)
    inlines = (MembershipInline,)
