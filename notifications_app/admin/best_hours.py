"""The hours of the week in which a channel's recipients click, as a heat map."""

from typing import Any, Final
from zoneinfo import ZoneInfo

from django.utils.dates import WEEKDAYS, WEEKDAYS_ABBR
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from notifications_app.reporting.best_hours import LEVELS, best_hours
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.store import sql
from pushsvc.common.texts import later
from pushsvc.common.timestamps import timezone_names

WEEKS: Final = (4, 12, 52)


class BestHoursPage(TabPage):
    """`weeks` and `zone` are query parameters; `zone` is the reader's if it is not given."""

    title = later("Best hours")
    http_method_names = ["get"]
    tab = "channel_best_hours"
    template_name = "console/channels/best_hours.html"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        given = self.request.GET
        weeks = next((each for each in WEEKS if str(each) == given.get("weeks")), WEEKS[0])
        wanted = given.get("zone", "")
        zone = wanted if wanted in timezone_names() else reader_zone(self.request).key
        found = best_hours(self.channel, weeks=weeks, zone=ZoneInfo(zone), now=sql.now())
        return super().get_context_data(
            weeks=weeks,
            offered_weeks=WEEKS,
            zone=zone,
            zones=timezone_names(),
            unknown_zone=wanted if wanted and wanted != zone else "",
            heat=found,
            days=list(zip(WEEKDAYS.values(), WEEKDAYS_ABBR.values(), found.days, strict=True)),
            best=[(WEEKDAYS[cell.weekday], cell, share) for cell, share in found.best],
            hours=range(24),
            levels=range(LEVELS + 1),
            **kwargs,
        )
