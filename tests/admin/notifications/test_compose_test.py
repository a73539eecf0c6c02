"""Composing: a test message to one subscriber."""

import pytest
from auditlog.models import LogEntry
from django.db.models.functions import Now
from django.urls import reverse

from notifications_app.admin.compose.page import TESTS_OF_A_WRITER
from notifications_app.models import Notification
from pushsvc.common.http.ratelimit import Limit, take
from pushsvc.common.store import sql
from pushsvc.common.store.redis_client import redis_client
from subscriptions_app.devices.test_devices import device_add, device_give
from subscriptions_app.models import Subscription
from tests.admin.notifications.composing import COMPOSE, TEST, written
from tests.admin.support import signed_in, subscriber
from tests.factories import add_crowd, add_subscription, add_subscriptions, make_device, make_person
from tests.pipeline.support import waits_for


def test_a_test_message_is_stored_for_one_subscriber_and_sent_now(sender, alice):
    add_crowd(alice.channel, 3)
    device = subscriber(alice.channel)
    form = written(alice, when="later", local_time="2031-01-02T09:00", test_device=str(device.pk))

    answer = sender.post(TEST, form)

    row = Notification.objects.get()
    assert answer.status_code == 200
    assert "Sending the test…" in answer.content.decode()
    assert row.only_subscription_id == device.pk
    assert row.is_test
    assert row.scheduled_at == row.created_at
    assert (row.body, row.target_platforms) == (form["body"], ["web"])


@pytest.mark.django_db(transaction=True)
def test_a_test_message_is_not_stored_without_its_audit_entry(sender, alice):
    add_crowd(alice.channel, 1)
    device = subscriber(alice.channel)
    form = written(alice, test_device=str(device.pk))

    def hold_audit_log():
        sql.execute("LOCK TABLE auditlog_logentry IN SHARE MODE", {})

    with waits_for(hold_audit_log, lambda: sender.post(TEST, form)):
        assert not Notification.objects.exists()

    stored = Notification.objects.get()
    assert LogEntry.objects.filter(object_pk=stored.pk).count() == 1


def test_a_subscriber_is_found_by_the_hash_of_its_token(sender, alice):
    add_crowd(alice.channel, 2)
    device = subscriber(alice.channel)
    known_as = bytes(device.address_sha256).hex().upper()
    sender.post(TEST, written(alice, test_device="", test_known_as=f" {known_as} "))
    assert Notification.objects.get().only_subscription_id == device.pk


def test_of_a_person_the_device_that_was_seen_last_gets_the_test(sender, alice):
    add_crowd(alice.channel, 2)
    person = make_person(alice.channel, "user-17")
    Subscription.objects.filter(channel=alice.channel).update(person=person)
    device = Subscription.objects.filter(channel=alice.channel).order_by("registered_at").last()
    sender.post(TEST, written(alice, test_device="", test_known_as=" user-17 "))
    assert Notification.objects.get().only_subscription_id == device.pk


def test_a_test_message_to_a_missing_subscriber_is_refused(sender, alice):
    for known_as in ("x", ""):
        answer = sender.post(TEST, written(alice, test_known_as=known_as))
        assert "No test was sent" in answer.content.decode()
    assert not Notification.objects.exists()


def test_a_test_message_without_a_subscriber_asks_for_one(sender, alice):
    page = sender.post(TEST, written(alice, test_device="", test_known_as=" ")).content.decode()

    assert "Choose the device that gets the test." in page
    assert "token hash" not in page
    assert not Notification.objects.exists()


def test_a_test_message_with_errors_says_what_is_wrong(sender, alice):
    add_crowd(alice.channel, 1)
    device = subscriber(alice.channel)
    answer = sender.post(TEST, written(alice, body="", test_device=str(device.pk)))
    assert "<li>Text: Write a text.</li>" in answer.content.decode()
    assert not Notification.objects.exists()


def test_no_customer_s_device_is_offered_only_test_devices_are(sender, alice):
    add_crowd(alice.channel, 3)
    customer, own, gone = Subscription.objects.filter(channel=alice.channel).order_by("id")
    make_device(alice.channel, own, alice.members["sender"])
    make_device(alice.channel, gone, alice.members["sender"], name="an old phone")
    Subscription.objects.filter(pk=gone.pk).update(expired_at=Now())

    page = sender.get(COMPOSE).content.decode()

    assert f'name="test_device" value="{own.pk}" checked' in page
    assert "the kitchen iPhone" in page
    assert str(customer.pk) not in page
    assert "an old phone" not in page


def test_without_a_test_device_the_page_leads_to_where_one_is_added(sender, alice):
    add_crowd(alice.channel, 3)
    page = sender.get(COMPOSE).content.decode()
    assert f'href="{reverse("admin:channel_devices", args=[alice.channel.pk])}"' in page
    assert 'name="test_device" value="" checked' not in page


# --- writers --------------------------------------------------------------------------------------


def add_own(house, device, name="phone", writer=None):
    made = device_add(
        channel=house.channel,
        name=name,
        subscription_id=device.pk,
        user=house.members["sender"],
    )
    device_give(made, writer)
    return made


def test_a_writer_tests_on_own_devices_and_on_no_other(alice, bob):
    writer = alice.members["writer"]
    mine, other, unnamed = add_subscriptions(alice.channel, 3)
    add_own(alice, mine, writer=writer)
    add_own(alice, other, "other")
    theirs = add_subscriptions(bob.channel, 1)[0]
    client = signed_in(writer)

    page = client.get(COMPOSE).content.decode()
    assert f'value="{mine.pk}"' in page
    assert str(other.pk) not in page
    assert "Another subscriber" not in page
    for device in (other, unnamed):
        for name in ("test_device", "test_known_as"):
            refused = client.post(TEST, written(alice) | {name: str(device.pk)})
            assert refused.status_code == 403
    stranger = client.post(TEST, written(alice) | {"test_device": str(theirs.pk)})
    assert "No active device" in stranger.content.decode()
    assert client.post(TEST, written(bob) | {"test_device": str(theirs.pk)}).status_code == 404
    assert not Notification.objects.exists()

    assert client.post(TEST, written(alice) | {"test_device": str(mine.pk)}).status_code == 200
    test = Notification.objects.get()
    assert test.only_subscription_id == mine.pk
    entry = LogEntry.objects.filter(object_pk=str(test.pk)).get()
    assert entry.actor == writer


def test_a_writer_sends_few_tests_a_minute_and_a_day(alice):
    writer, sender = alice.members["writer"], signed_in(alice.members["sender"])
    mine = add_subscriptions(alice.channel, 1)[0]
    add_own(alice, mine, writer=writer)
    given = written(alice) | {"test_device": str(mine.pk)}
    client = signed_in(writer)
    for seconds, most in TESTS_OF_A_WRITER.items():
        before = Notification.objects.count()
        redis_client().flushdb()
        take(Limit(f"tests-in-{seconds}", str(writer.pk), most, seconds), cost=most - 1)
        assert "Sending the test…" in client.post(TEST, given).content.decode()
        assert "seconds before the next" in client.post(TEST, given).content.decode()
        assert "Sending the test…" in sender.post(TEST, given).content.decode()
        assert Notification.objects.count() == before + 2


def test_a_sender_decides_which_device_is_a_writers(alice, bob):
    writer = alice.members["writer"]
    device = add_own(alice, add_subscriptions(alice.channel, 1)[0])
    page = reverse("admin:channel_devices", args=[alice.channel.pk])
    given = {"device": str(device.pk), "writer": str(writer.pk)}
    sender = signed_in(alice.members["sender"])

    assert signed_in(writer).post(page, given).status_code == 403
    for user in (alice.members["viewer"], bob.members["writer"]):
        assert sender.post(page, given | {"writer": str(user.pk)}).status_code == 404
    assert signed_in(bob.members["owner"]).post(page, given).status_code == 404
    device.refresh_from_db()
    assert device.writer is None

    assert sender.post(page, given).status_code == 302
    device.refresh_from_db()
    assert device.writer == writer
    entry = LogEntry.objects.filter(object_pk=str(device.pk)).order_by("-id")[0]
    assert entry.changes["writer"] == [None, "alice-writer"]
    sender.post(page, given | {"writer": ""})
    device.refresh_from_db()
    assert device.writer is None


def test_a_writer_who_is_a_viewer_now_tests_nothing(alice):
    writer = alice.members["writer"]
    mine = add_subscriptions(alice.channel, 1)[0]
    add_own(alice, mine, writer=writer)
    alice.account.memberships.filter(user=writer).update(role="viewer")
    given = written(alice) | {"test_device": str(mine.pk)}
    assert signed_in(writer).post(TEST, given).status_code == 403


@pytest.mark.parametrize(("chosen", "title"), [("0", "Sale"), ("1", "Our sale begins")])
def test_a_test_has_the_variant_that_the_preview_shows(sender, alice, chosen, title):
    device = add_subscription(alice.channel)
    variants = {"variants.0.name": "short", "variants.0.title": "Sale", "variants.1.name": "long"}
    form = written(alice, title="Our sale begins", test_device=str(device.pk), **variants)

    sender.post(TEST, form | {"preview_variant": chosen})

    sent = Notification.objects.get()
    assert (sent.title, sent.content.variants) == (title, [])
