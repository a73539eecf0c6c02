"""*Why?* on the pages of a person, a subscriber and a notification, and *Try as…* in the form."""

import re

import pytest
from auditlog.models import LogEntry
from django.db.models.functions import Now
from django.urls import reverse

from notifications_app.admin import explaining
from notifications_app.reporting.judging import StepName, Verdict
from subscriptions_app.models import Subscription
from tests import factories
from tests.admin.notifications.composing import written
from tests.admin.support import signed_in

TRY = reverse("admin:notification_compose_try")
PRO = {"attribute": "plan", "operator": "eq", "value": "pro"}


@pytest.fixture
def device(alice):
    person = factories.make_person(alice.channel, "user <42>")
    return factories.add_subscription(alice.channel, {"plan": "free"}, person=person)


@pytest.fixture
def notification(alice):
    return factories.make_notification(alice.channel, title="Sale & more", rule=PRO)


def why(client, notification, who):
    path = reverse("admin:notification_why", args=[notification.channel_id])
    response = client.post(path, {"notification": str(notification.pk), "who": who})
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize("who", ["person", "subscriber"])
def test_a_page_says_why_in_words(viewer, notification, device, who):
    names = {"person": " user <42> ", "subscriber": str(device.pk)}

    page = why(viewer, notification, names[who])

    assert "not in the audience" in page
    assert "plan is &quot;free&quot;; the rule wants &quot;pro&quot;" in page
    assert "Fresh bread" in page
    assert LogEntry.objects.filter(action=3, object_pk=str(device.person_id)).count() == 1


def test_all_that_decides_about_a_device_has_words(viewer, alice, device):
    notification = factories.make_notification(
        alice.channel,
        category="offers",
        caps=[{"limit": 1, "hours": 24}],
        once={"schedule_id": str(alice.channel.pk), "days": 7},
        timing={"timezone": "UTC", "quiet": {"from": "22:00", "to": "08:00"}},
        paused_at=Now(),
    )

    page = why(viewer, notification, str(device.pk))

    labels = re.findall("<dt>(.+?)</dt>", page)
    assert labels[3:9] == ["Category", "Schedule", "Cap", "Release", "Message", "Pause"]


def test_every_step_and_verdict_has_words():
    assert set(explaining._STEPS) == set(StepName)
    assert set(explaining._VERDICTS) == set(Verdict)


def test_whoever_is_not_of_the_channel_is_unknown(viewer, notification, zebra):
    theirs = zebra.rows["subscription"]
    assert "no person with this external id" in why(viewer, notification, "user-43")
    assert "no such subscription" in why(viewer, notification, str(theirs.pk))
    other = factories.make_notification(zebra.channel)
    path = reverse("admin:notification_why", args=[notification.channel_id])
    page = viewer.post(path, {"notification": str(other.pk), "who": str(theirs.pk)})
    assert "no such" in page.content.decode()


def test_the_pages_ask_for_the_device_and_the_notification(viewer, notification, device):
    of_person = viewer.get(reverse("admin:person_history", args=[device.person_id]))
    of_device = viewer.get(reverse("admin:subscription_history", args=[device.pk]))
    row = reverse("admin:notifications_app_notification_change", args=[notification.pk])
    asked = reverse("admin:notification_why", args=[notification.channel_id])

    for page in (of_person, of_device, viewer.get(row)):
        assert f'hx-post="{asked}"' in page.content.decode()
    assert 'value="user &lt;42&gt;"' in of_person.content.decode()
    assert f'value="{device.pk}"' in of_device.content.decode()
    assert f'value="{notification.pk}"' in of_device.content.decode()


def test_a_sender_tries_the_form_as_somebody(alice, device):
    Subscription.objects.filter(pk=device.pk).update(attributes={"name": "Ada"})
    sender = signed_in(alice.members["sender"])
    form = written(alice, body="Hi {{ name }}", personalize="on")

    page = sender.post(TRY, form | {"try_as": "user <42>"}).content.decode()

    assert "gets it" in page
    assert "Hi Ada" in page


def test_a_form_with_errors_shows_them(alice, device):
    sender = signed_in(alice.members["sender"])
    page = sender.post(TRY, written(alice, body="") | {"try_as": str(device.pk)})
    assert "Text" in page.content.decode()
    nobody = sender.post(TRY, written(alice) | {"try_as": ""}).content.decode()
    assert "no person with this external id" in nobody


def test_a_viewer_may_not_try(viewer, alice, device):
    form = written(alice) | {"try_as": str(device.pk)}
    assert viewer.post(TRY, form).status_code == 403
