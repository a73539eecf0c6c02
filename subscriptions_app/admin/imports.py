"""The console's import of a file. The browser reads the file, and sends it in parts."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from typing_extensions import override

from channels_app.console.pages import ChannelPage
from channels_app.models import Role, VapidKey
from pushsvc.common.errors import Invalid
from pushsvc.common.ids import parse_number
from pushsvc.common.platforms import PLATFORM_NAMES
from pushsvc.common.texts import later
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.importing.formats import Format
from subscriptions_app.importing.guessing import IGNORED, looked_at
from subscriptions_app.importing.parts import MOST_ROWS, Part, parameters
from subscriptions_app.importing.values import MAX_TAKEOVER_DAYS, Options, PersonRow, Result, Row

_SHOWN: Final = 10
_MOST_ADDRESS: Final = 48  # characters
_FORMATS: Final = {
    Format.TOKENS_CSV: later("A table (CSV)"),
    Format.PUSHSVC_NDJSON: later("pushsvc (JSON lines)"),
    Format.PEOPLE_NDJSON: later("pushsvc: people's choices and opt-outs (JSON lines)"),
    Format.WEBPUSH_JSON: later("Browsers' subscriptions (JSON lines)"),
    Format.ONESIGNAL_CSV: later("OneSignal's export (CSV)"),
    Format.PINPOINT_JSON: later("Amazon Pinpoint's export (JSON lines)"),
}
_MEANINGS: Final = {
    "platform": later("Platform"),
    "token": later("Token (Android, iOS)"),
    "endpoint": later("Endpoint (browser)"),
    "p256dh": later("Key p256dh (browser)"),
    "auth": later("Secret auth"),
    "vapid_public_key": later("VAPID public key (browser)"),
    "external_id": later("External id"),
    "language": later("Language"),
    "timezone": later("Time zone"),
    "tags": later("Tags"),
    "created_at": later("Created at"),
    "last_seen_at": later("Last seen at"),
    "": later("Attribute with this name"),
    IGNORED: later("Ignore"),
}


class ImportPage(ChannelPage):
    title = later("Import subscribers")
    template_name = "console/subscribers/import.html"
    role = Role.MANAGER

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        keys = VapidKey.objects.filter(channel=self.channel).order_by("-created_at")
        return super().get_context_data(
            formats=[(each.value, title, each.is_csv) for each, title in _FORMATS.items()],
            platforms=PLATFORM_NAMES.items(),
            meanings=_MEANINGS.items(),
            vapid_keys=[key for key in keys if key.retired_at is not None],
            most_days=MAX_TAKEOVER_DAYS,
            **kwargs,
        )


class _JsonPage(ChannelPage):
    """POST only, with a part of a file as its body, and the parameters of the API's import. The web
    process bounds the body (pushsvc/web/request_body.py). `line`: the line of the file at which the
    part begins."""

    title = later("Import subscribers")
    role = Role.MANAGER
    http_method_names = ("post",)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return JsonResponse(self.answer(request.read()))
        except Invalid as error:
            detail = " ".join(str(each.detail) for each in error.errors)
            return JsonResponse({"detail": detail}, status=error.status)

    def answer(self, body: bytes) -> Mapping[str, Any]:
        """May raise Invalid."""
        raise NotImplementedError

    def part(self, body: bytes, most: int) -> tuple[Part, Options]:
        reading, options = parameters(self.request.GET)
        line = _number(self.request.GET.get("line", "1"))
        return Part.read(body, reading, first_line=line, most=most), options


class LookPage(_JsonPage):
    """What the beginning of a file seems to be."""

    @override
    def answer(self, body: bytes) -> Mapping[str, Any]:
        word = self.request.GET.get("format", "")
        return asdict(looked_at(body, Format(word) if word in list(Format) else None))


class RowsPage(_JsonPage):
    """The first rows of a file, as they would be imported. Stores nothing."""

    @override
    def answer(self, body: bytes) -> Mapping[str, Any]:
        part, options = self.part(body, _SHOWN)
        judged = part.imported(self.channel, Options(options.takeover_days, dry_run=True))
        rows = [
            {"line": line, **result._asdict(), **_fields(row)}
            for (line, row), (_, result) in zip(part.rows, judged, strict=True)
        ]
        return {"rows": rows, "attributes_dropped": part.dropped}


class PartPage(_JsonPage):
    """Imports a part of a file."""

    @override
    def answer(self, body: bytes) -> Mapping[str, Any]:
        part, options = self.part(body, MOST_ROWS)
        return part.summed_up(part.imported(self.channel, options))


def _number(text: str) -> int:
    try:
        return max(1, parse_number(text))
    except ValueError:
        return 1


def _fields(row: Row | PersonRow | Result) -> dict[str, Any]:
    if isinstance(row, Result):
        return {}
    if isinstance(row, PersonRow):
        return {"external_id": row.external_id, "tags": (), "attributes": {}}
    moments = {"created_at": row.created_at, "last_seen_at": row.last_seen_at}
    address = row.address.text
    half = _MOST_ADDRESS // 2
    is_long = len(address) > _MOST_ADDRESS
    return {
        "platform": PLATFORM_NAMES[row.address.platform],
        "address": f"{address[:half]}…{address[-half:]}" if is_long else address,
        "external_id": row.external_id,
        "language": row.language,
        "timezone": row.timezone,
        "tags": row.tags or (),
        "attributes": row.attributes or {},
        **{name: at and format_timestamp(at) for name, at in moments.items()},
    }
