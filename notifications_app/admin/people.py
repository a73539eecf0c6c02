"""The console's list of people, with a search by external id, and the pages of a person.

In this app, because a person's results and erasure concern notifications.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.urls import URLPattern, reverse
from django.utils.text import Truncator
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.lists import ChannelFilter, OneChannelAdmin, list_url
from channels_app.console.pages import ActsPage, ChannelPage, own_or_404
from channels_app.models import Channel, Role
from notifications_app.admin.subscribers import json_download, shown_deliveries, why_context
from notifications_app.erasure import person_forget
from notifications_app.reporting.stored_data import person_data
from notifications_app.selectors import person_deliveries
from pushsvc.common.console.admin import badge
from pushsvc.common.console.figures import moment
from pushsvc.common.errors import NotFound
from pushsvc.common.texts import later
from subscriptions_app.categories.consent import categories_of, preferences
from subscriptions_app.devices.test_devices import device_names
from subscriptions_app.models import Person
from subscriptions_app.people.services import PersonChange, person_change, person_exported

_DEVICES: Final = 200  # of a person, on the page: the newest
_LOOKED_AT: Final = 200  # newest notifications of the channel
_OUTCOMES: Final = 50
_SHOWN: Final = 60  # characters of an external id in the list


def state_of(person: Person) -> tuple[str, str]:
    """The text and the tone of the badge of the person's state."""
    if person.opted_out_at:
        return gettext("opted out"), "bad"
    return (
        (gettext("reachable"), "good")
        if person.active_devices
        else (gettext("no active device"), "")
    )


class PersonPage(ChannelPage):
    """A page about one person, which is `self.person`."""

    person: Person

    @override
    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        self.person = own_or_404(Person, request, kwargs["person_id"])
        return self.person.channel


class OverviewPage(PersonPage, ActsPage):
    title = later("Person")
    template_name = "console/people/page.html"
    post_role = Role.MANAGER

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {"opt-out": self._opt_out, "opt-in": self._opt_in, "erase": self._erase}

    @override
    def own_url(self) -> str:
        return reverse("admin:subscriptions_app_person_change", args=[self.person.pk])

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        wanted = preferences(categories_of(self.channel.pk), self.person.choices)
        devices = self.person.devices.order_by("-id").prefetch_related("tags")[:_DEVICES]
        names = device_names(self.channel.pk)
        return super().get_context_data(
            person=self.person,
            heading=self.person.external_id,
            state=state_of(self.person),
            preferences=[(each, each.key in self.person.choices) for each in wanted],
            devices=[(each, names.get(each.pk, "")) for each in devices],
            may_send=self.may(Role.SENDER),
            may_manage=self.may(Role.MANAGER),
            **kwargs,
        )

    def _opt_out(self, post: QueryDict) -> HttpResponseBase:
        self._change(PersonChange(opted_out=True))
        return self.back(gettext("The person is opted out. All devices have ended."))

    def _opt_in(self, post: QueryDict) -> HttpResponseBase:
        self._change(PersonChange(opted_out=False))
        return self.back(
            gettext("The opt-out is lifted. Devices come back when they register next.")
        )

    def _change(self, change: PersonChange) -> None:
        """Raises Http404 if the person was erased meanwhile."""
        try:
            person_change(channel=self.channel, external_id=self.person.external_id, change=change)
        except NotFound as error:
            raise Http404 from error

    def _erase(self, post: QueryDict) -> HttpResponseBase:
        try:
            person_forget(channel=self.channel, external_id=self.person.external_id)
        except NotFound as error:
            raise Http404 from error
        messages.success(self.request, gettext("Everything about the person was deleted."))
        return HttpResponseRedirect(list_url("subscriptions_app_person", self.channel.pk))


class HistoryPage(PersonPage):
    """A part of the person's page."""

    title = later("History")
    template_name = "console/subscribers/history.html"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = person_deliveries(self.person, notifications=_LOOKED_AT)
        return {
            "deliveries": shown_deliveries(found[:_OUTCOMES]),
            "looked_at": _LOOKED_AT,
            "most": _OUTCOMES,
            **why_context(self.channel.pk, self.person.external_id),
        }


class ExportPage(PersonPage):
    """A file with everything stored about the person. The audit log records the export."""

    title = later("Export")
    role = Role.MANAGER

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        person_exported(self.person)
        # The row's id, because an external id may contain any character.
        return json_download(f"person-{self.person.pk}.json", person_data(self.person))


@admin.register(Person)
class PersonAdmin(OneChannelAdmin):
    """Shows one channel, because an external id names a person only within its channel."""

    list_name = later("people")
    row_page = OverviewPage
    row_name = "person_id"
    list_before_template = "console/people/channel.html"
    empty_help = later("People appear when a device registers with the id of a signed-in user.")
    list_display = ("id_shown", "state", "devices_shown", "since")
    list_filter = (ChannelFilter,)
    list_select_related = ("channel",)
    search_fields = ("external_id",)
    search_help_text = later("The whole external id, as your backend has it.")
    ordering = ("external_id", "id")
    sortable_by = ()

    @admin.display(description=later("External id"))
    def id_shown(self, person: Person) -> str:
        return Truncator(person.external_id).chars(_SHOWN)

    @admin.display(description=later("State"))
    def state(self, person: Person) -> str:
        return badge(*state_of(person))

    @admin.display(description=later("Active devices"))
    def devices_shown(self, person: Person) -> str:
        return str(person.active_devices)

    @admin.display(description=later("Known since"))
    def since(self, person: Person) -> str:
        return moment(person.created_at)

    @override
    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term:
            return queryset, False
        return queryset.filter(external_id=search_term.strip()), False

    @override
    def get_urls(self) -> list[URLPattern]:
        own = [
            self.page("<uuid:person_id>/history/", HistoryPage, "person_history"),
            self.page("<uuid:person_id>/export/", ExportPage, "person_export"),
        ]
        return own + super().get_urls()
