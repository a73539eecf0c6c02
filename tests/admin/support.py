"""A console with users: a member of each role in Alice's account, Bob's account, and a
superuser."""

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from html import unescape
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from channels_app.models import Account, Channel, Membership, Role
from channels_app.services import api_key_issue
from channels_app.webhooks import webhook_create
from notifications_app.models import HourlyStat
from subscriptions_app.models import Person, Segment, Subscription
from tests.factories import (
    add_crowd,
    make_automation,
    make_channel,
    make_newsfeed,
    make_schedule,
    make_sent_notification,
    make_template,
    make_waiting,
)

PASSWORD = "correct-horse-battery-staple"
WORD = "zebra"  # of Bob's account. No member of Alice's may read it


@dataclass
class House:
    """An account, its channel, and its members by role."""

    account: Account
    channel: Channel
    members: dict[str, User] = field(default_factory=dict)
    # The ids in the console's addresses, by their kind.
    rows: dict[str, Any] = field(default_factory=dict)


def make_house(name: str) -> House:
    account = Account.objects.create(name=name)
    house = House(account, make_channel(f"{name}'s channel", account=account))
    for role in Role.values:
        user = User.objects.create(
            username=f"{name.lower()}-{role}",
            password=_hashed(*settings.PASSWORD_HASHERS),
            is_staff=True,
        )
        Membership.objects.create(account=account, user=user, role=role)
        house.members[role] = user
    return house


@functools.cache
def _hashed(*_hashers: str) -> str:
    """PASSWORD as the settings have it hashed. Each real hash takes a third of a second."""
    return make_password(PASSWORD)


def stocked(house: House) -> House:
    """Adds one row of each kind that an address of the console names. They are called WORD."""
    channel = house.channel
    Channel.objects.filter(pk=channel.pk).update(name=WORD)
    channel.refresh_from_db()
    add_crowd(channel, 2)
    rule = {"attribute": WORD, "operator": "eq", "value": WORD}
    sent = make_sent_notification(channel, title=WORD, body=WORD, status="pending")
    house.rows = {
        "channel": channel,
        "key": api_key_issue(channel=channel, name=WORD)[0],
        "segment": Segment.objects.create(channel=channel, name=WORD, rule=rule),
        "subscription": Subscription.objects.filter(channel=channel)[0],
        "person": Person.objects.create(channel=channel, external_id=WORD, left_at=Now()),
        "notification": sent,
        "draft": make_waiting(channel, house.members["editor"], title=WORD, note=WORD),
        "template": make_template(channel, WORD),
        "schedule": make_schedule(channel, WORD),
        "automation": make_automation(channel, WORD),
        "newsfeed": make_newsfeed(channel, WORD),
        "webhook": webhook_create(
            channel=channel,
            url=f"https://{WORD}.example.com/",
            events=["notifications.finished"],
            description=WORD,
        )[0],
    }
    return house


def signed_in(user: User, **options: Any) -> Client:
    """A browser with `options` of Django's client."""
    client = Client(**options)
    client.force_login(user, backend="channels_app.sign_in.backend.StaffBackend")
    return client


def said(answer):
    """The text of the page, without what differs between two requests."""
    page = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", answer.content.decode())
    return answer.status_code, re.sub(r'value="[\w-]*"', "", page), sorted(answer.headers)


@contextmanager
def deleted_after_its_lock(row: Model) -> Iterator[None]:
    """Somebody deletes the row after a request has locked and released it, and before the request
    reads it again."""
    table = f'FROM "{row._meta.db_table}"'
    was_locked = is_deleted = False

    def run(execute, statement, *arguments):
        nonlocal was_locked, is_deleted
        if was_locked and not is_deleted and statement.startswith("SELECT") and table in statement:
            is_deleted = True
            type(row)._default_manager.filter(pk=row.pk).delete()
        was_locked |= table in statement and "UPDATE" in statement
        return execute(statement, *arguments)

    with connection.execute_wrapper(run):
        yield
    assert is_deleted


def make_root() -> User:
    return User.objects.create_superuser("root", password=PASSWORD)


def fill_hours(channel: Channel, *, days: int = 30, platform: str = "web") -> None:
    """Hourly rows of the last days, with numbers that rise and fall."""
    last = timezone.now().replace(minute=0, second=0, microsecond=0)
    HourlyStat.objects.bulk_create(
        HourlyStat(
            channel=channel,
            platform=platform,
            hour=last - timedelta(hours=back),
            recipients=100 + back % 24 * 10,
            delivered=96 + back % 24 * 10,
            bounced=4,
            clicked=back % 7,
        )
        for back in range(days * 24)
    )


def subscriber(channel: Channel, **fields) -> Subscription:
    """The newest active subscription of a channel that `add_crowd` filled."""
    return Subscription.objects.filter(channel=channel, **fields).order_by("-id")[0]


def submit(client: Client, url: str, fields: dict[str, Any]) -> Any:
    """Posts the fields of a form of settings that was just opened."""
    seen = re.search(r'name="seen" value="([^"]*)"', client.get(url).content.decode())
    return client.post(url, {"seen": unescape(seen[1]) if seen else ""} | fields)
