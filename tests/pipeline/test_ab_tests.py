"""A test of variants: a part of the audience gets all of them, and the rest the one that is found.
Nobody gets two messages, and nobody of the audience is left out."""

import json
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest
from django.db.models import F
from django.db.models.functions import Now

from channels_app.models import Webhook, WebhookMessage
from notifications_app import tasks
from notifications_app.events import Event, events_record
from notifications_app.models import NO_SUBSCRIPTION, Batch, Notification, Plan, VariantCount
from notifications_app.pipeline import deciding, halting, splitting
from notifications_app.pipeline.timed_starts import start_timed
from notifications_app.reporting.activity import states_of
from notifications_app.reporting.details import variant_results
from notifications_app.reporting.explaining import devices_asked, notification_explained
from notifications_app.sends.services import notification_decide
from pushsvc.common.store import sql
from tests import factories
from tests.api.support import owner_of
from tests.pipeline import phones, support
from tests.pipeline.test_languages import texts
from tests.pipeline.test_variants import CHI_SQUARED, SHOWN, VARIANTS, assert_sums, given_to

TEST = {"share": 50, "minutes": 120, "metric": "clicked", "inconclusive": "leader"}
HOUR = timedelta(hours=1)


def begin(channel, *platforms, test=(), **fields):
    """A notification whose tested part has got its variants."""
    platforms = platforms or ("web",)
    fields = {"title": "Bread", "extras": {"variants": VARIANTS}, "ttl": 3600} | fields
    return phones.send(channel, *platforms, test={**TEST, **dict(test)}, **fields)


def end_test(notification):
    """Ends the time of the test, and decides it in a tick."""
    row = Notification.objects.filter(pk=notification.pk)
    row.update(decides_at=Now())
    tick_decides(notification)


def tick_decides(notification):
    tasks._decide_tests()
    notification.refresh_from_db()


def finish(notification):
    support.plan()
    phones.deliver(notification, *notification.target_platforms)


def click(notification, number, share=1.0, kind="clicked"):
    """The recipients of a variant, or a share of them, click."""
    own = sorted(pk for pk, variant in given_to(notification).items() if variant == number)
    events_record([Event(notification.pk, pk, kind) for pk in own[: round(len(own) * share)]])


def test_the_best_variant_goes_to_the_rest(sandbox, channel):
    browsers = factories.subscribe_browsers(sandbox, channel, 60)
    notification = begin(channel)
    tested = given_to(notification)
    assert notification.status == "processing"
    assert 0 < len(tested) < 60
    assert set(tested.values()) == {0, 1}
    assert tested.keys() == {row.pk for _, row in browsers} - splitting.rest_of(
        notification, [row.pk for _, row in browsers]
    )
    assert notification.decides_at == notification.started_at + timedelta(minutes=120)
    click(notification, 1)

    end_test(notification)
    finish(notification)

    assert (notification.winner, notification.decision["by"]) == (1, "leader")
    assert notification.decision["p_value"] is None
    assert notification.decides_at is None
    assert support.counts(notification) == ("sent", 60, 60, 0)
    given = given_to(notification)
    assert given.items() >= tested.items()
    assert {given[pk] for pk in given.keys() - tested.keys()} == {1}
    for device, row in browsers:
        assert [texts(device)] == [SHOWN[given[row.pk]]]
        assert len(device.receipts) == 1
    assert_sums(notification)


def test_the_time_of_a_test_is_no_time_to_hand_over(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 5)
    notification = begin(channel)
    end_test(notification)
    finish(notification)
    assert support.is_sent(notification)

    address = f"/channel/{channel.pk}/statistics"
    assert owner_of(channel).call("GET", address).json()["hand_over"] == []


def test_the_rest_waits_for_the_decision_even_if_it_is_due(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 20)
    notification = begin(channel)
    tested = given_to(notification)
    Plan.objects.filter(part=1).update(release_at=Now(), due_at=Now())

    finish(notification)

    assert given_to(notification) == tested
    assert Plan.objects.get(part=1).due_at > sql.now()
    Plan.objects.update(due_at=Now())
    end_test(notification)
    finish(notification)
    assert support.counts(notification)[:2] == ("sent", 20)


def test_planners_of_a_version_without_tests_find_nobody(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 5)
    notification = begin(channel)

    plans = Plan.objects.filter(notification=notification).order_by("part")

    assert [(each.part, each.bucket_from, each.bucket_to) for each in plans] == [
        (0, 0, 5_000),
        (1, 5_000, 10_000),
    ]
    assert {each.only_subscription_id for each in plans} == {NO_SUBSCRIPTION}
    end_test(notification)
    finish(notification)


def test_deadlines_count_from_each_parts_release(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 5)
    notification = begin(channel)
    first, rest = Plan.objects.filter(notification=notification).order_by("part")
    assert first.deadline_at == first.release_at + HOUR
    assert rest.release_at == rest.due_at == notification.decides_at + HOUR
    assert rest.deadline_at == notification.deadline_at == rest.release_at + HOUR

    end_test(notification)

    rest.refresh_from_db()
    assert rest.release_at == rest.due_at <= sql.now()
    assert rest.deadline_at == notification.deadline_at == rest.release_at + HOUR
    finish(notification)


def test_a_hold_leaves_half_of_the_time_to_the_rest(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 5)
    end = sql.now() + 4 * HOUR
    notification = begin(channel, ttl=86_400, expires_at=end, test={"inconclusive": "hold"})
    half = (end - notification.decides_at) / 2

    end_test(notification)

    assert notification.winner is None
    assert abs(notification.decides_at - (end - half)) < timedelta(seconds=1)
    click(notification, 0)
    end_test(notification)
    finish(notification)
    assert (notification.winner, notification.decision["by"]) == (0, "leader")
    assert support.counts(notification)[:2] == ("sent", 5)


@pytest.mark.parametrize(("is_held", "hours"), [(False, 3.5), (True, 2)])
def test_after_a_pause_too_a_hold_leaves_half_of_the_time_to_the_rest(
    sandbox, channel, is_held, hours
):
    """It is decided after two hours, or now, and ends after four. The pause takes one."""
    factories.subscribe_browsers(sandbox, channel, 5)
    end = sql.now() + 4 * HOUR
    notification = begin(channel, ttl=86_400, expires_at=end, test={"inconclusive": "hold"})
    if is_held:
        end_test(notification)
    own = Notification.objects.filter(pk=notification.pk)
    halting.pause(own)
    own.update(paused_at=F("paused_at") - HOUR)

    halting.resume(own)

    rest = Plan.objects.get(notification=notification, part=1)
    assert abs(end - rest.release_at - (4 - hours) * HOUR) < timedelta(minutes=1)
    assert rest.due_at == rest.release_at
    if not is_held:
        end_test(notification)
    notification.refresh_from_db()
    assert (notification.winner, notification.decides_at) == (None, rest.release_at)
    end_test(notification)
    finish(notification)
    assert support.counts(notification) == ("sent", 5, 5, 0)


@pytest.mark.parametrize(
    ("inconclusive", "winner", "by"), [("leader", 1, "leader"), ("short", 0, "default")]
)
def test_too_few_numbers_are_no_difference(sandbox, channel, inconclusive, winner, by):
    factories.subscribe_browsers(sandbox, channel, 20)
    notification = begin(channel, test={"inconclusive": inconclusive})
    click(notification, 1)

    end_test(notification)
    finish(notification)

    assert (notification.winner, notification.decision["by"]) == (winner, by)
    assert support.counts(notification)[:2] == ("sent", 20)


@pytest.mark.parametrize("metric", ["clicked", "received"])
def test_certain_numbers_decide(tampered_channel, metric):
    notification = counted(tampered_channel, metric, [(400, 40), (400, 80)], inconclusive="short")

    end_test(notification)

    assert (notification.winner, notification.decision["by"]) == (1, "difference")
    assert 0 < notification.decision["p_value"] < 0.001


def counted(channel, metric, counts, **test):
    """A started test with these deliveries and events of each variant."""
    notification = begin(channel, test={"metric": metric, **test})
    plan = Plan.objects.get(notification=notification, part=0)
    for variant, (delivered, events) in enumerate(counts):
        Batch.objects.create(
            plan=plan,
            notification=notification,
            channel=channel,
            platform="web",
            push_service="fcm",
            status="done",
            finished_at=Now(),
            recipient_count=delivered,
            delivered_count=delivered,
            variant=variant,
        )
        VariantCount.objects.create(notification=notification, variant=variant, **{metric: events})
    return notification


def test_a_decision_is_told_once(sandbox, channel):
    Webhook.objects.create(
        channel=channel,
        url="https://a.example/",
        events=["notification.decided"],
        secret_encrypted="",
    )
    factories.subscribe_browsers(sandbox, channel, 10)
    notification = begin(channel)
    Notification.objects.update(decides_at=Now())

    support.in_threads(*[lambda: deciding.decide(notification.pk)] * 4)
    tick_decides(notification)

    (message,) = WebhookMessage.objects.all()
    assert json.loads(bytes(message.body))["data"] == {
        "channel_id": str(channel.pk),
        "notification_id": str(notification.pk),
        "variant": "short",
        "decided_by": "leader",
        "p_value": None,
    }
    finish(notification)
    assert support.counts(notification)[:2] == ("sent", 10)


def test_of_a_choice_and_a_tick_one_decides(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 20)
    notification = begin(channel)
    click(notification, 1)
    Notification.objects.update(decides_at=Now())

    def choose():
        deciding.choose(Notification.objects.filter(pk=notification.pk), 0)

    support.in_threads(choose, lambda: deciding.decide(notification.pk), choose)
    finish(notification)

    by = {"leader": 1, "choice": 0}
    assert notification.winner == by[notification.decision["by"]]
    given = given_to(notification)
    rest = splitting.rest_of(notification, list(given))
    assert len(given) == 20
    assert {given[pk] for pk in rest} == {notification.winner}


def test_clicks_at_the_decision_are_in_it_or_not_and_all_are_counted(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 40)
    notification = begin(channel)
    own = [pk for pk, variant in given_to(notification).items() if variant == 1]
    Notification.objects.update(decides_at=Now())
    clicks = [partial(events_record, [Event(notification.pk, pk, "clicked")]) for pk in own]
    decide = partial(deciding.decide, notification.pk)

    support.in_threads(*clicks[::2], decide, *clicks[1::2], decide)
    finish(notification)

    assert_sums(notification)
    assert variant_results(notification)[1].clicked == len(own) > 0
    given = given_to(notification)
    rest = splitting.rest_of(notification, list(given))
    assert {given[pk] for pk in rest} == {notification.winner}


def test_a_pause_moves_the_decision(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 10)
    notification = begin(channel)
    before = Plan.objects.get(notification=notification, part=1)
    own = Notification.objects.filter(pk=notification.pk)
    halting.pause(own)
    ago = timedelta(hours=3)
    own.update(paused_at=F("paused_at") - ago)
    Notification.objects.update(decides_at=F("decides_at") - ago)  # which has passed meanwhile
    Plan.objects.filter(part=1).update(
        release_at=F("release_at") - ago, deadline_at=F("deadline_at") - ago
    )

    tick_decides(notification)
    assert notification.winner is None
    halting.resume(own)

    after = Plan.objects.get(notification=notification, part=1)
    decides_at = own.get().decides_at
    assert timedelta() <= decides_at - notification.started_at - 2 * HOUR < timedelta(minutes=5)
    assert after.release_at == after.due_at == decides_at + HOUR
    assert after.deadline_at == after.release_at + HOUR
    assert timedelta() <= after.release_at - before.release_at < timedelta(minutes=5)
    end_test(notification)
    finish(notification)
    assert support.counts(notification)[:2] == ("sent", 10)


def test_a_choice_during_a_pause_counts_from_the_resume_on(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 20)
    notification = begin(channel)
    own = Notification.objects.filter(pk=notification.pk)
    halting.pause(own)
    notification_decide(channel_id=channel.pk, notification_id=notification.pk, name="long")
    finish(notification)
    assert notification.recipient_count < 20

    halting.resume(own)
    finish(notification)

    assert support.counts(notification)[:2] == ("sent", 20)
    assert notification.winner == 1


def test_a_stop_between_the_parts_ends_the_notification(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 20)
    notification = begin(channel)
    tested = len(given_to(notification))

    halting.stop(Notification.objects.filter(pk=notification.pk))
    end_test(notification)
    finish(notification)

    assert notification.winner is None
    assert support.counts(notification) == ("sent", tested, tested, 0)


def test_it_waits_while_the_test_runs(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 5)
    notification = begin(channel)

    (state,) = states_of([notification]).values()

    assert state.stage == "waiting"
    end_test(notification)
    finish(notification)


def test_an_explanation_knows_who_waits_for_the_decision(sandbox, channel):
    browsers = factories.subscribe_browsers(sandbox, channel, 12)
    notification = begin(channel)
    rest = splitting.rest_of(notification, [row.pk for _, row in browsers])
    untested = next(iter(rest))
    new = next(row.pk for _, row in browsers if row.pk not in rest)

    def explained(pk):
        _, devices = devices_asked(channel.pk, subscription_id=pk)
        (found,) = notification_explained(channel, notification.pk, devices).devices
        return found

    found = explained(untested)
    assert (found.verdict, found.because, found.variant) == ("waiting", "test", None)
    step = next(each for each in found.steps if each.step == "test")
    assert step.at == notification.decides_at
    assert explained(new).verdict == "got"
    end_test(notification)
    assert explained(untested).variant == "short"
    assert explained(untested).verdict == "gets"
    finish(notification)
    assert explained(untested).verdict == "got"


def test_both_platforms_have_both_parts(fcm, apns, channel):
    phones.store_google(fcm, channel)
    phones.store_apple(apns, channel)
    factories.subscribe_androids(fcm, channel, 20)
    factories.subscribe_iphones(apns, channel, 20)
    notification = begin(channel, "android", "ios")

    end_test(notification)
    finish(notification)

    assert support.counts(notification) == ("sent", 40, 40, 0)
    assert_sums(notification)


@pytest.mark.django_db
def test_who_is_in_a_test_says_nothing_about_the_variant():
    """Of each bucket's devices as many as of all get each variant. The text of the statement is
    that of the planner."""
    notification_id, count = uuid4(), 20_000
    variant, bucket = splitting.variant_part((1, 3)), splitting.bucket_part("id")
    text = f"""SELECT {bucket} < 1000 AS is_tested, {variant} AS variant, count(*)
      FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, %(count)s)) AS own
      GROUP BY 1, 2"""  # noqa: S608 - text of our own

    rows = sql.rows(text, {"count": count, **splitting.parameters(notification_id)})

    found = {(is_tested, number): each for is_tested, number, each in rows}
    shares = {(True, 0): 0.025, (True, 1): 0.075, (False, 0): 0.225, (False, 1): 0.675}
    spread = sum((found[key] - count * p) ** 2 / (count * p) for key, p in shares.items())
    assert spread < CHI_SQUARED[3]


def test_the_parts_are_claimed_with_their_buckets(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 3)
    factories.make_notification(channel, extras={"variants": VARIANTS}, test=TEST)
    start_timed()

    lease = support.claim_plan()

    assert (lease.bucket_from, lease.bucket_to, lease.winner) == (0, 5_000, None)
    assert support.claim_plan() is None
