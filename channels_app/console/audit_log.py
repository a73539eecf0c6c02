"""The page of the audit log. Staff see the entries of their accounts, superusers see all.

The list reads entries by id, newest first, and uses an index on the account. It never counts them.
"""

import json
from datetime import timedelta
from typing import Any

from auditlog.models import LogEntry
from django.contrib import admin
from django.contrib.contenttypes.models import ContentType
from django.db.models import F, Func, Q, QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.audit import SHOWN, Action, id_hashes, who_did
from channels_app.console.access import accounts_of, is_superuser, may_anywhere
from channels_app.models import Role
from pushsvc.common.console.admin import DropdownFilter, ReadOnlyAdmin, badge, site
from pushsvc.common.console.figures import NOTHING, moment
from pushsvc.common.texts import later
from pushsvc.common.timestamps import parse_timestamp

site.unregister(LogEntry)  # the package's page shows other columns

_TONES = {Action.CREATE: "good", Action.UPDATE: "busy", Action.DELETE: "bad", Action.ACCESS: ""}
_KINDS = {label: label.rpartition(".")[2] for label in SHOWN} | {
    "auth.user": later("user"),
    "axes.accessattempt": later("lock-out"),
    "channels_app.account": later("account"),
    "channels_app.channel": later("channel"),
    "channels_app.identitykey": later("identity key"),
    "channels_app.membership": later("membership"),
    "channels_app.webhook": later("webhook"),
    "notifications_app.automation": later("automation"),
    "notifications_app.draft": later("draft"),
    "notifications_app.image": later("image"),
    "notifications_app.newsfeed": later("newsfeed"),
    "notifications_app.notification": later("notification"),
    "notifications_app.schedule": later("schedule"),
    "notifications_app.template": later("template"),
    "subscriptions_app.category": later("category"),
    "subscriptions_app.person": later("person"),
    "subscriptions_app.segment": later("segment"),
    "channels_app.apikey": later("API key"),
    "channels_app.providercredential": later("credentials"),
    "channels_app.vapidkey": later("web push key"),
    "subscriptions_app.subscription": later("subscriber"),
    "subscriptions_app.testdevice": later("test device"),
}
# What a changed field means, by the name and whether it has a value now.
_MOVES = {
    ("paused_at", True): later("paused"),
    ("paused_at", False): later("resumed"),
    ("stopped_at", True): later("stopped"),
}


class WhenFilter(DropdownFilter):
    title = later("when")
    parameter_name = "days"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("1", gettext("Last 24 hours")),
            ("7", gettext("Last 7 days")),
            ("30", gettext("Last 30 days")),
        ]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in {"1", "7", "30"}:
            return queryset
        return queryset.filter(timestamp__gte=Now() - timedelta(days=int(self.value() or 0)))


class KindFilter(DropdownFilter):
    title = later("what")
    parameter_name = "kind"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return sorted(_KINDS.items(), key=lambda kind: kind[1].lower())

    @classmethod
    def chosen(cls, request: HttpRequest) -> int | None:
        """The id of the content type."""
        value = request.GET.get(cls.parameter_name)
        if value not in SHOWN:
            return None
        label, _, model = value.partition(".")
        return ContentType.objects.get_by_natural_key(label, model).pk

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        kind = self.chosen(request)
        return queryset if kind is None else queryset.filter(content_type=kind)


class ActionFilter(DropdownFilter):
    title = later("action")
    parameter_name = "action"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(value), str(label)) for value, label in Action.choices]

    @classmethod
    def chosen(cls, request: HttpRequest) -> int | None:
        value = request.GET.get(cls.parameter_name, "")
        return int(value) if value in {str(each) for each in Action.values} else None

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        action = self.chosen(request)
        return queryset if action is None else queryset.filter(action=action)


@admin.register(LogEntry)
class AuditAdmin(ReadOnlyAdmin):
    list_name = later("audit log entries")
    list_display = ("when", "who", "address", "done", "what", "in_short")
    list_display_links = ("when",)
    list_filter = (WhenFilter, KindFilter, ActionFilter)
    list_select_related = ("actor", "content_type")
    search_fields = ("object_repr",)
    search_help_text = later(
        "A user name, an address, an id, a person's external id, or part of the name "
        "of the changed object."
    )
    ordering = ("-id",)
    fields = readonly_fields = ("when", "who", "address", "done", "what", "note", "differences")

    @override
    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    @override
    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return may_anywhere(request.user, Role.VIEWER)

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        entries: QuerySet[Any] = super().get_queryset(request)
        if is_superuser(request.user):
            return entries
        own = accounts_of(request.user).values_list("pk", flat=True)
        account = KeyTextTransform("account", "additional_data")
        ids = [str(pk) for pk in own]
        own_entries: QuerySet[Any] = entries.annotate(account=account).filter(account__in=ids)
        return own_entries

    @override
    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return self._newest(request, queryset), False
        found = queryset.annotate(
            name_then=KeyTextTransform("who", "additional_data"),
            note_text=KeyTextTransform("note", "additional_data"),
            address_text=_text_of("remote_addr"),
        )
        matching = (
            Q(object_repr__icontains=term)
            | Q(object_pk=term)
            | Q(name_then__iexact=term)
            | Q(address_text=term)
            | Q(note_text__regex="|".join(id_hashes(term)))
        )
        return found.filter(matching), False

    def _newest(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """As many of the newest entries as the pages show, which the index on the account finds.
        PostgreSQL might read the entries of all accounts instead."""
        if is_superuser(request.user):
            return queryset
        accounts = [str(pk) for pk in accounts_of(request.user).values_list("pk", flat=True)]
        kind, action = KindFilter.chosen(request), ActionFilter.chosen(request)
        most = self.paginator.most_rows
        values = (accounts, kind, action, most, most)
        return queryset.filter(id__in=RawSQL(_NEWEST, values))  # noqa: S611 (constant text)

    @admin.display(description=later("When"), ordering="id")
    def when(self, entry: LogEntry) -> str:
        return moment(entry.timestamp, "seconds")

    @admin.display(description=later("Who"))
    def who(self, entry: LogEntry) -> str:
        return who_did(entry) or NOTHING

    @admin.display(description=later("From"))
    def address(self, entry: LogEntry) -> str:
        return entry.remote_addr or NOTHING

    @admin.display(description=later("Action"))
    def done(self, entry: LogEntry) -> str:
        return badge(Action(entry.action).label, _TONES[Action(entry.action)])

    @admin.display(description=later("What"))
    def what(self, entry: LogEntry) -> str:
        label = f"{entry.content_type.app_label}.{entry.content_type.model}"
        kind = _KINDS.get(label, entry.content_type.model)
        link = _page_of(entry)
        if link is None:
            return f"{kind}: {entry.object_repr}"
        return format_html('{}: <a class="ps-link" href="{}">{}</a>', kind, link, entry.object_repr)

    @admin.display(description=later("Note"))
    def note(self, entry: LogEntry) -> str:
        return (entry.additional_data or {}).get("note") or NOTHING

    @admin.display(description=later("In short"))
    def in_short(self, entry: LogEntry) -> str:
        """The note, or the names of the changed fields."""
        if note := (entry.additional_data or {}).get("note"):
            return str(note)
        changes = (entry.changes if entry.action == Action.UPDATE else None) or {}
        words = [_MOVES.get((name, bool(new)), _name(name)) for name, (_, new) in changes.items()]
        return ", ".join(sorted(map(str, words))) or NOTHING

    @admin.display(description=later("Before and after"))
    def differences(self, entry: LogEntry) -> str:
        if not entry.changes:
            return NOTHING
        rows = format_html_join(
            "",
            '<tr><th scope="row">{}</th><td>{}</td><td>{}</td></tr>',
            (
                (_name(name).capitalize(), _shown(name, old), _shown(name, new))
                for name, (old, new) in entry.changes.items()
            ),
        )
        return format_html(
            '<div class="ps-scroll"><table class="ps-table"><thead><tr><th scope="col">{}</th>'
            '<th scope="col">{}</th><th scope="col">{}</th></tr></thead>'
            "<tbody>{}</tbody></table></div>",
            gettext("Field"),
            gettext("Before"),
            gettext("After"),
            rows,
        )


def _moment(text: str) -> str:
    try:
        return moment(parse_timestamp(text), "seconds")
    except ValueError:
        return text


def _text_of(column: str) -> Func:
    """An IP address as text. A comparison as an address would fail for any other search term."""
    return Func(F(column), function="host", output_field=TextField())


def _page_of(entry: LogEntry) -> str | None:
    """The page of the changed row, if every reader may open it. The row may be deleted."""
    kind = entry.content_type
    if kind.app_label in {"notifications_app", "subscriptions_app"} and _has_page(kind):
        return reverse(f"admin:{kind.app_label}_{kind.model}_change", args=[entry.object_pk])
    channel = (entry.additional_data or {}).get("channel")
    return reverse("admin:channels_app_channel_change", args=[channel]) if channel else None


def _has_page(kind: ContentType) -> bool:
    """Whether rows of this kind have their own page. Test devices and categories do not; the
    channel's pages show them."""
    model = kind.model_class()
    return model is not None and site.is_registered(model)


def _name(field: str) -> str:
    """The name of a field for people: `is_enabled` is "enabled"."""
    return field.removeprefix("is_").replace("_", " ")


def _shown(name: str, value: Any) -> str:
    """The value of a field as text for people."""
    match value:
        case None:
            return NOTHING
        case bool():
            return gettext("yes") if value else gettext("no")
        case str() if name.endswith(("_at", "_until")):
            return _moment(value)
        case str():
            return value
        case _:
            return json.dumps(value, ensure_ascii=False)


# Raw, because the ORM has no LATERAL. BETWEEN and both orders, because with an equality PostgreSQL
# may read the primary key instead.
_NEWEST = """
SELECT unnest(ARRAY(
  SELECT newest.id FROM unnest(%s::text[]) AS wanted (account)
  CROSS JOIN LATERAL (
    SELECT id FROM auditlog_logentry
    WHERE additional_data ->> 'account' BETWEEN wanted.account AND wanted.account
      AND content_type_id = coalesce(%s, content_type_id) AND action = coalesce(%s, action)
    ORDER BY additional_data ->> 'account', id DESC LIMIT %s
  ) AS newest
  ORDER BY newest.id DESC LIMIT %s
))
"""
