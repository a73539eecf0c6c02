"""Beside a large channel, a window reads only its own channel's subscribers of its platform, and a
list only its channels' notifications."""

from functools import partial

from notifications_app.models import Notification, Plan
from notifications_app.pipeline import plan_queue, planning
from notifications_app.selectors import newest_ids
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import support

OTHERS = 10_000
TABLE = "subscriptions_app_subscription"


def lie_in_order():
    """As rows do that came one after the other. So PostgreSQL expects to find any channel's devices
    soon where it begins to read the primary key."""
    sql.execute(f"CLUSTER {TABLE} USING {TABLE}_pkey", {})
    sql.execute(f"ANALYZE {TABLE}", {})


def test_small_plans_are_read_by_their_own_platforms(channel, other_channel):
    own = factories.add_subscriptions(channel, 3)
    factories.add_crowd(other_channel, OTHERS, platform="android")
    lie_in_order()
    every = ["web", "android", "ios"]
    notifications = [factories.make_notification(channel, target_platforms=every) for _ in "ab"]
    plan_queue.start_due()
    leases = plan_queue.claim_plans(most=10)

    read = support.most_rows_read(partial(planning.plan_windows, leases))

    assert read < OTHERS / 10
    for notification in notifications:
        assert support.planned_ids(notification) == sorted(row.id for row in own)


def test_the_last_window_ends_where_the_channel_ends(channel, other_channel, settings):
    settings.PLAN_WINDOW = 200  # so that reading the whole channel for a window is clearly dearer
    factories.add_crowd(channel, 3_000)
    older = "overlay(id::text PLACING '00' FROM 1)::uuid"
    sql.execute(f"UPDATE {TABLE} SET id = {older}", {})  # noqa: S608 - constants
    factories.add_crowd(other_channel, 6_000)
    lie_in_order()
    factories.make_notification(channel)
    plan_queue.start_due()
    lease = support.claim_plan()
    for _ in range(3_000 // 200):
        assert support.plan_window(lease)

    read = support.most_rows_read(partial(support.plan_window, lease))

    assert read < 1_000
    assert Plan.objects.get().status == "delivering"


def test_the_newest_of_several_channels_are_read_by_channel(tampered_channel, other_channel):
    """As the console lists them for somebody who has both."""
    fields = {"body": "Fresh bread", "ttl": 3600, "target_platforms": ["web"], "status": "sent"}
    Notification.objects.bulk_create(
        Notification(channel=tampered_channel, **fields) for _ in range(5_000)
    )
    sql.execute("ANALYZE notifications_app_notification", {})
    wanted = newest_ids([tampered_channel.pk, other_channel.pk], limit=50)
    found = Notification.objects.filter(id__in=wanted)

    read = support.most_rows_read(lambda: list(found))

    assert read <= 100
    assert found.count() == 50
