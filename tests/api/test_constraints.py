"""What the database itself refuses, whoever writes."""

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from notifications_app.models import Batch, EventHour, HourlyStat
from tests.factories import make_channel, make_notification, make_plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def notification():
    return make_notification(make_channel())


def test_the_database_refuses_a_plan_batch_or_hour_of_an_unknown_platform(notification):
    plan = make_plan(notification, platform="ios")
    batch = Batch(
        plan=plan, notification=notification, channel=notification.channel, platform="fax"
    )
    hour = HourlyStat(channel=notification.channel, platform="fax", hour=Now())
    events = EventHour(notification=notification, platform="fax", hour=Now())

    plan.platform = "fax"
    rows = (plan, "plan"), (batch, "batch"), (hour, "hourly"), (events, "event_hour")
    for row, constraint in rows:
        _refused(row.save, f"{constraint}_platform")


@pytest.mark.parametrize("targets", [["web", "fax"], {"web": 1}])
def test_the_database_refuses_a_notification_for_an_unknown_platform(notification, targets):
    notification.target_platforms = targets

    _refused(notification.save, "notification_platforms")


def _refused(write, constraint):
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        write()
