"""Who gets a send that names a category: whoever wants it when the window is read, and still wants
it when the message is handed over."""

import pytest
from django.db.models.functions import Now
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from notifications_app.content.values import Content
from notifications_app.models import Plan
from notifications_app.pipeline import plan_queue, planning
from notifications_app.reporting.details import details_of
from notifications_app.sends.services import notification_test
from pushsvc.common.store import sql
from subscriptions_app.audiences.sizes import audience_size
from subscriptions_app.categories.consent import consent_to
from subscriptions_app.categories.services import category_archive
from subscriptions_app.models import Person, Subscription
from tests import factories, segments
from tests.pipeline import support

CHOICES = st.fixed_dictionaries({}, optional={"offers": st.booleans(), "news": st.booleans()})
PRO = segments.attribute("plan", "eq", "pro")


@pytest.fixture(autouse=True)
def _small_windows(settings):
    settings.PLAN_WINDOW = 4
    settings.BATCH_SIZE = 3


def choose(device, **choices):
    Subscription.objects.filter(pk=device.pk).update(choices=choices)


def opted_out(notification):
    found = details_of(channel_id=notification.channel_id, notification_id=notification.id)
    return found.left_out["opted_out"]


def make_people(channel, choices):
    """A person for each of these choices, under their own number."""
    return [
        Person.objects.create(channel=channel, external_id=f"user-{n}", choices=each, left_at=Now())
        for n, each in enumerate(choices)
    ]


def wants(choices, person, default):
    """As docs/categories.md says it."""
    own = choices | (person.choices if person else {})
    return own.get("offers", default)


@examples(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    default=st.booleans(),
    people=st.lists(CHOICES, min_size=1, max_size=3),
    devices=st.lists(
        st.tuples(CHOICES, st.none() | st.integers(0, 2), st.sampled_from(["pro", "free"])),
        max_size=9,
    ),
    has_rule=st.booleans(),
)
def test_windows_reach_whoever_wants_the_category(
    transactional_db, default, people, devices, has_rule
):
    own = factories.make_channel("Of one example")
    factories.make_category(own, "offers", default=default)
    known = make_people(own, people)
    wanted, refused = [], []
    for choices, number, plan in devices:
        person = None if number is None else known[number % len(known)]
        (row,) = factories.add_each(
            own, [{"choices": choices, "person": person, "attributes": {"plan": plan}}]
        )
        if not has_rule or plan == "pro":
            (wanted if wants(choices, person, default) else refused).append(row)
    segment = factories.make_segment(own, PRO).id if has_rule else None

    notification = factories.make_notification(own, category="offers", segment_id=segment)
    support.plan(notification)

    assert support.planned_ids(notification) == support.ids(wanted)
    assert notification.recipient_count == len(wanted)
    assert opted_out(notification) == len(refused)
    rule = PRO if has_rule else None
    sizes = audience_size(own.id, rule, ["web"], consent_to("offers"))
    assert sizes["web"].size == len(wanted)


def test_sparse_sends_ask_the_candidates(channel, other_channel):
    """The index finds the candidates, in one window."""
    factories.make_category(channel, "offers")
    factories.add_subscriptions(other_channel, 20, attributes={"plan": "free"})
    factories.add_subscriptions(channel, 20, attributes={"plan": "free"})
    yes, _ = factories.add_each(
        channel,
        [
            {"attributes": {"plan": "pro"}, "choices": {"offers": True}},
            {"attributes": {"plan": "pro"}},
        ],
    )
    sql.execute("ANALYZE subscriptions_app_subscription", {})
    segment = factories.make_segment(channel, PRO)
    notification = factories.make_notification(channel, segment_id=segment.id, category="offers")
    plan_queue.start_due()

    assert support.plan_window(support.claim_plan()) is False

    assert support.planned_ids(notification) == [yes.id]
    assert Plan.objects.get(notification=notification).opted_out_count == 1


def test_a_send_to_a_tag_asks_the_devices_of_the_tag(channel):
    factories.make_category(channel, "offers")
    yes, no = factories.add_each(channel, [{"choices": {"offers": True}}, {}])
    factories.add_subscriptions(channel, 3, choices={"offers": True})
    factories.add_tags([yes, no], "team-7")
    segment = factories.make_segment(channel, {"tag": "team-7"})
    notification = factories.make_notification(channel, segment_id=segment.id, category="offers")

    support.plan(notification)

    assert support.planned_ids(notification) == [yes.id]
    assert opted_out(notification) == 1


def test_a_plain_send_asks_nobody(channel):
    """Its statements name neither people nor categories, so that it costs what it did."""
    factories.make_category(channel, "offers")
    factories.add_subscriptions(channel, 6, choices={"offers": False})
    notification = factories.make_notification(channel)
    plan_queue.start_due()
    lease = support.claim_plan()

    with support.statements() as made:
        planning.run_slice([lease])

    assert not [each for each in made if "_person" in each or "_category" in each]
    assert not [each for each in made if "is_wanted" in each]
    assert len(support.planned_ids(notification)) == 6


def test_people_of_other_channels_are_not_read(channel, other_channel):
    """A window finds each person by its key."""
    factories.make_category(channel, "offers", default=True)
    make_people(other_channel, [{}] * 500)
    (person,) = make_people(channel, [{"offers": False}])
    factories.add_each(channel, [{"person": person}, {}])
    sql.execute("ANALYZE subscriptions_app_person", {})
    notification = factories.make_notification(channel, category="offers")
    plan_queue.start_due()
    lease = support.claim_plan()

    assert support.most_rows_read(lambda: support.plan_window(lease), as_if_large=True) < 100
    assert notification.recipient_count + len(support.planned_ids(notification)) == 1


def test_who_refuses_while_the_message_waits_does_not_get_it(sandbox, channel):
    factories.make_category(channel, "offers", default=True)
    (kept, _), (refused, device) = factories.subscribe_browsers(sandbox, channel, 2)
    notification = factories.make_notification(channel, category="offers")
    support.plan(notification)
    choose(device, offers=False)

    support.deliver(notification)

    assert support.counts(notification) == ("sent", 2, 1, 1)
    assert support.delivery(notification, device).code == "opted_out"
    assert [len(each.receipts) for each in (kept, refused)] == [1, 0]
    assert opted_out(notification) == 0


def test_who_refuses_while_a_retry_waits_does_not_get_it(sandbox, channel):
    factories.make_category(channel, "offers", default=True)
    ((browser, device),) = factories.subscribe_browsers(sandbox, channel)
    browser.behave("throttled", times=1)
    notification = support.send(channel, category="offers")
    choose(device, offers=False)
    support.make_due(notification)

    support.deliver(notification)

    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert support.delivery(notification, device).code == "opted_out"


def test_a_category_that_is_archived_meanwhile_still_leaves_out_who_refuses(channel):
    factories.make_category(channel, "offers", default=False)
    yes, _ = factories.add_each(channel, [{"choices": {"offers": True}}, {}])
    notification = factories.make_notification(channel, category="offers")
    category_archive(channel_id=channel.id, key="offers")

    support.plan(notification)

    assert support.planned_ids(notification) == [yes.id]


def test_a_test_message_asks_nobody(channel):
    factories.make_category(channel, "offers", default=False)
    device = factories.add_subscription(channel, choices={"offers": False})
    test = notification_test(
        channel=channel, content=Content(body="x", ttl=60), subscription_id=device.id
    )
    support.plan()
    assert support.planned_ids(test) == [device.id]
