"""The console's list of subscribers, with a search, and a page for each subscriber."""

import re
from datetime import timedelta
from math import isfinite
from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.access import may
from channels_app.console.lists import ChannelFilter, OneChannelAdmin, WithinFilter, list_url
from channels_app.console.pages import ChannelPage, FormPage, own_or_404
from channels_app.models import Channel, Role
from pushsvc.common.console.admin import DropdownFilter, badge
from pushsvc.common.console.figures import NOTHING, moment
from pushsvc.common.errors import NotFound
from pushsvc.common.ids import parse_uuid, uuid7_at
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.texts import later
from subscriptions_app.addresses import Address
from subscriptions_app.admin.categories import CategoriesPage
from subscriptions_app.admin.devices import (
    DeviceNameForm,
    DevicesPage,
    attributes_shown,
    browser_of,
    suggested_name,
    to_test_devices,
)
from subscriptions_app.admin.identity import IdentityPage
from subscriptions_app.admin.imports import ImportPage, LookPage, PartPage, RowsPage
from subscriptions_app.admin.tags import TagNamesPage, TagsPage
from subscriptions_app.devices.selectors import newest_ids
from subscriptions_app.devices.services import subscription_expire, subscription_forget
from subscriptions_app.devices.test_devices import NameTaken, device_add, device_of
from subscriptions_app.models import Subscription

_DIGEST = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_ATTRIBUTE = re.compile(r"([^=]{1,50})=(.{0,255})", re.DOTALL)
_CLOCKS_DIFFER = timedelta(hours=1)  # at most, between web servers and the database


class StateFilter(DropdownFilter):
    title = later("state")
    parameter_name = "state"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("active", gettext("Active")), ("expired", gettext("Expired"))]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "active":
                return queryset.filter(expired_at__isnull=True)
            case "expired":
                return queryset.filter(expired_at__isnull=False)
        return queryset


class ChangedWithinFilter(WithinFilter):
    """Subscribers that expired in the period, if the list shows expired ones; otherwise new
    ones."""

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        since = self.since(request)
        if since is None:
            return queryset
        if request.GET.get(StateFilter.parameter_name) == "expired":
            return queryset.filter(expired_at__gte=since)
        # Ids begin with their time, so the condition on the id uses the index.
        earliest = uuid7_at(since - _CLOCKS_DIFFER)
        return queryset.filter(created_at__gte=since, id__gte=earliest)


def _meant(text: str) -> Q:
    """The condition for a search text, chosen by its form. Each kind has its own index."""
    attribute = _ATTRIBUTE.fullmatch(text)
    if attribute is not None and "://" not in text:
        return _with_attribute(attribute[1].strip(), attribute[2].strip())
    try:
        return Q(pk=parse_uuid(text))
    except ValueError:
        return _with_address(text)


def _with_attribute(name: str, value: str) -> Q:
    """Finds active subscriptions only, because the index on attributes has no others."""
    meant = Q()
    for each in _readings(value):
        meant |= Q(attributes__contains={name: each})
    return meant & Q(expired_at__isnull=True)


def _with_address(text: str) -> Q:
    """Finds a token or endpoint, given as text or as its SHA-256."""
    digest = bytes.fromhex(text) if _DIGEST.fullmatch(text) else None
    meant = Q()
    for platform in Platform:
        own = Address.of(platform, text).digest
        meant |= Q(platform=platform, address_sha256__in=[own, *filter(None, [digest])])
    return meant


def _readings(value: str) -> list[str | int | float]:
    """The value as text, and as a number if it is one."""
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        return [value, number] if isfinite(number) else [value]
    return [value]


class SubscriberPage(ChannelPage):
    """A page about one subscriber, which is `self.subscription`."""

    subscription: Subscription

    @override
    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        self.subscription = own_or_404(Subscription, request, kwargs["subscription_id"])
        return self.subscription.channel


class OverviewPage(SubscriberPage):
    title = later("Subscriber")
    template_name = "console/subscribers/page.html"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            subscription=self.subscription,
            person=self.subscription.person,
            tags=self.subscription.tags.order_by("tag"),
            token_hash=bytes(self.subscription.address_sha256).hex(),
            browser=browser_of(self.subscription),
            test_device=device_of(self.subscription),
            may_send=self.may(Role.SENDER),
            may_manage=self.may(Role.MANAGER),
            **kwargs,
        )


class TestDevicePage(SubscriberPage, FormPage):
    """Makes the subscriber a test device, or changes the test device's name."""

    __test__ = False  # for pytest

    title = later("Use as test device")
    template_name = "console/subscribers/test_device.html"
    role = Role.SENDER
    form_class = DeviceNameForm

    @override
    def make_form(self, data: QueryDict | None = None) -> DeviceNameForm:
        known = device_of(self.subscription)
        name = known.name if known else suggested_name(self.subscription)
        return DeviceNameForm(data, initial={"name": name})

    @override
    def accept(self, form: Any) -> HttpResponseBase:
        subscription = self.subscription
        name = form.cleaned_data["name"]
        try:
            device = device_add(
                channel=self.channel, name=name, subscription_id=subscription.pk, user=self.staff
            )
        except NameTaken as error:
            form.add_error("name", error.detail)
            return self.refused(form=form)
        except NotFound as error:  # it expired meanwhile
            form.add_error(None, error.detail)
            return self.refused(form=form)
        messages.success(
            self.request, gettext("“%(device)s” is a test device.") % {"device": device}
        )
        return HttpResponseRedirect(to_test_devices(subscription))

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            subscription=self.subscription,
            browser=browser_of(self.subscription),
            attributes=attributes_shown(self.subscription),
            **kwargs,
        )


class ExpirePage(SubscriberPage):
    """POST only."""

    title = later("Expire")
    role = Role.MANAGER
    http_method_names = ("post",)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        done = subscription_expire(subscription=self.subscription)
        messages.success(
            request,
            gettext("The subscription is expired.") if done else gettext("It had already expired."),
        )
        return HttpResponseRedirect(
            reverse("admin:subscriptions_app_subscription_change", args=[self.subscription.pk])
        )


class ForgetPage(SubscriberPage):
    """POST only."""

    title = later("Delete")
    role = Role.MANAGER
    http_method_names = ("post",)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        subscription_forget(subscription=self.subscription)
        messages.success(request, gettext("Everything about the subscriber was deleted."))
        return HttpResponseRedirect(
            list_url("subscriptions_app_subscription", self.subscription.channel_id)
        )


@admin.register(Subscription)
class SubscriptionAdmin(OneChannelAdmin):
    """Shows one channel, so that an index serves the list, however many rows there are."""

    list_name = later("subscribers")
    row_page = OverviewPage
    row_name = "subscription_id"
    list_before_template = "console/subscribers/channel.html"
    empty_help = later(
        "Browsers and phones appear when they subscribe. Add the channel to a site or app."
    )
    list_display = (
        "id_shown",
        "platform_shown",
        "state",
        "attributes_shown",
        "subscribed",
        "last_seen",
    )
    list_filter = (ChannelFilter, "platform", StateFilter, ChangedWithinFilter)
    list_select_related = ("channel",)
    search_fields = ("id",)
    search_help_text = later(
        "An id, a token or endpoint, its SHA-256, or an attribute such as plan=pro."
    )
    ordering = ("-id",)
    sortable_by = ()

    @admin.display(description=later("Subscriber"))
    def id_shown(self, subscription: Subscription) -> str:
        """The last part of the id, which differs between rows of the same time."""
        whole = str(subscription.pk)
        return format_html('<span class="ps-mono" title="{}">…{}</span>', whole, whole[-12:])

    @admin.display(description=later("Platform"))
    def platform_shown(self, subscription: Subscription) -> str:
        return badge(PLATFORM_NAMES[subscription.platform], subscription.platform)

    @admin.display(description=later("State"))
    def state(self, subscription: Subscription) -> str:
        if subscription.expired_at is None:
            return badge(gettext("active"), "good")
        return badge(subscription.expired_code or "expired", "bad")

    @admin.display(description=later("Attributes"))
    def attributes_shown(self, subscription: Subscription) -> str:
        return attributes_shown(subscription) or NOTHING

    @admin.display(description=later("Subscribed"))
    def subscribed(self, subscription: Subscription) -> str:
        return moment(subscription.created_at)

    @admin.display(description=later("Last seen"))
    def last_seen(self, subscription: Subscription) -> str:
        return moment(subscription.registered_at)

    @override
    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term:
            return self._newest(request, queryset), False
        return queryset.filter(_meant(search_term.strip())), False

    def _newest(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """As many of the newest rows as the pages show, which indexes find. Those that expired in a
        period may have been created at any time."""
        channel = self.chosen_channel(request)
        state = request.GET.get(StateFilter.parameter_name)
        if channel is None or (state == "expired" and WithinFilter.since(request)):
            return queryset
        given = request.GET.getlist("platform__exact")
        platforms = [each for each in Platform if each in given] or list(Platform)
        most = self.paginator.most_rows
        ids = newest_ids(channel.pk, state=state, platforms=platforms, limit=most)
        return queryset.filter(id__in=ids)

    @override
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        own = {
            "since": WithinFilter.since(request),
            "is_of_expired": request.GET.get(StateFilter.parameter_name) == "expired",
            "empty_action": self._import_link(request),
        }
        return super().changelist_view(request, {**(extra_context or {}), **own})

    def _import_link(self, request: HttpRequest) -> dict[str, str] | None:
        channel = self.chosen_channel(request)
        if channel is None or not may(request.user, channel.account_id, Role.MANAGER):
            return None
        url = reverse("admin:subscribers_import", args=[channel.pk])
        return {"url": url, "title": gettext("Import subscribers")}

    @override
    def get_urls(self) -> list[URLPattern]:
        own = [
            self.page("<uuid:subscription_id>/expire/", ExpirePage, "subscription_expire"),
            self.page("<uuid:subscription_id>/forget/", ForgetPage, "subscription_forget"),
            self.page(
                "<uuid:subscription_id>/test-device/", TestDevicePage, "subscription_test_device"
            ),
            self.page("test-devices/<uuid:channel_id>/", DevicesPage, "channel_devices"),
            self.page("tags/<uuid:channel_id>/", TagsPage, "channel_tags"),
            self.page("tags/<uuid:channel_id>/names/", TagNamesPage, "tag_names"),
            self.page("categories/<uuid:channel_id>/", CategoriesPage, "channel_categories"),
            self.page("identity/<uuid:channel_id>/", IdentityPage, "channel_identity"),
            self.page("import/<uuid:channel_id>/", ImportPage, "subscribers_import"),
            self.page("import/<uuid:channel_id>/look/", LookPage, "subscribers_import_look"),
            self.page("import/<uuid:channel_id>/rows/", RowsPage, "subscribers_import_rows"),
            self.page("import/<uuid:channel_id>/part/", PartPage, "subscribers_import_part"),
        ]
        return own + super().get_urls()
