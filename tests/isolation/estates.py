"""Two accounts with one row of every kind, and the names under which each can be asked for.

Everything of Bob's is called zebra. No member of Alice's account may read that word.
"""

import json
from dataclasses import dataclass
from datetime import timedelta

from auditlog.models import LogEntry
from django.db import connection
from django.db.models.functions import Now

from channels_app.identity_keys import identity_key_create
from channels_app.models import Account, ApiKey, Channel, IdentityKey, Scope, Webhook
from channels_app.selectors import current_vapid_key
from channels_app.services import api_key_issue, provider_credentials_store
from channels_app.webhooks import webhook_create
from notifications_app.content.tracking import make_token
from notifications_app.images.decoding import Use
from notifications_app.images.services import image_add
from notifications_app.models import Notification
from pushsvc.common import base64url
from subscriptions_app.models import Person, Segment, Subscription
from subscriptions_app.tags.services import TagChange
from tests.admin.support import House, fill_hours, make_house
from tests.api.credentials import APPLE, GOOGLE
from tests.api.support import owner_of
from tests.factories import (
    browser_keys,
    make_automation,
    make_category,
    make_device,
    make_key,
    make_newsfeed,
    make_notification,
    make_person,
    make_schedule,
    make_template,
    make_waiting,
    register,
)
from tests.images import file_of
from tests.pipeline.support import plan

ENDPOINT = "https://updates.push.services.mozilla.com/wpush/v2/"

# Values that nobody has, by kind.
MISSING = {
    "id": "0192f0c1-0000-7000-8000-00000000dead",
    "number": "798765",
    "name": "nobody-at-all",
    "digest": "dead" * 16,
    "endpoint": f"{ENDPOINT}nobody-has-this-one",
    "auth": browser_keys()["auth"],
    "android_token": "nobody-at-all:has-this-one",
    "ios_token": "dead" * 16,
    "once": "order-nobody",
    "category": "nobody-at-all",
    "person": "user-nobody",
    "vapid_key": browser_keys()["p256dh"],
    "token": base64url.encode(b"\xde\xad" * 24),
    "tag": "nobody-has-it",
}


def nobodys(kind: str, like: str) -> str:
    """A value that nobody has, as long as the given one."""
    return MISSING[kind][: len(like)].ljust(len(like), "0")


@dataclass
class Estate:
    """`ids`: the ids in the paths of its own routes. `things`: its other identifiers.

    The estate's own people may send both. `guesses` is what others can make up from them.
    """

    house: House
    ids: dict[str, str]
    things: dict[str, list[str]]

    @property
    def channel(self) -> Channel:
        return self.house.channel

    @property
    def account(self) -> Account:
        return self.house.account

    def key(self, *scopes: Scope) -> str:
        return make_key(self.channel, scopes=list(scopes))

    @property
    def guesses(self) -> dict[str, list[str]]:
        """Whoever knows a token may use it. Whoever knows the ids in it cannot make one."""
        forged = [token[:43] + MISSING["token"][43:] for token in self.things["token"]]
        return self.things | {"token": forged}

    def named(self, name: str, kind: str) -> str:
        """Its own thing of the kind that a route means by the name."""
        return self.ids.get(name.removeprefix("previous_")) or self.things[kind][0]


def make_estate(name: str, word: str) -> Estate:
    house = make_house(name)
    _rename(house, word)
    channel = house.channel
    channel.inbox_days = 7
    channel.save()
    fill_hours(channel, days=1)
    provider_credentials_store(
        channel=channel,
        fcm_service_account=json.dumps(GOOGLE | {"project_id": f"{word}-1"}),
        apns_key=json.dumps(APPLE),
    )
    channel.refresh_from_db()
    devices = _devices(channel, word)
    make_person(channel, f"user-{word}")
    segment = Segment.objects.create(channel=channel, name=word, rule=_rule(word))
    key, _ = api_key_issue(channel=channel, name=word)
    sent = make_notification(channel, title=word, body=word, url=f"https://{word}.example/")
    plan(sent)
    rows = {
        "channel": channel,
        "key": key,
        "segment": segment,
        "category": make_category(channel, word),
        "identity_key": _identity_key(channel),
        "webhook": _webhook(channel),
        "subscription": devices[0],
        "person": Person.objects.create(channel=channel, external_id=word, left_at=Now()),
        "notification": _pending(channel, word, segment),
        "sent": sent,
        "template": make_template(channel, word, {"title": word, "body": word}),
        "schedule": make_schedule(channel, word),
        "automation": make_automation(channel, word),
        "newsfeed": make_newsfeed(channel, word),
        "draft": make_waiting(channel, house.members["editor"], title=word, note=word),
        "device": make_device(channel, devices[0], house.members["owner"], name=word),
        "image": image_add(
            channel=channel, data=file_of(), use=Use.ICON, user=house.members["owner"]
        ),
    }
    house.rows = rows
    owner_of(channel).send({"body": word}, **{"Idempotency-Key": f"order-{word}"})
    return Estate(house, _ids(rows, word), _things(house, rows, devices, word))


def add_channel(estate: Estate) -> Estate:
    """A second channel of the same account, with its own segment and notification."""
    channel = Channel.objects.create(account=estate.account, name="second")
    channel.vapid_keys.create(public_key=browser_keys()["p256dh"], private_key_encrypted="x")
    segment = Segment.objects.create(channel=channel, name="second", rule=_rule("second"))
    rows = {
        "channel": channel,
        "segment": segment,
        "category": make_category(channel, "second"),
        "template": make_template(channel, "second"),
        "schedule": make_schedule(channel, "second"),
        "automation": make_automation(channel, "second"),
        "newsfeed": make_newsfeed(channel, "second"),
        "identity_key": _identity_key(channel),
        "webhook": _webhook(channel),
        "notification": _pending(channel, "second", segment),
    }
    house = House(estate.account, channel, estate.house.members)
    return Estate(house, _ids(rows, "second"), {})


def number_from(first: int) -> None:
    """Keys of the packages' tables start there, so that no key is part of another number."""
    for table in ("auth_user", "channels_app_membership", "auditlog_logentry"):
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} ALTER COLUMN id RESTART WITH {first}")


def _pending(channel: Channel, word: str, segment: Segment) -> Notification:
    tomorrow = Now() + timedelta(days=1)
    return make_notification(
        channel, title=word, body=word, segment_id=segment.pk, scheduled_at=tomorrow
    )


def _identity_key(channel: Channel) -> IdentityKey:
    return identity_key_create(channel=channel, public_key=None)[0]


def _webhook(channel: Channel) -> Webhook:
    url = f"https://backend.{channel.name}.example.com/"
    return webhook_create(channel=channel, url=url, events=["notifications.finished"])[0]


def _rule(word: str) -> dict[str, str]:
    return {"attribute": word, "operator": "eq", "value": word}


def _rename(house: House, word: str) -> None:
    house.account.name = house.channel.name = word
    house.account.save()
    house.channel.save()
    for role, user in house.members.items():
        user.username = f"{word}-{role}"
        user.save()


def _devices(channel: Channel, word: str) -> list[Subscription]:
    addresses = {
        "web": f"{ENDPOINT}{word}",
        "android": f"{word}:the-token-of-a-phone",
        "ios": f"{word.encode().hex():0<64}",
    }
    auth = browser_keys()["auth"]
    return [
        register(
            channel,
            platform,
            address,
            auth=auth,
            attributes={word: word},
            tags=TagChange(added=[f"{word}-fans"]),
        )
        for platform, address in addresses.items()
    ]


def _ids(rows: dict, word: str) -> dict[str, str]:
    ids = {f"{name}_id": str(row.pk) for name, row in rows.items()}
    ids["category_key"] = rows["category"].key
    return ids | {"account_id": str(rows["channel"].account_id), "tag": f"{word}-fans"}


def _things(house: House, rows: dict, devices: list, word: str) -> dict[str, list[str]]:
    web, android, ios = devices
    others = [
        *devices[1:],
        house.account,
        current_vapid_key(house.channel),
        *house.channel.credentials.all(),
    ]
    users = list(house.members.values())
    memberships = house.account.memberships.all()
    entries = LogEntry.objects.filter(additional_data__account=str(house.account.pk))
    return {
        "id": [str(row.pk) for row in [*rows.values(), *others]],
        "number": [str(row.pk) for row in [memberships[0], users[0], entries[0]]],
        "name": [users[0].username, ApiKey.objects.get(pk=rows["key"].pk).public_id],
        "digest": [bytes(web.address_sha256).hex()],
        "endpoint": [web.address],
        "auth": [web.auth],
        "android_token": [android.address],
        "ios_token": [ios.address],
        "once": [f"order-{word}"],
        "category": [word],
        "person": [f"user-{word}"],
        "vapid_key": [current_vapid_key(house.channel).public_key],
        "token": [make_token(rows["sent"].pk, web.pk)],
        "tag": [f"{word}-fans"],
    }
