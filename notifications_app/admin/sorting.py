"""The orders of the list of notifications."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.admin.views.main import PAGE_VAR
from django.db.models import Case, F, FloatField, QuerySet, Value, When
from django.db.models.expressions import OrderBy
from django.db.models.functions import Cast, NullIf
from django.http import HttpRequest
from typing_extensions import override

from pushsvc.common.console.admin import DropdownFilter
from pushsvc.common.texts import later

FEWEST_DELIVERED: Final = 100  # with fewer, a rate says little
NEWEST: Final = "newest"


@dataclass(frozen=True)
class Sort:
    """`words`: with what the list begins. `least_of`: for a rate, of what a notification needs
    FEWEST_DELIVERED to count."""

    name: str
    words: str
    order: tuple[Any, ...]
    least_of: str = ""


def _of_rate(part: str, whole: str, *, count: str) -> tuple[Any, ...]:
    """By a share, but those with less than FEWEST_DELIVERED of `count` last."""
    shown = Case(When(**{f"{count}__gte": FEWEST_DELIVERED}, then=Value(0)), default=Value(1))
    rate = Cast(F(part), FloatField()) / NullIf(F(whole), Value(0))
    return (OrderBy(shown), OrderBy(rate, descending=True, nulls_last=True), "-id")


SORTS: Final[Mapping[str, Sort]] = {
    NEWEST: Sort(later("Newest"), later("The newest first"), ("-id",)),
    "latest": Sort(
        later("Latest time"), later("The latest time of sending first"), ("-scheduled_at", "-id")
    ),
    "earliest": Sort(
        later("Earliest time"), later("The earliest time of sending first"), ("scheduled_at", "id")
    ),
    "reach": Sort(later("Reach"), later("Most recipients first"), ("-recipient_count", "-id")),
    "delivered": Sort(
        later("Delivered"), later("Most delivered first"), ("-delivered_count", "-id")
    ),
    "delivered_rate": Sort(
        later("Delivery rate"),
        later("Highest share of recipients delivered first"),
        _of_rate("delivered_count", "recipient_count", count="recipient_count"),
        least_of="recipients",
    ),
    "clicked": Sort(later("Clicks"), later("Most clicks first"), ("-clicked_count", "-id")),
    "clicked_rate": Sort(
        later("Click rate"),
        later("Highest share of the delivered clicked first"),
        _of_rate("clicked_count", "delivered_count", count="delivered_count"),
        least_of="delivered",
    ),
}


class SortFilter(DropdownFilter):
    """Excludes no rows. `NotificationAdmin.get_ordering` sorts."""

    title = later("order")
    parameter_name = "sort"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, sort.name) for name, sort in SORTS.items() if name != NEWEST]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset


def sort_of(request: HttpRequest) -> Sort | None:
    """The order that the query names. None without one."""
    return SORTS.get(request.GET.get(SortFilter.parameter_name, ""))


def sort_links(request: HttpRequest, changelist: Any) -> list[dict[str, Any]]:
    """Links to the same list in each order."""
    current = sort_of(request) or SORTS[NEWEST]
    name = SortFilter.parameter_name
    return [
        {
            "name": sort.name,
            "url": changelist.get_query_string(
                {name: None if key == NEWEST else key, PAGE_VAR: None}
            ),
            "is_current": sort is current,
        }
        for key, sort in SORTS.items()
    ]
