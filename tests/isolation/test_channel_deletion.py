"""A channel that is deleted: who is refused meanwhile, and that nothing of it is left."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import AutoField
from django.db.models.functions import Now

from channels_app.counters import prompt_count
from channels_app.models import Channel, PromptKind, WebhookAttempt, WebhookMessage
from notifications_app import deletion
from notifications_app.deletion import deletion_ask, deletion_undo, purge_deleted
from notifications_app.models import Occurrence
from notifications_app.pipeline import breakers
from pushsvc.common.ids import uuid7
from pushsvc.common.store.redis_client import redis_client
from tests.factories import make_direct_notification
from tests.isolation.operations import OF_SOMEBODY

pytestmark = pytest.mark.django_db
OWNERS = ("channel_id", "notification_id", "schedule_id", "webhook_id", "subscription_id")
OWNERS += ("automation_id",)
NOBODY = UUID(int=0)
HOUR = datetime(2026, 11, 20, 12, tzinfo=UTC)
# What a device reports and whom a click leads where, the token alone says. A device that leaves
# must not come back when the deletion is undone.
SERVED = {"events", "c/<token>", "unsubscribe"}


def ask(operation, estate):
    key = {"Authorization": f"Key {estate.key('send', 'read', 'manage', 'subscribers')}"}
    return operation.request(estate).ask(**(key if operation.is_keyed else {}))


def is_deleted(response):
    is_it = response.status_code == 403 and response.content
    return bool(is_it) and response.json()["code"] == "channel_deleted"


def test_a_channel_that_is_being_deleted_only_can_be_read_and_left(alice, second):
    by_route = {each.route: each for each in OF_SOMEBODY}
    deletion_ask(channel_id=alice.channel.pk)

    for operation in OF_SOMEBODY:
        if operation.method != "HEAD" and operation.route not in SERVED:
            is_read = operation.is_keyed and operation.method == "GET"
            assert is_deleted(ask(operation, alice)) != is_read, operation
    assert ask(by_route["unsubscribe"], alice).status_code == 200
    send = by_route["send-notification"]
    assert ask(send, second).status_code == 202

    deletion_undo(channel_id=alice.channel.pk)
    assert ask(send, alice).status_code == 202


def owned():
    """(model, column that leads to a channel, perhaps by a row that has one)"""
    for model in apps.get_models():
        names = {each.column for each in model._meta.concrete_fields}
        yield from ((model, each) for each in OWNERS if each in names)


def owners(estate):
    """The ids in the columns of `owned`, for rows of the estate's channel."""
    rows, channel = estate.house.rows, estate.channel
    return {
        "channel_id": [channel.pk],
        "notification_id": NOTIFICATIONS[channel.pk],
        "schedule_id": [rows["schedule"].pk],
        "automation_id": [rows["automation"].pk],
        "webhook_id": [rows["webhook"].pk],
        "subscription_id": [rows["subscription"].pk],
    }


def fill(estate):
    """A row in each table in which the estate has none."""
    channel = estate.channel
    prompt_count(channel.pk, PromptKind.BELL, "shown")
    # Its webhook is gone.
    message = WebhookMessage.objects.create(channel_id=channel.pk, type="x", body=b"{}")
    WebhookAttempt.objects.create(message=message, webhook_id=NOBODY)
    skipped = {"occurs_at": HOUR - timedelta(days=1), "code": "skipped"}
    Occurrence.objects.create(schedule=estate.house.rows["schedule"], **skipped)
    make_direct_notification(channel, people=["user-lion"])
    NOTIFICATIONS[channel.pk] = list(channel.notifications.values_list("pk", flat=True))
    own = owners(estate)
    ids = {name: each[0] for name, each in own.items()}
    # `key`: of whom a contact is.
    ids |= {"message_id": message.pk, "key": ids["subscription_id"]}
    for model, column in owned():
        if not model._default_manager.filter(**{f"{column}__in": own[column]}).exists():
            values = {each.attname: value_of(each, ids) for each in model._meta.concrete_fields}
            model._default_manager.create(
                **{name: each for name, each in values.items() if each is not None}
            )
    NOTIFICATIONS[channel.pk] = list(channel.notifications.values_list("pk", flat=True))


def value_of(field, ids):
    """A value that the field accepts. None: the model has one."""
    if field.column in ids:
        return ids[field.column]
    if field.has_default() or field.has_db_default() or field.null or isinstance(field, AutoField):
        return None
    if field.choices:
        return field.choices[0][0]
    kinds = {"DateTimeField": HOUR, "UUIDField": uuid7(), "JSONField": {}, "BinaryField": b"x"}
    kinds |= {"DateField": HOUR.date(), "ArrayField": []}
    numbers = field.get_internal_type().endswith("IntegerField")
    return kinds.get(field.get_internal_type(), 1 if numbers else "x")


def rows_of(estate):
    """How many rows lead to the estate's channel, which may be gone, by table and column."""
    ids = owners(estate)
    found = {
        f"{model._meta.label} {column}": model._default_manager.filter(
            **{f"{column}__in": ids[column]}
        ).count()
        for model, column in owned()
    }
    return found | {"channel": Channel.objects.filter(pk=ids["channel_id"][0]).count()}


NOTIFICATIONS = {}


def everything():
    """What the database stores without the audit log, as `pg_dump` writes it."""
    parts = []
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        for (table,) in cursor.fetchall():
            if table != "auditlog_logentry":
                with cursor.copy(f'COPY "{table}" TO STDOUT') as copied:
                    parts += [bytes(part) for part in copied]
    return b"".join(parts).decode()


def make_old(channel):
    asked_at = Now() - timedelta(days=1)
    Channel.objects.filter(pk=channel.pk).update(deletion_asked_at=asked_at)


def test_nothing_of_a_deleted_channel_is_left(alice, bob, monkeypatch):
    monkeypatch.setattr(deletion, "_STEP", 2)
    fill(alice)
    fill(bob)
    before = rows_of(alice), rows_of(bob)
    assert all(before[0].values()), before[0]
    names = [breakers.of_channel("mozilla", each.channel.pk) for each in (alice, bob)]
    for name in names:
        redis_client().zadd("pushsvc:breaker:open", {name: 1})
        redis_client().set(f"pushsvc:breaker:level:{name}", 1)

    deletion_ask(channel_id=alice.channel.pk)
    make_old(alice.channel)
    purge_deleted()
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

    assert not any(rows_of(alice).values()), rows_of(alice)
    assert rows_of(bob) == before[1]
    left = everything()
    account = str(alice.account.pk)
    ids = set(alice.things["id"]) - {account}
    assert not [each for each in ids if each in left]
    assert redis_client().zrange("pushsvc:breaker:open", 0, -1) == [names[1]]
    assert redis_client().keys(f"*{alice.channel.pk}*") == []
    assert redis_client().keys(f"pushsvc:*{bob.channel.pk}*") != []
    redis_client().flushdb()


def test_within_the_day_nothing_is_deleted(alice):
    fill(alice)
    before = rows_of(alice)
    deletion_ask(channel_id=alice.channel.pk)

    purge_deleted()

    assert rows_of(alice) == before
