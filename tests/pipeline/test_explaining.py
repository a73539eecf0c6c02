"""Explaining judges a send as the planner does, and a notification by what happened."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from channels_app.models import ProviderCredential
from channels_app.pauses import platform_pause
from notifications_app.content.values import Content, SendRequest, TargetId
from notifications_app.models import Batch, Contact, Delivery, Notification, Plan, Target
from notifications_app.pipeline import plan_queue, reading, timed_starts
from notifications_app.pipeline.splitting import rest_of
from notifications_app.reporting.explaining import devices_asked, notification_explained
from notifications_app.retention import purge
from notifications_app.sends.checks import time_check
from notifications_app.sends.explaining import Who, send_explain
from notifications_app.sends.services import (
    notification_accept,
    notification_cancel,
    notification_pause,
    notification_stop,
)
from pushsvc.common.errors import Invalid
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.devices.services import subscription_expire
from subscriptions_app.models import Person, Segment, Subscription
from tests import factories, segments
from tests.pipeline import support
from tests.segments import RANDOM, attribute

PRO = attribute("plan", "eq", "pro")
PEOPLE = ("user-1", "user-2")
HOUR = timedelta(hours=1)
CAPS = (
    [{"limit": 2, "hours": 24}],
    [{"limit": 3, "hours": 24}],
    [{"limit": 3, "hours": 720}, {"limit": 1, "hours": 2}],
)
CHOICES = st.fixed_dictionaries({}, optional={"offers": st.booleans()})
PERSONAL = Content(
    body="Hi {{ plan | default: 'you' }}, {{ vars.sale }} {{ age }}",
    vars={"sale": "20 %"},
    personalize=True,
    on_missing="bounce",
    translations={"de": {"body": "Hallo {{ city }}"}, "en": {"title": "{{ external_id }}"}},
)
PLAIN = Content(body="Fresh bread", translations={"de": {"body": "Frisches Brot"}})


def explained(notification, *, external_id=None, subscription_id=None):
    _, devices = devices_asked(
        notification.channel_id, external_id=external_id, subscription_id=subscription_id
    )
    return notification_explained(notification.channel, notification.pk, devices)


def of(notification, device):
    (one,) = explained(notification, subscription_id=device.pk).devices
    return one


def refused(found):
    """(step, detail) of the first step that is not ok."""
    return next((each.step, each.detail) for each in found.steps if not each.ok)


# --- the oracle -----------------------------------------------------------------------------------


@pytest.fixture
def shop(transactional_db):
    channel = factories.make_channel("Random", android_enabled=True, ios_enabled=True)
    factories.make_category(channel, "offers", default=True)
    ProviderCredential.objects.create(channel=channel, platform="android", secret_encrypted="x")
    return channel


@pytest.fixture
def drawn(shop):
    """What examples draw: hypothesis looks into these strategies once."""
    now = sql.now()
    return segments.rows(now), segments.rules(now)


def audiences(data, rows, rules, channel):
    """The fields of a send with a random audience."""
    kind = data.draw(st.sampled_from(["channel", "rule", "segment", "targets"]))
    if kind == "rule":
        return {"rule": data.draw(rules)}
    if kind == "segment":
        return {"segment_id": factories.make_segment(channel, data.draw(rules)).pk}
    if kind == "targets":
        sale = data.draw(st.sampled_from([None, {"sale": "half"}, {"age": 3}]))
        people = data.draw(st.sets(st.sampled_from(PEOPLE)))
        devices = data.draw(st.sets(st.sampled_from([row.pk for row in rows]), min_size=1))
        named = [TargetId(external_id=each, vars=sale) for each in sorted(people)]
        return {"targets": (*named, *(TargetId(subscription_id=each) for each in sorted(devices)))}
    return {}


def timed_fields():
    """The fields of sends by local time and with quiet hours. One expires before it is time in the
    west."""
    now = sql.now()
    soon = now + HOUR
    local_at = f"{soon:%Y-%m-%dT%H:%M}"
    quiet = {"from": f"{now - HOUR:%H:%M}", "to": f"{now + 2 * HOUR:%H:%M}"}
    return [
        {"local_at": local_at},
        {"local_at": local_at, "expires_at": soon + HOUR},
        {"local_at": local_at, "quiet_hours": quiet},
        {"quiet_hours": quiet},
    ]


def expires_everywhere(channel, request):
    try:
        time_check(channel, request)
    except Invalid:
        return True
    return False


def start(notification):
    """The first release is now."""
    Notification.objects.filter(pk=notification.pk).update(scheduled_at=Now())
    plan_queue.start_due()
    timed_starts.start_timed()
    notification.refresh_from_db()


@examples(RANDOM, max_examples=40)
@given(data=st.data())
def test_a_device_that_gets_it_is_planned_and_no_other(shop, drawn, data):
    some_rows, rules = drawn
    for model in (Notification, Delivery, Target, Segment, Contact, Subscription, Person):
        model.objects.all().delete()
    shop.caps = data.draw(st.sampled_from([None, None, *CAPS]))
    shop.save()
    rows = factories.add_each(shop, data.draw(some_rows))
    people = [
        Person.objects.create(
            channel=shop, external_id=each, left_at=Now(), choices=data.draw(CHOICES)
        )
        for each in PEOPLE
    ]
    for row in rows:
        row.person = data.draw(st.sampled_from([None, *people]))
        row.choices = data.draw(CHOICES)
        row.expired_at = data.draw(st.sampled_from([None, None, None, sql.now()]))
        row.save()
        factories.add_tags([row], *data.draw(st.sets(st.sampled_from(segments.TAGS))))
    shop.credentials.update(paused_at=data.draw(st.sampled_from([None, sql.now()])))
    platforms = data.draw(st.sets(st.sampled_from(segments.PLATFORMS), min_size=1))
    contacted(shop, data.draw(st.sets(st.sampled_from([*rows, *people]))))
    request = SendRequest(
        cap=data.draw(st.sampled_from(["respect", "respect", "ignore"])),
        content=data.draw(st.sampled_from([PLAIN, PERSONAL])),
        target_platforms=tuple(map(Platform, sorted(platforms))),
        category=data.draw(st.sampled_from(["", "offers"])),
        **data.draw(st.sampled_from([{}, *timed_fields()])),
        **audiences(data, rows, rules, shop),
    )
    assume(not expires_everywhere(shop, request))

    before = {
        each.device.pk: each
        for row in rows
        for each in send_explain(
            channel=shop, request=request, who=Who(subscription_id=row.pk)
        ).devices
    }
    notification = notification_accept(channel=shop, request=request)
    pending = verdicts(notification, rows)
    start(notification)
    begun = verdicts(notification, rows)
    Plan.objects.update(due_at=Now())  # contacts are counted at the releases
    support.plan(notification)

    planned = set(support.planned_ids(notification))
    gets = ("gets", "bounces", "waiting")
    assert {id_ for id_, each in before.items() if each.verdict in gets} == planned
    assert pending == begun == {id_: each.verdict for id_, each in before.items()}
    made, now = messages_of_workers(), verdicts(notification, rows)
    for row in rows:
        found = before[row.pk]
        assert now[row.pk] == ("waiting" if row.pk in planned else found.verdict)
        if row.pk in made:
            assert (found.verdict == "gets") == (made[row.pk] is not None)
            assert found.message == made[row.pk]


def contacted(channel, keys):
    """Two sends of today have reached these people and devices."""
    for each in keys:
        times = [sql.now() - HOUR, sql.now() - 6 * HOUR]
        Contact.objects.create(
            key=each.pk,
            channel_id=channel.pk,
            times=times,
            sends=[uuid7(), uuid7()],
            expires_on=times[0] + 48 * HOUR,
        )


@pytest.mark.parametrize("end", [{"ttl": 600}, {"ttl": 86_400, "expires_at": HOUR / 2}, {}])
@pytest.mark.parametrize("kind", ["targets", "test", "channel"])
def test_a_send_that_ends_within_quiet_hours_bounces_if_they_are_judged_before_calls(
    sandbox, channel, kind, end
):
    ((_, device),) = factories.subscribe_browsers(sandbox, channel, 1)
    now = sql.now()
    ends = {"expires_at": now + end["expires_at"]} if "expires_at" in end else {}
    quiet = {"from": f"{now - HOUR:%H:%M}", "to": f"{now + 2 * HOUR:%H:%M}"}
    variants = [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]
    of_test = {"share": 99, "minutes": 15, "metric": "clicked", "inconclusive": "leader"}
    request = SendRequest(
        content=Content(
            body="Fresh bread",
            ttl=end.get("ttl", 86_400),
            variants=variants if kind == "test" else [],
        ),
        target_platforms=(Platform.WEB,),
        quiet_hours=quiet,
        targets=(TargetId(subscription_id=device.pk),) if kind == "targets" else (),
        test=of_test if kind == "test" else None,
        **ends,
    )
    (before,) = send_explain(
        channel=channel, request=request, who=Who(subscription_id=device.pk)
    ).devices
    notification = notification_accept(channel=channel, request=request)
    pending = of(notification, device)
    start(notification)
    support.plan(notification)
    support.deliver(notification)

    if kind == "channel":
        verdict = "left_out" if ends else "gets"
    else:
        verdict = "bounces" if end else "gets"
    assert before.verdict == verdict
    if not rest_of(notification, [device.pk]):  # one in a hundred is not in the test
        assert pending.verdict == verdict
    outcomes = Delivery.objects.filter(notification_id=notification.pk)
    bounced = {("expired", "quiet_hours")} if verdict == "bounces" else set()
    assert set(outcomes.exclude(code="quiet_hours").values_list("code", "detail")) <= bounced


@pytest.mark.parametrize(("hours_before", "verdict"), [(9, "gets"), (1, "left_out")])
def test_a_cap_is_judged_at_the_release_also_after_the_start(channel, hours_before, verdict):
    now = sql.now()
    channel.caps = [{"limit": 1, "hours": 4}]
    channel.save()
    west = factories.add_subscription(channel, timezone="Etc/GMT+10")
    request = SendRequest(content=PLAIN, target_platforms=(Platform.WEB,), local_at=f"{now:%H:%M}")
    notification = notification_accept(channel=channel, request=request)
    release_at = of(notification, west).steps[-2].at
    Contact.objects.create(
        key=west.pk,
        channel_id=channel.pk,
        times=[release_at - hours_before * HOUR],
        sends=[uuid7()],
        expires_on=release_at + 48 * HOUR,
    )
    start(notification)
    assert of(notification, west).verdict == verdict

    Plan.objects.update(due_at=Now())
    support.plan(notification)

    assert (west.pk in support.planned_ids(notification)) == (verdict == "gets")
    assert of(notification, west).verdict == ("waiting" if verdict == "gets" else verdict)


def verdicts(notification, rows):
    devices = Subscription.objects.filter(pk__in=[row.pk for row in rows]).select_related("person")
    found = notification_explained(notification.channel, notification.pk, list(devices))
    return {each.device.pk: each.verdict for each in found.devices}


def messages_of_workers():
    """By subscription on the web: the content that a worker makes, or None if it cannot."""
    made = {}
    while lease := support.claim():
        for each in reading.read([lease]).recipients:
            made[each.device.id] = None if each.unsendable else each.message.whole
    return made


# --- notifications --------------------------------------------------------------------------------


def test_the_ledger_says_what_happened(sandbox, channel):
    (_, reached), (dead, gone) = factories.subscribe_browsers(sandbox, channel, 2)
    dead.behave("gone")
    notification = support.send(channel)

    found = of(notification, reached)
    assert (found.verdict, found.because) == ("got", "")
    assert found.message.body == "Fresh bread"
    assert found.sent.push_service
    assert found.sent.trace == notification.pk.hex
    bounced = of(notification, gone)
    assert (bounced.verdict, bounced.because) == ("bounced", "endpoint_gone")
    assert refused(bounced)[1].startswith("Browser unsubscribed.")


def test_a_device_that_waits_says_why(channel):
    device = factories.add_subscription(channel)
    notification = factories.make_notification(channel)
    support.plan(notification)
    assert of(notification, device).verdict == "waiting"

    notification_pause(channel_id=channel.id, notification_id=notification.id)

    assert of(notification, device).because == "paused"


@pytest.mark.django_db
def test_a_device_waits_while_its_platform_is_paused():
    channel = factories.make_channel("Shop", android_enabled=True)
    device = factories.add_subscription(channel, platform="android")
    notification = factories.make_notification(channel, target_platforms=["android"])
    assert refused(of(notification, device)) == (
        "paused",
        "Android has no credentials. Recipients wait for up to an hour, then bounce.",
    )
    ProviderCredential.objects.create(channel=channel, platform="android", secret_encrypted="x")
    assert of(notification, device).verdict == "gets"

    platform_pause(
        channel_id=channel.id, platform=Platform.ANDROID, version=1, code="refused", detail=""
    )
    words = (
        "Android is paused: Google refused the credentials. Recipients wait for up to an hour, then"
        " bounce."
    )
    found = of(notification, device)
    assert (found.verdict, found.because) == ("waiting", "paused")
    assert refused(found) == ("paused", words)

    support.plan(notification)
    found = of(notification, device)
    assert (found.verdict, found.because, found.steps[0].detail) == ("waiting", "paused", words)


def test_a_device_waits_while_the_notification_is_paused_before_its_start(channel):
    device = factories.add_subscription(channel)
    later = factories.make_notification(channel, scheduled_at=Now() + timedelta(days=1))
    notification_pause(channel_id=channel.id, notification_id=later.id)

    found = of(later, device)

    assert (found.verdict, refused(found)) == ("waiting", ("paused", "The notification is paused."))


def test_a_notification_that_will_not_go_on_is_the_reason(channel):
    device = factories.add_subscription(channel)
    later = factories.make_notification(channel, scheduled_at=Now() + timedelta(days=1))
    assert of(later, device).verdict == "gets"
    notification_cancel(channel_id=channel.id, notification_id=later.id)
    assert of(later, device).verdict == "left_out"
    assert refused(of(later, device)) == ("notification", "The notification was cancelled.")

    stopped = factories.make_notification(channel)
    plan_queue.start_due()
    notification_stop(channel_id=channel.id, notification_id=stopped.id)
    assert refused(of(stopped, device)) == ("notification", "The notification was stopped.")


def test_the_rule_is_the_one_of_the_start(channel):
    device = factories.add_subscription(channel, {"plan": "free"})
    segment = factories.make_segment(channel, PRO)
    notification = factories.make_notification(channel, segment_id=segment.id)
    support.plan(notification)
    segment.rule = attribute("plan", "eq", "free")
    segment.save()

    found = of(notification, device)

    assert (found.verdict, found.because) == ("not_in_audience", "audience")
    assert refused(found) == ("audience", 'plan is "free"; the rule wants "pro"')
    assert found.steps[2].rule == PRO
    assert found.changes == []


def test_what_changed_since_the_start_is_said_and_nothing_is_guessed(channel):
    early = factories.add_subscription(channel, {"plan": "free"})
    notification = factories.make_notification(channel, rule=PRO)
    support.plan(notification)
    late = factories.add_subscription(channel, {"plan": "pro"})
    changed = {"attributes": {"plan": "pro"}, "registered_at": Now()}
    Subscription.objects.filter(pk=early.pk).update(**changed)

    assert (of(notification, late).verdict, of(notification, late).because) == (
        "unknown",
        "changes",
    )
    assert [each.partition(" at ")[0] for each in of(notification, late).changes] == [
        "It subscribed"
    ]
    assert of(notification, early).verdict == "unknown"
    assert of(notification, early).changes[0].startswith("It visited again")


def test_results_that_retention_took_are_not_guessed(sandbox, tampered_channel):
    ((_, device),) = factories.subscribe_browsers(sandbox, tampered_channel, 1)
    outside = factories.add_subscription(tampered_channel, platform="android")
    notification = support.send(tampered_channel)
    old = Now() - timedelta(days=400)
    Notification.objects.filter(pk=notification.pk).update(finished_at=old)
    Batch.objects.filter(notification=notification).update(finished_at=old)
    assert of(notification, device).verdict == "got"

    purge()

    found = of(notification, device)
    assert (found.verdict, found.because) == ("unknown", "retention")
    assert [each.step for each in found.steps] == ["retention"]
    assert of(notification, outside).because == "platform"


def test_targets_that_retention_took_are_not_guessed(tampered_channel):
    device = factories.add_subscription(tampered_channel)
    notification = factories.make_direct_notification(tampered_channel, people=["user-42"])
    support.plan(notification)
    assert refused(of(notification, device))[0] == "audience"
    Target.objects.all().delete()
    assert of(notification, device).because == "retention"


def test_a_deleted_segment_selects_nobody(channel):
    device = factories.add_subscription(channel)
    segment = factories.make_segment(channel, PRO)
    notification = factories.make_notification(channel, segment_id=segment.id)
    segment.delete()
    support.plan(notification)
    assert refused(of(notification, device))[1].startswith("The segment was deleted")


def test_all_devices_of_a_person_are_explained_the_active_ones_first(channel):
    person = factories.make_person(channel)
    gone, here = factories.add_subscriptions(channel, 2, person=person)
    factories.add_subscription(channel)
    subscription_expire(subscription=gone)
    notification = factories.make_notification(channel)

    found = explained(notification, external_id="user-42").devices

    assert [(each.device.pk, each.verdict) for each in found] == [
        (here.pk, "gets"),
        (gone.pk, "not_in_audience"),
    ]


def test_only_the_rows_of_the_device_are_read(channel, other_channel):
    factories.add_crowd(channel, 3_000)
    factories.add_crowd(other_channel, 3_000)
    factories.make_category(channel, "offers")
    device = factories.add_subscription(
        channel, {"plan": "pro"}, person=factories.make_person(channel)
    )
    factories.add_tags([device], "a")
    rule = {
        "all": [PRO, {"tag": "a"}, {"not": {"notification": str(device.pk), "outcome": "clicked"}}]
    }
    notification = factories.make_notification(channel, rule=rule, category="offers")
    support.plan(notification)
    sql.execute("ANALYZE subscriptions_app_subscription, notifications_app_delivery", {})

    read = support.most_rows_read(
        lambda: explained(notification, external_id="user-42"), as_if_large=True
    )

    assert read < 20


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (PRO, 'plan is "free"; the rule wants "pro"'),
        (attribute("plan", "in", ["a", "b"]), 'plan is "free"; the rule wants "a" or "b"'),
        (attribute("plan", "ne", "free"), 'plan is "free"; the rule wants anything but "free"'),
        (
            {"not": attribute("plan", "eq", "free")},
            'plan is "free"; the rule wants anything but "free"',
        ),
        (attribute("age", "gte", 18), "age is not set; the rule wants at least 18"),
        (attribute("age", "exists", True), "age is not set; the rule wants any value"),
        (
            attribute("plan", "contains", "x"),
            'plan is "free"; the rule wants a text that contains "x"',
        ),
        (
            segments.language("starts_with", "de"),
            'language is "pt"; the rule wants one that starts with "de"',
        ),
        (
            segments.field("timezone", "eq", "Asia/Tokyo"),
            'timezone is not set; the rule wants "Asia/Tokyo"',
        ),
        (segments.field("platform", "ne", "web"), "platform is web; the rule wants not web"),
        (
            segments.field("external_id", "exists", True),
            "it belongs to no person; the rule wants a person",
        ),
        ({"tag": "team-7"}, "it has no tag team-7; the rule wants it"),
        ({"not": {"tag": "a"}}, "it has the tag a; the rule wants no such tag"),
        (
            {"all": [{"tag": "a"}, {"not": {"any": [{"tag": "b"}, {"not": PRO}]}}]},
            'plan is "free"; the rule wants "pro"',
        ),
        (
            {"any": [PRO, {"tag": "b"}]},
            'plan is "free", it has no tag b; the rule wants plan is "pro" or has the tag b',
        ),
    ],
)
def test_the_deepest_condition_is_the_reason_in_words(channel, rule, words):
    device = factories.add_subscription(channel, {"plan": "free"}, language="pt")
    factories.add_tags([device], "a")
    notification = factories.make_notification(channel, rule=rule)
    assert refused(of(notification, device)) == ("audience", words)


@pytest.mark.parametrize(
    ("person", "own", "default", "words"),
    [
        ({"offers": False}, {"offers": True}, True, "The person refused the category offers."),
        ({}, {"offers": False}, True, "The device refused the category offers."),
        ({}, {}, False, "Nobody chose, and by default devices do not get the category offers."),
    ],
)
def test_who_refused_is_said(channel, person, own, default, words):
    factories.make_category(channel, "offers", default=default)
    known = factories.make_person(channel)
    known.choices = person
    known.save()
    device = factories.add_subscription(channel, person=known, choices=own)
    notification = factories.make_notification(channel, category="offers")
    found = of(notification, device)
    assert (found.verdict, refused(found)) == ("left_out", ("category", words))
