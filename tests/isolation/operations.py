"""Every method of every route of the URL configuration, and what each may be asked about.

Routes come from the configuration. Names of parameters come from the OpenAPI document, which is
made from the same code. A new route or name must be classified here.
"""

import json
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.test import Client
from django.test.client import ClientHandler
from django.urls import URLPattern, get_resolver
from rest_framework.views import APIView

from pushsvc.site.pages import _openapi
from tests.api.credentials import GOOGLE
from tests.factories import browser_keys

# Routes that belong to no channel. /demo shows the channel that `make run` recorded, to its own
# machine (tests/ops/test_run.py).
OF_NOBODY = {
    "",
    "docs",
    "docs/errors",
    "docs/examples",
    "docs/<str:name>",
    "sdk/<str:name>",
    "demo",
    "demo/sw.js",
    "demo/send",
    "demo/notifications/<id:notification_id>",
    # The page is the same for all. Who joins a channel, the invitation says
    # (tests/admin/subscriptions/test_devices.py).
    "test-device/<id:channel_id>",
    "test-device/<id:channel_id>/sw.js",
    "test-device/<id:channel_id>/join",
    # Whoever has the address loads the image (tests/api/test_images.py).
    "images/<str:name>",
    "openapi.json",
    "healthz",
    "readyz",
    "metrics",
}
# Parameters that name something of an owner, with its kind.
KINDS = {
    "channel_id": "id",
    "notification_id": "id",
    "replaces": "id",
    "segment_id": "id",
    "template_id": "id",
    "schedule_id": "id",
    "automation_id": "id",
    "newsfeed_id": "id",
    "category_key": "category",
    "category": "category",
    "identity_key_id": "id",
    "webhook_id": "id",
    "subscription_id": "id",
    "previous_subscription_id": "id",
    "X-Channel-ID": "id",
    "Idempotency-Key": "once",
    "endpoint": "endpoint",
    "previous_endpoint": "endpoint",
    "previous_auth": "auth",
    "provider_token": "android_token",
    "vapid_public_key": "vapid_key",
    "token": "token",
    "tag": "tag",
}
# Parameters that mean nothing alone.
NEEDS = {"previous_auth": "previous_endpoint", "previous_subscription_id": "previous_endpoint"}
# Names that a request makes if there is nothing of that name, by method and route.
MADE = {("POST", "channel/<id:channel_id>/tags/<tag:tag>/members"): {"tag"}}
# Parameters whose values are the sender's own text. Targets of a send may be anybody's: who gets
# something is for tests/pipeline/test_direct.py, and what a dry run says for test_api.py.
_PLAIN = """
from to interval
targets state actions action id web android ios
limit offset status scheduled_after scheduled_before Link Location title body icon url image
data ttl urgency topic target_platforms local_at quiet_hours to
scheduled_at expires_at dry_run external_id identity_token timezone language links algorithm
public_key private_key name rule platform keys p256dh auth attributes events event kind
key description default position choices opted_out
providers_config fcm_service_account apns_key apns_key_id apns_team_id apns_topic apns_environment
content personalize vars on_missing variants weight
test share minutes metric inconclusive variant
notification recurrence at starts_on ends_on count
send
every_minutes daily_limit
format include outcome dry_run attributes tags_from columns takeover_days
tags add_tags remove_tags prefix after external_ids subscription_ids remove
enabled since until
trigger delay_minutes recipient
category_required rate_per_minute caps limit hours cap once_per_days inbox_days label labels before
actions id action web_url android_url ios_url web android ios translations
"""
PLAIN = frozenset(_PLAIN.split())
_RULE = {"attribute": "plan", "operator": "eq", "value": "pro"}
_CATEGORY = {"name": "new", "default": False}
_WEBHOOK = {"url": "https://backend.shop.com/", "events": ["notifications.finished"]}
_TEMPLATE = {"name": "new", "content": {"body": "Hello"}}
# Bodies for routes whose path names the sender's own things.
_SCHEDULE = {
    "name": "new",
    "notification": {"body": "Hello"},
    "recurrence": {"rule": "FREQ=DAILY", "at": ["09:00"], "timezone": "UTC"},
}
_AUTOMATION = {
    "name": "new",
    "trigger": {"event": "subscriptions.created"},
    "delay_minutes": 10,
    "notification": {"body": "Hello"},
}
_NEWSFEED = {
    "name": "new",
    "url": "https://news.shop.com/feed",
    "notification": {"body": "{{ entry.title }}"},
}
_BODIES = {
    ("POST", "channel/<id:channel_id>/automations"): _AUTOMATION,
    ("PUT", "channel/<id:channel_id>/automations/<id:automation_id>"): _AUTOMATION,
    ("POST", "channel/<id:channel_id>/newsfeeds"): _NEWSFEED,
    ("PUT", "channel/<id:channel_id>/newsfeeds/<id:newsfeed_id>"): _NEWSFEED,
    ("POST", "channel/<id:channel_id>/schedules"): _SCHEDULE,
    ("PUT", "channel/<id:channel_id>/schedules/<id:schedule_id>"): _SCHEDULE,
    ("PUT", "channel/<id:channel_id>/providers"): {
        "providers_config": {"fcm_service_account": json.dumps(GOOGLE)}
    },
    ("PUT", "channel/<id:channel_id>/delivery-settings"): {"timezone": "UTC"},
    ("POST", "subscribe"): {"endpoint": "https://fcm.googleapis.com/x", "keys": browser_keys()},
    ("POST", "channel/<id:channel_id>/identity-keys"): {"algorithm": "HS256"},
    ("POST", "channel/<id:channel_id>/web-push-keys"): {"private_key": "A" * 42 + "E"},
    ("POST", "channel/<id:channel_id>/webhooks"): _WEBHOOK,
    ("PUT", "channel/<id:channel_id>/webhooks/<id:webhook_id>"): _WEBHOOK,
    ("POST", "channel/<id:channel_id>/webhooks/<id:webhook_id>/replay"): {
        "since": "2026-01-01T00:00:00Z"
    },
    ("POST", "channel/<id:channel_id>/people/devices"): {"links": []},
    ("POST", "unsubscribe"): {"endpoint": "https://fcm.googleapis.com/x"},
    ("POST", "send-notification"): {"body": "Hello"},
    ("POST", "notification/<id:notification_id>/winner"): {"variant": "a"},
    ("PATCH", "notification/<id:notification_id>"): {"body": "Hello"},
    ("POST", "channel/<id:channel_id>/segments"): {"name": "new", "rule": _RULE},
    ("PUT", "channel/<id:channel_id>/segments/<id:segment_id>"): {"name": "new", "rule": _RULE},
    ("POST", "channel/<id:channel_id>/templates"): _TEMPLATE,
    ("PUT", "channel/<id:channel_id>/templates/<id:template_id>"): _TEMPLATE,
    ("POST", "preferences"): {"endpoint": "https://fcm.googleapis.com/x"},
    ("POST", "prompt-events"): {"kind": "bell", "event": "shown"},
    ("POST", "channel/<id:channel_id>/categories"): {"key": "new"} | _CATEGORY,
    ("PUT", "channel/<id:channel_id>/categories/<slug:category_key>"): _CATEGORY,
    ("POST", "channel/<id:channel_id>/tags/<tag:tag>/members"): {"external_ids": ["user-42"]},
    ("PATCH", "channel/<id:channel_id>/person"): {"opted_out": True},
    ("POST", "events"): {"events": [{"token": "", "event": "clicked"}]},
}
# Routes whose body is a file, with a query.
_ROW = {"endpoint": "https://fcm.googleapis.com/fcm/send/x", "keys": browser_keys()}
_EXPLAIN = "channel/<id:channel_id>/explain"
_INBOX = "inbox"
_KEYS = browser_keys()
_FILES = {
    ("POST", "channel/<id:channel_id>/subscriptions/import"): (
        "application/x-ndjson",
        json.dumps(_ROW),
        {"format": "webpush_json", "dry_run": "true"},
    ),
}
# What is not taken apart: rules contain rules, and targets say nothing unless they are sent whole.
_NOT_ENTERED = ("SegmentRule", "TargetInput")
_HEADERS = {"X-Channel-ID", "Idempotency-Key"}


# Each client would make the middleware again, which takes a tenth of the time of a request.
_HANDLER = ClientHandler(enforce_csrf_checks=False)


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: dict | str | None = None
    headers: dict = field(default_factory=dict)
    kind: str = "application/json"

    def ask(self, **headers):
        """Its response, from an address of its own."""
        client = Client(REMOTE_ADDR="203.0.113.7")
        client.handler = _HANDLER
        return client.generic(
            self.method,
            self.path,
            self.text,
            content_type=self.kind,
            headers=self.headers | headers,
        )

    @property
    def text(self):
        if isinstance(self.body, str):
            return self.body
        return "" if self.body is None else json.dumps(self.body)


@dataclass(frozen=True)
class Operation:
    method: str
    route: str
    view: type[APIView]

    def __str__(self):
        return f"{self.method} {self.route}"

    @property
    def path_names(self):
        return [part.strip("<>").rpartition(":")[2] for part in self._parts if "<" in part]

    @property
    def _parts(self):
        return self.route.split("/")

    @property
    def is_keyed(self):
        return bool(self.view.authentication_classes)

    @property
    def names(self):
        """Every parameter, header and field that the document lists for it."""
        described = self._described()
        parameters = {each["name"] for each in described.get("parameters", [])}
        content = described.get("requestBody", {}).get("content", {})
        return parameters.union(*(_properties(each["schema"]) for each in content.values()))

    def _described(self):
        path = "/" + "/".join(
            f"{{{part.strip('<>').rpartition(':')[2]}}}" if "<" in part else part
            for part in self._parts
        )
        method = "get" if self.method == "HEAD" else self.method.lower()
        return _openapi()["paths"][path][method]

    def request(self, own, **named):
        """A request about an estate's own things, except for those that are `named`."""
        values = own.ids | named
        parts = [
            values[part.strip("<>").rpartition(":")[2]] if "<" in part else part
            for part in self._parts
        ]
        method = "GET" if self.method == "HEAD" else self.method
        body = _BODIES.get((method, self.route))
        headers = {"X-Channel-ID": own.ids["channel_id"]}
        headers |= {name: named[name] for name in _HEADERS & named.keys()}
        fields = {name: named[name] for name in named.keys() - _HEADERS - set(self.path_names)}
        path = "/" + "/".join(parts)
        if file := _FILES.get((method, self.route)):
            kind, text, query = file
            return Request(method, f"{path}?{urlencode(query | fields)}", text, headers, kind)
        if self.route == _EXPLAIN:
            return Request(self.method, path, _explained(own, fields), headers)
        if self.route == _INBOX:
            return Request(self.method, path, _proved(own, fields), headers)
        return Request(self.method, path, _filled(body, fields), headers)


def _explained(own, fields):
    """What is explained, for whom. A channel without a subscription names another id."""
    who = {"subscription_id": own.ids.get("subscription_id", own.ids["channel_id"])}
    what = {} if "notification_id" in fields else {"send": {"body": "Hello"}}
    return who | what | fields


def _proved(own, fields):
    """Of the estate's browser, or of its phone, with the `auth` of its devices, if it has some."""
    auth = own.things.get("auth", [_KEYS["auth"]])[0]
    if "provider_token" in fields:
        return {"platform": "android", "auth": auth, **fields}
    endpoint = own.things.get("endpoint", ["https://fcm.googleapis.com/x"])[0]
    return {"endpoint": endpoint, "keys": _KEYS | {"auth": auth}, **fields}


def _filled(body, fields):
    if "token" in fields:
        return {"events": [{"token": fields["token"], "event": "clicked"}]}
    if "subscription_id" in fields:
        return {"links": [{**fields, "external_id": "user-42"}]}
    if "provider_token" in fields:
        return {"platform": "android", **fields}
    return body if body is None else body | fields


def _properties(schema):
    """Names of an object's fields, and of the fields within."""
    schema = _resolved(schema)
    found = set(schema.get("properties", {}))
    for inner in [*schema.get("properties", {}).values(), schema.get("items")]:
        if inner is not None and not any(name in str(inner) for name in _NOT_ENTERED):
            found |= _properties(inner)
    return found


def _resolved(schema):
    name = schema.get("$ref", "").rpartition("/")[2]
    return _openapi()["components"]["schemas"][name] if name else schema


def operations():
    """All operations; each GET is a HEAD, too."""
    for pattern in get_resolver().url_patterns:
        view = getattr(getattr(pattern, "callback", None), "cls", None)
        if isinstance(pattern, URLPattern) and view is not None:
            for method in view.http_method_names:
                if hasattr(view, method):
                    yield Operation(method.upper(), str(pattern.pattern), view)
            if hasattr(view, "get"):
                yield Operation("HEAD", str(pattern.pattern), view)


ALL = list(operations())
OF_SOMEBODY = [each for each in ALL if each.route not in OF_NOBODY]
