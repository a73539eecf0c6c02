"""How many statements a send to one device costs, from the start to the recorded outcome."""

from dataclasses import replace
from uuid import uuid4

import pytest

from notifications_app.models import Plan
from notifications_app.pipeline import plan_queue
from pushsvc.celery import app
from pushsvc.common.store.redis_client import redis_client
from tests import factories
from tests.api.support import accepted
from tests.pipeline import support

pytestmark = pytest.mark.django_db(transaction=True)

# With BEGIN, COMMIT and the settings of transactions.
PLANNED = 13
DELIVERED = 23


@pytest.fixture
def subscription(sandbox, alice):
    ((_, subscription),) = factories.subscribe_browsers(sandbox, alice.channel, 1)
    return subscription


def send(alice, subscription):
    return accepted(alice, {"body": "x", "subscription_ids": [str(subscription.pk)]})


def test_a_direct_send_needs_few_statements(alice, subscription):
    for _ in range(2):  # the first also notes that the device takes messages
        notification = send(alice, subscription)
        with support.statements() as of_planner:
            support.plan()
        with support.statements() as of_worker:
            support.deliver()
        notification.refresh_from_db()
        assert support.counts(notification) == ("sent", 1, 1, 0)

    assert len(of_planner) <= PLANNED
    assert len(of_worker) <= DELIVERED


def test_a_turn_goes_on_with_what_its_claim_left(alice, subscription, settings):
    settings.CLAIM_PLANS = settings.CLAIM_BATCHES = 2
    notifications = [send(alice, subscription) for _ in range(5)]

    support.plan()
    support.deliver()

    for notification in notifications:
        notification.refresh_from_db()
        assert support.counts(notification) == ("sent", 1, 1, 0)


def test_a_lease_of_a_plan_is_of_no_other_notification_that_got_its_id(alice, subscription):
    send(alice, subscription)
    plan_queue.start_due()
    lease = support.claim_plan()

    of_crashed_server = replace(lease, notification_id=uuid4())

    assert plan_queue.lock_plans([of_crashed_server]) == {}
    assert plan_queue.lock_plans([lease]).keys() == {Plan.objects.get().pk}


def test_a_message_that_a_worker_holds_is_not_stored(alice, subscription):
    send(alice, subscription)
    with app.connection_for_read() as connection:
        channel = connection.default_channel
        message = channel.basic_get("plan")

        assert redis_client().keys("unacked*") == []
        channel.basic_ack(message.delivery_tag)

    assert support.waiting("plan") == 0
