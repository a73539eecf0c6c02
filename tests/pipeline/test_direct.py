"""Sends to targets and to rules of their own: who becomes a recipient, and who still is one when a
worker calls."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.db.models.functions import Now

from notifications_app.erasure import person_forget
from notifications_app.models import Notification, Plan, Target
from notifications_app.pipeline import plan_queue, planning
from notifications_app.reporting import stored_data
from notifications_app.retention import purge
from pushsvc.common.ids import uuid7, uuid7_at
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from subscriptions_app.models import Person
from subscriptions_app.people.linking import devices_link
from tests import factories
from tests.api.support import owner_of
from tests.factories import make_direct_notification, make_person
from tests.pipeline import support
from tests.pipeline.halting import pause, resume
from tests.segments import attribute


@pytest.fixture(autouse=True)
def _small_windows(settings):
    settings.PLAN_WINDOW = 4
    settings.BATCH_SIZE = 3


def devices(notification):
    """Of each target, in the order of the send."""
    return list(Target.objects.of(notification.pk).values_list("devices", flat=True))


def link(subscription, person):
    name = None if person is None else person.external_id
    devices_link(channel=subscription.channel, links={subscription.pk: name})


def test_exactly_the_devices_of_the_targets_get_it_and_each_once(sandbox, channel):
    pairs = factories.subscribe_browsers(sandbox, channel, 6)
    rows = [row for _, row in pairs]
    ada, bob = make_person(channel, "ada"), make_person(channel, "bob")
    for row, person in zip(rows, [ada, ada, bob, bob], strict=False):
        link(row, person)
    notification = make_direct_notification(
        channel, people=["ada", "nobody"], subscriptions=[rows[1], rows[4]]
    )

    support.plan()
    support.deliver(notification)

    assert support.counts(notification) == ("sent", 3, 3, 0)
    assert [len(device.receipts) for device, _ in pairs] == [1, 1, 0, 0, 1, 0]
    assert devices(notification) == [2, None, 1, 1]
    support.assert_exact(channel)


def test_a_target_s_devices_add_up_over_the_platforms(channel):
    ada = make_person(channel, "ada")
    for platform in ("web", "web", "android", "ios"):
        factories.add_subscription(channel, person=ada, platform=platform)
    single = factories.add_subscription(channel, platform="android")
    notification = make_direct_notification(
        channel,
        people=["ada"],
        subscriptions=[single],
        target_platforms=["web", "android", "ios"],
    )

    support.plan(notification)

    assert devices(notification) == [4, 1]
    assert notification.recipient_count == 5


def test_platforms_that_are_planned_at_once_lose_no_count(channel):
    people = [make_person(channel, f"user-{n}") for n in range(60)]
    for platform in ("web", "ios"):
        factories.add_each(channel, [{"person": each, "platform": platform} for each in people])
    names = [each.external_id for each in people]
    sends = [
        make_direct_notification(channel, people=order, target_platforms=["web", "ios"])
        for order in (names, names[::-1])
    ]

    support.in_threads(*[lambda: planning.work(seconds=60)] * 3)

    for notification in sends:
        assert devices(notification) == [2] * 60
    support.assert_exact(channel)


def test_who_is_of_another_channel_or_inactive_gets_nothing(channel, other_channel):
    theirs = factories.add_subscription(other_channel, person=make_person(other_channel, "ada"))
    gone = factories.add_subscription(channel, person=make_person(channel, "bob"))
    subscription_unsubscribe(channel=channel, address=Address.of("web", gone.address))
    notification = make_direct_notification(
        channel, people=["ada", "bob"], subscriptions=[theirs, gone]
    )

    support.plan()

    assert support.counts(notification) == ("sent", 0, 0, 0)
    assert devices(notification) == [None, 0, None, 0]


def test_more_devices_than_a_window_are_planned_in_one(channel):
    ada = make_person(channel, "ada")
    rows = factories.add_subscriptions(channel, 11, person=ada)
    notification = make_direct_notification(channel, people=["ada"])
    plan_queue.start_due()

    assert support.plan_window(support.claim_plan()) is False

    assert support.planned_ids(notification) == support.ids(rows)


def test_a_direct_send_reads_its_own_devices_and_not_the_channel(channel):
    factories.add_subscriptions(channel, 2500)
    others = [make_person(channel, f"other-{n}") for n in range(300)]
    factories.add_each(channel, [{"person": each} for each in others])
    sql.execute("ANALYZE subscriptions_app_subscription, subscriptions_app_person", {})
    (mine,) = factories.add_subscriptions(channel, 1, person=make_person(channel, "ada"))
    notification = make_direct_notification(channel, people=["ada", "nobody"])
    plan_queue.start_due()
    lease = support.claim_plan()

    assert support.most_rows_read(lambda: support.plan_window(lease)) < 100
    assert support.planned_ids(notification) == [mine.id]


def test_a_planner_that_dies_in_the_window_leaves_no_count(channel, monkeypatch):
    ada = make_person(channel, "ada")
    rows = factories.add_subscriptions(channel, 3, person=ada)
    notification = make_direct_notification(channel, people=["ada"])
    plan_queue.start_due()
    with monkeypatch.context() as dying:
        dying.setattr(planning, "counters_add", _die)
        with pytest.raises(RuntimeError):
            support.plan_window(support.claim_plan())
    assert devices(notification) == [None]

    Plan.objects.update(lease_until=Now() - timedelta(seconds=1))
    support.plan(notification)

    assert support.planned_ids(notification) == support.ids(rows)
    assert devices(notification) == [3]
    support.assert_exact(channel)


def _die(*_arguments, **_options):
    raise RuntimeError("the planner died")


# --- at hand-over ---------------------------------------------------------------------------------


def test_who_signs_out_or_in_while_it_waits_does_not_get_it(sandbox, channel):
    pairs = factories.subscribe_browsers(sandbox, channel, 4)
    rows = [row for _, row in pairs]
    ada, bob, eve = (make_person(channel, name) for name in ("ada", "bob", "eve"))
    for row in rows:
        link(row, ada)
    notification = make_direct_notification(channel, people=["ada", "bob"])
    support.plan()

    link(rows[0], None)
    link(rows[1], eve)
    link(rows[2], bob)  # whom the send names, too
    support.deliver(notification)

    assert [len(device.receipts) for device, _ in pairs] == [0, 0, 1, 1]
    assert support.codes(notification) == ["", "", "person_changed", "person_changed"]
    assert support.counts(notification) == ("sent", 4, 2, 2)
    support.assert_exact(channel)


def test_a_subscription_that_is_named_itself_gets_it_whoever_signs_in(sandbox, channel):
    ((device, row),) = factories.subscribe_browsers(sandbox, channel)
    notification = make_direct_notification(channel, subscriptions=[row])
    support.plan()

    link(row, make_person(channel, "eve"))
    support.deliver(notification)

    assert len(device.receipts) == 1


def test_who_signs_out_during_a_pause_does_not_get_it(sandbox, channel):
    ((device, row),) = factories.subscribe_browsers(sandbox, channel)
    link(row, make_person(channel, "ada"))
    notification = make_direct_notification(channel, people=["ada"])
    support.plan()
    pause(notification)
    link(row, None)
    resume(notification)

    support.deliver(notification)

    assert (len(device.receipts), support.codes(notification)) == (0, ["person_changed"])


def test_a_person_that_was_erased_gets_nothing_that_waits(sandbox, channel):
    ((device, row),) = factories.subscribe_browsers(sandbox, channel)
    link(row, make_person(channel, "ada"))
    notification = make_direct_notification(channel, people=["ada"])
    support.plan()

    person_forget(channel=channel, external_id="ada")
    support.deliver(notification)

    assert (len(device.receipts), support.codes(notification)) == (0, ["unsubscribed"])
    assert devices(notification) == [1]
    assert not Target.objects.filter(external_id="ada").exists()


def test_a_plain_send_asks_nothing_about_targets(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel)
    notification = factories.make_notification(channel)
    with support.statements() as made:
        support.plan()
        support.deliver(notification)
    assert support.counts(notification) == ("sent", 1, 1, 0)
    assert not [each for each in made if "notifications_app_target" in each]


def test_who_refuses_the_category_is_left_out_though_named(sandbox, channel):
    pairs = factories.subscribe_browsers(sandbox, channel, 3)
    rows = [row for _, row in pairs]
    factories.make_category(channel, "offers", default=True)
    for row, name in zip(rows, ["ada", "bob", "eve"], strict=True):
        link(row, make_person(channel, name))
    refuse("bob")
    notification = make_direct_notification(
        channel, people=["ada", "bob", "eve"], category="offers"
    )
    support.plan()

    refuse("eve")  # while it waits
    support.deliver(notification)

    assert [len(device.receipts) for device, _ in pairs] == [1, 0, 0]
    assert devices(notification) == [1, 0, 1]
    assert support.codes(notification) == ["", "opted_out"]
    support.assert_exact(channel)


def refuse(name):
    Person.objects.filter(external_id=name).update(choices={"offers": False})


# --- rules of their own ---------------------------------------------------------------------------


@pytest.mark.parametrize("operator", ["eq", "starts_with"])  # with and without the index
def test_a_rule_of_its_own_selects_as_a_segment_does(channel, operator):
    rows = factories.add_each(
        channel, [{"attributes": {"plan": plan}} for plan in ["pro", "free"] * 6]
    )
    rule = attribute("plan", operator, "pro")
    notification = factories.make_notification(channel, rule=rule)

    support.plan(notification)

    assert support.planned_ids(notification) == support.ids(rows[::2])
    support.assert_exact(channel)


def test_an_export_has_what_a_person_was_sent_however_much_others_got(
    sandbox, channel, monkeypatch
):
    monkeypatch.setattr(stored_data, "_MOST", 1)
    (_, own), (_, other) = factories.subscribe_browsers(sandbox, channel, 2)
    devices_link(channel=channel, links={own.pk: "ada"})
    for send in ({"people": ["ada"]}, {"subscriptions": [own]}, {}, {"subscriptions": [other]}):
        make = make_direct_notification if send else support.send
        make(channel, **send, body=str(send))
        support.plan()
        support.deliver()

    path = f"/channel/{channel.pk}/person/export?external_id=ada"
    (device,) = owner_of(channel).call("GET", path).json()["devices"]

    assert [each["outcome"] for each in device["deliveries"]] == ["delivered"] * 3
    assert device["deliveries"][0]["body"] == "{}"


# --- retention ------------------------------------------------------------------------------------


def test_targets_are_kept_as_long_as_deliveries(tampered_channel, settings):
    kept = timedelta(days=settings.DELIVERY_RETENTION_DAYS)
    long_ago = sql.now() - kept - timedelta(days=2)
    ends = {
        "sent": [sql.now() - kept - timedelta(days=1), sql.now() - kept / 2],
        "cancelled": [sql.now() - kept - timedelta(days=1)],
        "pending": [None],
    }
    sends = [
        make_direct_notification(
            tampered_channel,
            people=["ada"],
            id=_id_of(long_ago),
            status=status,
            finished_at=moment,
        )
        for status, moments in ends.items()
        for moment in moments
    ]

    purge()

    left = set(Target.objects.values_list("notification_id", flat=True))
    assert left == {sends[1].id, sends[3].id}


def test_targets_are_kept_as_long_as_deliveries_of_a_correction(tampered_channel, settings):
    """They say whom the next correction reaches, and who lists this one in an inbox."""
    over = sql.now() - timedelta(days=settings.DELIVERY_RETENTION_DAYS + 1)
    root, _ = (
        make_direct_notification(
            tampered_channel, people=["ada"], id=_id_of(over), status="sent", finished_at=over
        )
        for _ in range(2)
    )
    correction = factories.make_notification(tampered_channel, root_id=root.pk)
    own = Notification.objects.filter(pk=correction.pk)

    def kept(**fields):
        own.update(**fields)
        purge()
        return set(Target.objects.values_list("notification_id", flat=True))

    assert kept() == {root.pk}
    assert kept(status="sent", finished_at=sql.now()) == {root.pk}
    assert kept(finished_at=over) == set()


def _id_of(moment):
    """An id that is made at this moment."""
    return UUID(int=uuid7_at(moment).int | uuid7().int % 2**80)
