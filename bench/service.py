"""A channel whose devices are at the sink, and the workers of one platform, with own servers."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.database import own_database
from bench.meter import Spent, spending
from bench.processes import running_beat, running_worker
from bench.sink import HOST, Sink
from bench.work import BODY, TITLE, Work
from pushsvc.common.platforms import Platform

if TYPE_CHECKING:
    from channels_app.models import Channel

_LOOK_SECONDS: Final = 0.1
_LIMIT_SECONDS: Final = 1_800.0


@dataclass(frozen=True)
class Sent:
    """The cost of sending one notification, of the platform's worker and of other processes."""

    worker: Spent
    planner: Spent
    database: Spent


@dataclass(frozen=True)
class Service:
    """A channel with devices of one platform, and one process of that platform's worker."""

    platform: Platform
    key: str
    worker: int
    planner: int
    database: int

    def spend(self, *, meanwhile: Callable[[str, str], None] | None = None, **content: Any) -> Sent:
        """Sends one notification to all devices, and waits until the last outcome is recorded.
        Raises RuntimeError unless all were delivered. `meanwhile`: called after the request with
        the key and the id of the notification."""
        with (
            spending(self.database) as database,
            spending(self.planner) as planner,
            spending(self.worker) as worker,
        ):
            notification_id = send(self.key, self.platform, **content)
            if meanwhile:
                meanwhile(self.key, notification_id)
            shown = self._await_sent(notification_id)
        if shown["delivered_count"] != shown["recipient_count"]:
            raise RuntimeError(f"not all were delivered: {shown}")
        return Sent(worker, planner, database)

    def _await_sent(self, notification_id: str) -> dict[str, Any]:
        until = time.monotonic() + _LIMIT_SECONDS
        while (found := shown(self.key, notification_id))["status"] != "sent":
            if time.monotonic() > until:
                raise RuntimeError(f"not sent after {_LIMIT_SECONDS:.0f} s: {found}")
            time.sleep(_LOOK_SECONDS)
        return found


def send(key: str, platform: Platform, **content: Any) -> str:
    """Sends to the key's channel, in this process. Returns the notification's id. `content`: more
    fields of the send."""
    from django.test import Client

    body = {"title": TITLE, "body": BODY, "target_platforms": [platform], **content}
    answer = Client().post(
        "/send-notification", json.dumps(body), "application/json", headers=_authorization(key)
    )
    if answer.status_code != 202:
        raise RuntimeError(f"the send was answered {answer.status_code}: {answer.content!r}")
    return str(answer.json()["notification_id"])


def decide(key: str, notification_id: str, variant: str) -> bool:
    """Chooses the winner of a test. False if the test has not begun."""
    from django.test import Client

    answer = Client().post(
        f"/notification/{notification_id}/winner",
        json.dumps({"variant": variant}),
        "application/json",
        headers=_authorization(key),
    )
    if answer.status_code not in {200, 409}:
        raise RuntimeError(f"the choice was answered {answer.status_code}: {answer.content!r}")
    return answer.status_code == 200


def shown(key: str, notification_id: str) -> dict[str, Any]:
    from django.test import Client

    answer = Client().get(f"/notification/{notification_id}", headers=_authorization(key))
    found: dict[str, Any] = answer.json()
    return found


def _authorization(key: str) -> dict[str, str]:
    return {"Authorization": f"Key {key}"}


@contextmanager
def running_service(platform: Platform, work: Work, sink: Sink) -> Iterator[Service]:
    with ExitStack() as stack:
        database = stack.enter_context(own_database(durable=True, **sink_settings(sink)))
        channel, key = make_channel(platform, work)
        _subscribe(channel, platform, work)
        stack.enter_context(running_beat())
        planner = stack.enter_context(running_worker("worker-plan"))
        worker = stack.enter_context(running_worker(f"worker-{platform}"))
        yield Service(platform, key, worker.pid, planner.pid, database)


def sink_settings(sink: Sink) -> dict[str, str]:
    """Settings that send all messages to the sink."""
    return {
        "WEBPUSH_TRUSTED_ORIGINS": sink.origin,
        "FCM_API_BASE": sink.origin,
        "GOOGLE_TOKEN_URI": f"{sink.origin}/token",
        "APNS_SERVER": f"{HOST}:{sink.port}",
        "PROVIDER_CA_FILE": str(sink.authority),
    }


def make_channel(platform: Platform, work: Work) -> "tuple[Channel, str]":
    """A channel that may send to the platform, and an API key."""
    from channels_app.services import api_key_issue, channel_create, provider_credentials_store

    channel = channel_create(name="Bench")
    if platform == Platform.ANDROID:
        account = Path(work.content["fcm"]["account_file"]).read_text()
        provider_credentials_store(channel=channel, fcm_service_account=account)
    elif platform == Platform.IOS:
        provider_credentials_store(channel=channel, apns_key=apns_key(work.content["apns"]))
    _have_no_check(channel)
    channel.refresh_from_db()
    return channel, api_key_issue(channel=channel, name="bench")[1]


def _have_no_check(channel: "Channel") -> None:
    """Prevents the check of new credentials, whose message the sink would count."""
    from channels_app.pauses import credential_check_claim

    for credential in channel.credentials.all():
        credential_check_claim(credential)


def apns_key(apns: dict[str, str]) -> str:
    names = ("key_id", "team_id", "topic")
    key = Path(apns["key_file"]).read_text()
    return json.dumps({"key": key, "environment": "production", **{n: apns[n] for n in names}})


def _subscribe(channel: "Channel", platform: Platform, work: Work) -> None:
    """Subscribes the first device with the service; stores the others like it."""
    from subscriptions_app.addresses import Address
    from subscriptions_app.devices.registration import subscription_register
    from subscriptions_app.devices.values import Facts
    from subscriptions_app.models import Subscription

    first, *others = _devices(platform, work.content)
    address = Address.of(platform, first.pop("address"))
    subscription_register(channel=channel, address=address, facts=Facts(**first))
    row = Subscription.objects.filter(channel=channel).values().get()
    stored = {name: value for name, value in row.items() if name != "id"}
    Subscription.objects.bulk_create(
        Subscription(
            **stored | device | {"address_sha256": Address.of(platform, device["address"]).digest}
        )
        for device in others
    )


def _devices(platform: Platform, content: dict[str, Any]) -> list[dict[str, Any]]:
    if platform != Platform.WEB:
        return [{"address": token} for token in content["tokens"]]
    return [
        {"address": each["endpoint"], "p256dh": each["p256dh"], "auth": each["auth"]}
        for each in content["web"]
    ]
