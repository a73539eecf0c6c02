"""What a client may know: valid keys, ids and tokens, mixed with invalid ones."""

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from django.utils import timezone

from channels_app.models import ApiKey, Channel
from tests.api.credentials import APPLE, GOOGLE
from tests.api.devices import ANDROID_TOKEN, FID, IOS_TOKEN
from tests.api.events import reached
from tests.api.support import NOWHERE, owner_of
from tests.factories import browser_keys, make_channel, make_key, phone

_MANY = 1_000_000
_OF = {
    "notification_id": "notifications",
    "segment_id": "segments",
    "template_id": "templates",
    "schedule_id": "schedules",
    "automation_id": "automations",
    "newsfeed_id": "newsfeeds",
    "identity_key_id": "identity_keys",
    "webhook_id": "webhooks",
    "category_key": "categories",
    "tag": "tags",
    "token": "tokens",
}
_SAME = {"replaces": "notification_id", "category": "category_key"}


@dataclass
class Cast:
    """A channel whose limits are out of reach, and another one; `random` makes all choices."""

    random: Random
    own: Channel
    other: Channel
    good_key: str
    odd_keys: list[str]
    tokens: list[str]
    browsers: list[dict]
    notifications: list[str] = field(default_factory=lambda: [NOWHERE])
    segments: list[str] = field(default_factory=lambda: [NOWHERE])
    templates: list[str] = field(default_factory=lambda: [NOWHERE])
    schedules: list[str] = field(default_factory=lambda: [NOWHERE])
    automations: list[str] = field(default_factory=lambda: [NOWHERE])
    newsfeeds: list[str] = field(default_factory=lambda: [NOWHERE])
    identity_keys: list[str] = field(default_factory=lambda: [NOWHERE])
    webhooks: list[str] = field(default_factory=lambda: [NOWHERE])
    categories: list[str] = field(default_factory=lambda: ["offers"])
    tags: list[str] = field(default_factory=lambda: ["team-7"])

    def mostly(self, share: float) -> bool:
        return self.random.random() < share

    def headers(self) -> dict[str, str]:
        """Mostly the correct API key and channel id."""
        key = self.good_key if self.mostly(0.93) else self.random.choice(self.odd_keys)
        channel = self.own.id if self.mostly(0.95) else self.random.choice([self.other.id, "", "x"])
        return {"Authorization": key, "X-Channel-ID": str(channel)}

    def one_of(self, name: str) -> str:
        """A value for the path's parameter of this name that the service knows."""
        return str(self.own.id) if name == "channel_id" else self.random.choice(self._known(name))

    def learn(self, name: str, value: str) -> None:
        known = self._known(name)
        known.append(value)
        del known[1:-100]

    def _known(self, name: str) -> list[str]:
        return getattr(self, _OF[name])


def make_cast(seed: int) -> Cast:
    """Committed to the database, so that a server beside the test sees it."""
    limits: dict[str, Any] = {"subscribes_per_minute": _MANY, "sends_per_second": _MANY}
    own = make_channel(android_enabled=True, ios_enabled=True, **limits)
    other = make_channel(name="Bob's news")
    _, tokens = reached(owner_of(own), 5, url="https://shop.example/")
    return Cast(
        random=Random(seed),  # noqa: S311 (the same requests each time)
        own=own,
        other=other,
        good_key=f"Key {make_key(own)}",
        odd_keys=_odd_keys(own, other),
        tokens=tokens,
        browsers=[browser_keys() for _ in range(5)],
    )


def _odd_keys(own: Channel, other: Channel) -> list[str]:
    single = [make_key(own, scopes=[scope]) for scope in ("send", "read", "manage", "subscribers")]
    revoked, expired = make_key(own), make_key(own)
    newest = ApiKey.objects.order_by("-created_at", "-id")[:2]
    ApiKey.objects.filter(pk=newest[1].pk).update(revoked_at=timezone.now())
    ApiKey.objects.filter(pk=newest[0].pk).update(expires_at=timezone.now())
    texts = [*single, revoked, expired, make_key(other), expired[:-1], ""]
    return [f"Key {text}" for text in texts] + ["Bearer x", ""]


def likely_body(cast: Cast, operation_id: str, body: dict, examples: list[dict]) -> dict:
    """The generated body, or an example of the document with some of its fields, with some values
    that exist here and that no generator could guess."""
    if examples and cast.mostly(0.5):
        some = {name: value for name, value in body.items() if cast.mostly(0.1)}
        body = _with_known(cast, cast.random.choice(examples)) | some
    change = _CHANGES.get(operation_id)
    return {**body, **change(cast, body)} if change and cast.mostly(0.7) else body


def _with_known(cast: Cast, example: dict) -> dict:
    return {name: _known_value(cast, name, value) for name, value in example.items()}


def _known_value(cast, name, value):
    if isinstance(value, dict):
        return _with_known(cast, value)
    name = _SAME.get(name, name)
    return cast.one_of(name) if name in _OF else value


def _send(cast, body):
    segment = cast.one_of("segment_id") if cast.mostly(0.3) else None
    template = cast.one_of("template_id") if cast.mostly(0.3) else None
    later = {"scheduled_at": "2999-01-01T00:00:00Z"} if cast.mostly(0.5) else {}
    named = {"segment_id": segment, "template_id": template}
    return named | {"url": "https://shop.example/"} | later


def _events(cast, body):
    events = body.get("events")
    if not isinstance(events, list):
        return {}
    return {
        "events": [
            {**each, "token": cast.one_of("token")} if isinstance(each, dict) else each
            for each in events
        ]
    }


def _device(cast, body):
    """One of a few devices, so that requests meet the same device again."""
    number = cast.random.randrange(len(cast.browsers))
    match cast.random.choice(("web", "web", "android", "ios")):
        case "web":
            return {
                "platform": "web",
                "endpoint": f"https://updates.push.services.mozilla.com/wpush/v2/{number}",
            }
        case "android":
            return phone(
                "android", cast.random.choice((f"{ANDROID_TOKEN}{number}", f"{FID[:-1]}{number}"))
            )
        case _:
            return phone("ios", IOS_TOKEN[:-1] + str(number))


def _subscribe(cast, body):
    return _device(cast, body) | {"keys": cast.random.choice(cast.browsers)}


def _providers(cast, body):
    config = {"fcm_service_account": json.dumps(GOOGLE), "apns_key": json.dumps(APPLE)}
    return {"providers_config": {name: text for name, text in config.items() if cast.mostly(0.7)}}


_CHANGES = {
    "send_notification": _send,
    "report_events": _events,
    "subscribe": _subscribe,
    "unsubscribe": _device,
    "update_provider_credentials": _providers,
}
