"""The dashboard, which is the console's first page, and its parts that refresh themselves."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext

from channels_app.console.access import channels_of, may, may_anywhere
from channels_app.console.lists import list_url
from channels_app.console.pages import channel_or_404, id_or_404
from channels_app.models import Channel, Role
from notifications_app.admin.charts import Charts, chart_file, charts_of
from notifications_app.admin.compose.approval import waiting_context
from notifications_app.admin.first_steps import first_steps
from notifications_app.admin.states import STAGES, state_of
from notifications_app.reporting.activity import MOST_SHOWN, Sending, sending_and_due
from notifications_app.reporting.attention import attention
from notifications_app.reporting.bounce_reasons import APART_WORDS
from notifications_app.reporting.campaigns import recent_campaigns
from notifications_app.reporting.hand_overs import hand_overs
from notifications_app.reporting.statistics import Outcomes, Statistics, statistics_of
from notifications_app.reporting.unshown import shown_lately
from pushsvc.common.console.admin import site
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.findings import Finding, Kind
from pushsvc.common.periods import PERIOD_NAMES, parse_days, period
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.quantities import share
from pushsvc.common.store import sql
from pushsvc.common.texts import later

_DEFAULT_DAYS: Final = 7
_MOST_CHANNELS_OFFERED: Final = 200
_MOST_RECENT: Final = 6  # campaigns
_WAKE_WITHIN_SECONDS: Final = 3600


@dataclass(frozen=True)
class Selection:
    """The channels that the page shows: one, or all of the user's."""

    channels: QuerySet[Channel]
    chosen: Channel | None
    days: int

    def address(self, name: str, **changed: object) -> str:
        """The address of a dashboard page with this selection and the `changed` parameters."""
        own = {"channel": self.chosen.pk if self.chosen else "", "days": self.days}
        given = {key: value for key, value in own.items() if value} | changed
        return f"{reverse(name)}?{urlencode(given)}"

    def notifications(self, **filters: object) -> str:
        """The address of the list of notifications."""
        return self._listing("notifications_app_notification", filters)

    def sent_within(self, **filters: object) -> str:
        """The address of the list of notifications that a figure of the period counts."""
        return self.notifications(within=self.days, kind="send", **filters)

    def subscribers(self, **filters: object) -> str:
        """The address of the channel's subscribers; for all channels, of the list of channels."""
        if self.chosen is None:
            return reverse("admin:channels_app_channel_changelist")
        return self._listing("subscriptions_app_subscription", filters)

    def changed_within(self, **filters: object) -> str:
        """The address of the list of subscribers gained or lost in the period; "" for several
        channels, which have no such list."""
        return self.subscribers(within=self.days, **filters) if self.chosen else ""

    def _listing(self, model: str, filters: Mapping[str, object]) -> str:
        return list_url(model, self.chosen.pk if self.chosen else None, **filters)


def dashboard_context(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """The page's context, for `ConsoleSite`."""
    offered = _offered(request)
    selection = _selection(request, offered)
    choices = _choices(selection, offered)
    now = offered[0].read_at if offered else sql.now()
    found = statistics_of(selection.channels, period(now, selection.days, reader_zone(request)))
    return (
        context
        | choices
        | _attention(request, selection, now)
        | _live(selection, now)
        | {
            "title": gettext("Dashboard"),
            "has_heading": True,
            "is_member": may_anywhere(request.user, Role.VIEWER),
            "compose_url": _compose_url(request, selection),
            **waiting_context(request, selection.chosen),
            "selection": selection,
            "statistics": found,
            "figures": _figures(selection, found),
            "platforms": _platforms(selection, found),
            "outcome_names": [name for _, name, _ in _shown_outcomes(found.outcomes.total)],
            "shown": selection.chosen and shown_lately(selection.chosen, now),
            "charts": _charts(selection, found),
            **_recent(request, selection, choices),
            "steps": first_steps(
                request, selection.chosen or next(iter(offered), None), found.totals
            ),
        }
    )


def _compose_url(request: HttpRequest, selection: Selection) -> str:
    """The address of the compose page; "" if the user may not write one."""
    page = reverse("admin:notification_compose")
    if selection.chosen is None:
        return page if may_anywhere(request.user, Role.WRITER) else ""
    is_writer = may(request.user, selection.chosen.account_id, Role.WRITER)
    return f"{page}?channel={selection.chosen.pk}" if is_writer else ""


def live(request: HttpRequest) -> HttpResponse:
    """The notifications that are being sent or due next. Refreshes itself while there are any."""
    return render(request, "console/dashboard/live.html", _live(_selection(request), sql.now()))


def chart(request: HttpRequest) -> HttpResponse:
    """A chart of the dashboard as CSV."""
    selection = _selection(request)
    of = period(sql.now(), selection.days, reader_zone(request))
    found = statistics_of(selection.channels, of)
    return chart_file(request, _charts(selection, found))


def _charts(selection: Selection, found: Statistics) -> Charts:
    files = selection.address("admin:dashboard_chart", chart="")
    return charts_of(found, hand_overs(selection.channels, found), files)


def attention_part(request: HttpRequest) -> HttpResponse:
    context = _attention(request, _selection(request), sql.now())
    return render(request, "console/dashboard/attention.html", context)


def pages() -> list[URLPattern]:
    """The addresses of the parts that refresh themselves, and of the charts' files."""
    return [
        path("dashboard/chart.csv", site.admin_view(chart), name="dashboard_chart"),
        path("dashboard/live/", site.admin_view(live), name="dashboard_live"),
        path("dashboard/attention/", site.admin_view(attention_part), name="dashboard_attention"),
    ]


def _selection(request: HttpRequest, known: Iterable[Channel] = ()) -> Selection:
    """The selection that the query names. Raises Http404 for a channel that the user may not
    see. `known`: channels that the user may see."""
    own, chosen = channels_of(request.user), None
    if given := request.GET.get("channel"):
        wanted = id_or_404(given)
        chosen = next((each for each in known if each.pk == wanted), None)
        chosen = chosen or channel_or_404(request, wanted)
        own = own.filter(pk=chosen.pk)
    return Selection(own, chosen, parse_days(request.GET.get("days", "")) or _DEFAULT_DAYS)


def _offered(request: HttpRequest) -> list[Any]:
    """The user's channels, with the time at which they were read: at most _MOST_CHANNELS_OFFERED,
    and one more if there are more."""
    own = channels_of(request.user).only("name", "account_id").annotate(read_at=Now())
    return list(own.order_by("name", "id")[: _MOST_CHANNELS_OFFERED + 1])


def _choices(selection: Selection, offered: Sequence[Channel]) -> dict[str, Any]:
    shown = offered[:_MOST_CHANNELS_OFFERED]
    return {
        "offered_channels": shown,
        "is_chosen_offered": selection.chosen in shown,
        "has_more_channels": len(offered) > _MOST_CHANNELS_OFFERED,
        "periods": [
            {
                "name": name,
                "url": selection.address("admin:index", days=days),
                "is_current": days == selection.days,
            }
            for days, name in PERIOD_NAMES.items()
        ],
        "period_name": PERIOD_NAMES[selection.days],
    }


def _figures(selection: Selection, found: Statistics) -> list[dict[str, Any]]:
    """The figures, each with a link to what it counts, and its value in the period before."""
    now, before = found.outcomes.total, found.outcomes.before
    return [
        {
            "name": gettext("Subscribers"),
            "value": found.totals.subscribers,
            "url": selection.subscribers(state="active"),
            "growth": found.changes.total,
            "gained_url": selection.changed_within(),
            "lost_url": selection.changed_within(state="expired"),
        },
        {
            "name": gettext("Notifications sent"),
            "value": found.notifications_sent.total,
            "before": found.notifications_sent.before,
            "url": selection.sent_within(status__exact="sent"),
        },
        *(
            each | {"before": getattr(before, each["of"])}
            for each in _ended(selection, now, _shown_outcomes(now))
        ),
    ]


def _platforms(selection: Selection, found: Statistics) -> list[dict[str, Any]]:
    """The platforms that are in use, each with links to what its numbers count."""
    shown = _shown_outcomes(found.outcomes.total)
    return [
        {
            "name": platform,
            "title": PLATFORM_NAMES[platform],
            "subscribers": found.totals.subscribers_on(platform),
            "url": selection.subscribers(platform__exact=platform, state="active"),
            "gained_url": selection.changed_within(platform__exact=platform),
            "lost_url": selection.changed_within(platform__exact=platform, state="expired"),
            "recipients_url": selection.sent_within(platform=platform),
            "changes": found.platform_changes[platform].total,
            "outcomes": found.platform_outcomes[platform].total,
            "ended": _ended(
                selection, found.platform_outcomes[platform].total, shown, platform=platform
            ),
        }
        for platform in Platform
        if _is_used(found, platform)
    ]


def _recent(
    request: HttpRequest, selection: Selection, choices: Mapping[str, Any]
) -> dict[str, Any]:
    """The newest campaigns with their rates."""
    ids: list[UUID] | None
    if selection.chosen:
        ids = [selection.chosen.pk]
    elif request.user.is_superuser:
        ids = None
    elif choices["has_more_channels"]:
        ids = list(selection.channels.values_list("pk", flat=True))
    else:
        ids = [each.pk for each in choices["offered_channels"]]
    return {
        "recent": [
            {
                "notification": each,
                "delivered_share": share(each.delivered_count, each.recipient_count),
                "clicked_share": share(each.clicked_count, each.delivered_count),
            }
            for each in recent_campaigns(ids, limit=_MOST_RECENT)
        ],
        "best_url": selection.notifications(
            kind="campaign", sort="clicked_rate", within=selection.days
        ),
        "campaigns_url": selection.notifications(kind="campaign"),
    }


def _shown_outcomes(total: Outcomes) -> list[tuple[str, str, str]]:
    """The outcomes that the page shows: the field of Outcomes, its name, and the filter of the list
    behind it. Recipients that a stop, an opt-out or the deadline ended are shown if any were."""
    apart = [
        (code, words, code) for code, (words, _) in APART_WORDS.items() if getattr(total, code)
    ]
    return [
        ("delivered", gettext("Delivered"), "delivered"),
        ("undeliverable", gettext("Bounced"), "bounced"),
        *apart,
        ("clicked", gettext("Clicked"), "clicked"),
    ]


def _ended(
    selection: Selection, of: Outcomes, shown: Sequence[tuple[str, str, str]], **filters: object
) -> list[dict[str, Any]]:
    return [
        {
            "of": field,
            "name": name,
            "value": getattr(of, field),
            "share": of.share_of(field),
            "url": selection.sent_within(**filters, outcome=outcome),
        }
        for field, name, outcome in shown
    ]


def _is_used(found: Statistics, platform: Platform) -> bool:
    outcomes, changes = found.platform_outcomes[platform], found.platform_changes[platform]
    return bool(
        found.totals.subscribers_on(platform)
        or changes.total.gained
        or outcomes.total != Outcomes()
    )


def _live(selection: Selection, now: datetime) -> dict[str, Any]:
    running, due = sending_and_due(selection.channels)
    due_at = next((each.scheduled_at for each in due if not each.is_paused), None)
    return {
        "selection": selection,
        "now": now,
        "running": [(each, STAGES[each.stage]) for each in running[:MOST_SHOWN]],
        "has_more_running": len(running) > MOST_SHOWN,
        "running_url": selection.notifications(status__exact="processing"),
        "due": [(each, state_of(each, None, now)) for each in due],
        "due_url": selection.notifications(status__exact="pending"),
        "live_status": _status(running),
        "live_url": selection.address("admin:dashboard_live"),
        "live_trigger": _trigger(_is_moving(running), due_at, now),
    }


def _status(running: Sequence[Sending]) -> str:
    """The progress for screen readers, in steps of ten percent."""
    tenths = {each.notification: int(10 * (each.done_share or 0)) for each in running[:MOST_SHOWN]}
    said = [
        gettext("%(one)s: %(value)s %% done") % {"one": one, "value": tenth * 10}
        for one, tenth in tenths.items()
    ]
    return "; ".join(said) or gettext("Nothing is being sent")


def _is_moving(running: Sequence[Sending]) -> bool:
    """Whether numbers change by themselves. A paused notification waits until it is resumed."""
    is_cut = len(running) > MOST_SHOWN
    return is_cut or any(each.stage != "paused" for each in running)


def _trigger(is_moving: bool, due_at: datetime | None, now: datetime) -> str:
    """When the browser refreshes: while notifications are being sent, and when the next is due."""
    if is_moving:
        return "every 2s [!document.hidden]"
    seconds = math.inf if due_at is None else (due_at - now).total_seconds()
    return f"load delay:{max(2, math.ceil(seconds) + 2)}s" if seconds < _WAKE_WITHIN_SECONDS else ""


def _attention(request: HttpRequest, selection: Selection, now: datetime) -> dict[str, Any]:
    is_member = may_anywhere(request.user, Role.VIEWER)
    found = attention(selection.channels, now=now) if is_member else []
    return {
        "selection": selection,
        "findings": [(finding, *_remedy(selection, finding)) for finding in found],
        "attention_url": selection.address("admin:dashboard_attention"),
    }


_CREDENTIALS: Final = ("channel_credentials", later("Replace the credentials"))
_WEBHOOKS: Final = ("channel_webhooks", later("Webhooks"))
_PAGES: Final = {
    Kind.PLATFORM_PAUSED.code: _CREDENTIALS,
    Kind.CREDENTIALS_MISSING.code: ("channel_credentials", later("Add credentials")),
    Kind.CREDENTIALS_OLD.code: _CREDENTIALS,
    Kind.API_KEY_ENDS.code: ("channel_keys", later("API keys")),
    Kind.CHANNEL_FULL.code: ("channel_settings", later("Settings")),
    Kind.WEBHOOK_DISABLED.code: _WEBHOOKS,
    Kind.WEBHOOK_FAILING.code: _WEBHOOKS,
}
_GUIDES: Final = {
    Kind.WEB_UNSHOWN.code: (
        "/docs/browser#a-second-service-worker",
        later("A second service worker"),
    ),
    Kind.LIMITED.code: ("/docs/webpush#limited-channels", later("Why, and what helps")),
}
_SENDING: Final = ({"status__exact": "processing"}, later("What is being sent"))
_LISTS: Final = {
    Kind.BOUNCES_MANY.code: (
        {"within": "1", "outcome": "bounced", "kind": "send"},
        later("Notifications with bounces"),
    ),
    Kind.QUEUE_LATE.code: _SENDING,
    Kind.CALLS_FAIL.code: _SENDING,
    Kind.WORKERS_BREAK.code: _SENDING,
    Kind.START_LATE.code: ({"status__exact": "pending"}, later("What is due")),
}
# What the finding is about.
_ROWS: Final = {
    Kind.SCHEDULE_DISABLED.code: ("schedule_edit", later("The schedule")),
    Kind.AUTOMATION_DISABLED.code: ("automation_edit", later("The automation")),
    Kind.NEWSFEED_DISABLED.code: ("newsfeed_edit", later("The newsfeed")),
    Kind.NEWSFEED_FAILING.code: ("newsfeed_edit", later("The newsfeed")),
}


def _remedy(selection: Selection, finding: Finding) -> tuple[str, str]:
    """The address and the name of the page that helps; empty if only the servers can be
    corrected."""
    if row := _ROWS.get(finding.code):
        name, text = row
        return reverse(f"admin:{name}", args=[finding.subject]), text
    if page := _PAGES.get(finding.code):
        name, text = page
        return reverse(f"admin:{name}", args=[finding.channel_id]), text
    if guide := _GUIDES.get(finding.code):
        return guide
    if listing := _LISTS.get(finding.code):
        filters, text = listing
        if "outcome" in filters:
            filters = {**filters, "platform": finding.platform}
        channel_id = finding.channel_id or (selection.chosen.pk if selection.chosen else None)
        return list_url("notifications_app_notification", channel_id, **filters), text
    return "", ""
