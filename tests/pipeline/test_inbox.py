"""What a device can list of what it was sent: POST /inbox."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now

from notifications_app.content.values import TargetId
from notifications_app.erasure import person_forget
from notifications_app.models import Delivery, Notification
from notifications_app.reporting import inbox
from notifications_app.retention import purge
from pushsvc.common.store import sql
from subscriptions_app.models import Subscription
from subscriptions_app.people.linking import devices_link
from tests import factories
from tests.api.events import report
from tests.api.people import new_key, token
from tests.api.support import code, errors, owner_of
from tests.pipeline import support
from tests.pipeline.test_corrections import delivered, sent_long_ago

LEASE = timedelta(seconds=120)


@pytest.fixture
def alice(channel):
    channel.inbox_days = 7
    channel.save()
    return owner_of(channel)


@pytest.fixture
def devices(sandbox, channel):
    """Two browsers: what the sandbox knows of each, and its subscription."""
    return factories.subscribe_browsers(sandbox, channel, 2)


def proof(row):
    return {"endpoint": row.address, "keys": {"p256dh": row.p256dh, "auth": row.auth}}


def asked(owner, row=None, **fields):
    return owner.device("/inbox", (proof(row) if row else {}) | fields)


def read(owner, row=None, **fields):
    response = asked(owner, row, **fields)
    assert response.status_code == 200, response.content
    return response.json()


def bodies(owner, row=None, **fields):
    return [each["body"] for each in read(owner, row, **fields)["messages"]]


def link(row, person):
    """The device has belonged to the person for a while."""
    devices_link(channel=row.channel, links={row.pk: person.external_id})
    Subscription.objects.filter(pk=row.pk).update(linked_at=Now() - 2 * LEASE)


def miss(notification, rows):
    """The push service takes nothing for these devices until the deadline."""
    for device, _ in rows:
        device.behave("error", status=503)
    support.plan()
    support.deliver()
    support.end_time(notification)
    support.tick()


def test_a_device_lists_what_it_got_and_what_it_missed(alice, devices):
    (_, row), (_, other) = devices
    support.send(alice.channel, body="First")
    missed = factories.make_notification(alice.channel, body="Missed")
    miss(missed, devices)
    assert support.counts(missed) == ("sent", 2, 0, 2)

    shown = read(alice, row)

    assert [each["body"] for each in shown["messages"]] == ["Missed", "First"]
    assert shown["unread"] == 2
    assert bodies(alice, other) == ["Missed", "First"]
    listed = {each["notification_id"] for each in shown["messages"]}
    ledger = Delivery.objects.filter(subscription_id=row.pk)
    assert listed == {str(each.notification_id) for each in ledger}


def test_the_token_reports_what_the_reader_does_with_a_missed_message(alice, devices):
    missed = factories.make_notification(alice.channel)
    miss(missed, devices)
    (_, row), _ = devices
    (message,) = read(alice, row)["messages"]
    assert (message["received"], message["clicked"], message["dismissed"]) == (False, False, False)

    report((message["token"], "clicked"))

    (message,) = read(alice, row)["messages"]
    assert (message["received"], message["clicked"], message["dismissed"]) == (True, True, False)
    assert read(alice, row)["unread"] == 0
    missed.refresh_from_db()
    assert (missed.received_count, missed.clicked_count) == (1, 1)


def test_a_dismissed_message_is_read(alice, devices):
    support.send(alice.channel)
    (_, row), (_, other) = devices
    report((read(alice, row)["messages"][0]["token"], "dismissed"))
    assert read(alice, row)["unread"] == 0
    assert read(alice, other)["unread"] == 1


def test_a_stranger_with_the_address_alone_learns_nothing(alice, devices):
    support.send(alice.channel)
    (_, row), (_, other) = devices
    assert errors(asked(alice, endpoint=row.address)) == [("keys", "required")]
    stolen = proof(row) | {"keys": proof(other)["keys"]}
    refusals = [
        asked(alice, **stolen),
        asked(alice, **proof(row) | {"endpoint": "https://fcm.googleapis.com/fcm/send/unknown"}),
    ]
    assert [code(each, 403) for each in refusals] == ["device_unproven"] * 2
    assert len({each.json()["detail"] for each in refusals}) == 1


def test_a_device_of_another_channel_is_not_proven(alice, devices, other_channel):
    other_channel.inbox_days = 7
    other_channel.save()
    support.send(alice.channel)
    assert code(asked(owner_of(other_channel), devices[0][1]), 403) == "device_unproven"


def test_a_phone_without_auth_has_no_proof(alice):
    alice.channel.android_enabled = True
    alice.channel.save()
    factories.register(alice.channel, "android", "a" * 22 + ":" + "b" * 134)
    phone = {"platform": "android", "provider_token": "a" * 22 + ":" + "b" * 134}
    assert errors(asked(alice, **phone)) == [("auth", "required")]
    assert code(asked(alice, auth="A" * 22, **phone), 403) == "device_unproven"


def test_without_days_there_is_no_inbox(alice, devices):
    support.send(alice.channel)
    path = f"/channel/{alice.channel.pk}/delivery-settings"
    assert alice.call("PUT", path, {"inbox_days": 0}).json()["inbox_days"] == 0
    assert code(asked(alice, devices[0][1]), 409) == "inbox_off"
    assert errors(alice.call("PUT", path, {"inbox_days": 31})) == [("inbox_days", "out_of_range")]


def test_messages_leave_after_the_channel_s_days(alice, devices):
    support.send(alice.channel, body="Old")
    Delivery.objects.update(finished_at=F("finished_at") - timedelta(days=7))
    support.send(alice.channel, body="New")
    assert bodies(alice, devices[0][1]) == ["New"]


def test_what_was_withdrawn_or_waits_is_not_listed(alice, devices):
    (_, row), _ = devices
    held = factories.make_notification(alice.channel, body="Waits")
    support.plan()
    assert bodies(alice, row) == []
    Notification.objects.filter(pk=held.pk).update(stopped_at=Now())
    support.tick()
    assert support.codes(held) == ["stopped"] * 2
    assert bodies(alice, row) == []


def test_what_is_scheduled_ahead_takes_no_places(alice, devices, monkeypatch):
    monkeypatch.setattr(inbox, "MOST_CANDIDATES", 2)
    (_, row), _ = devices
    support.send(alice.channel, body="Sent")
    for _ in range(3):
        factories.make_notification(alice.channel, scheduled_at="2031-01-01T09:00:00Z")
    assert bodies(alice, row) == ["Sent"]


def test_tests_are_not_listed(alice, devices):
    (_, row), _ = devices
    support.send(alice.channel, only_subscription_id=row.pk)
    assert bodies(alice, row) == []


def test_direct_messages_are_listed_for_their_devices_alone(alice, devices):
    (_, row), (_, other) = devices
    link(row, factories.make_person(alice.channel, "ada"))
    for fields in ({"people": ["ada"], "body": "To Ada"}, {"subscriptions": [other], "body": "x"}):
        factories.make_direct_notification(alice.channel, **fields)
    support.plan()
    support.deliver()
    assert bodies(alice, row) == ["To Ada"]
    assert bodies(alice, other) == ["x"]


def test_a_person_lists_the_messages_of_all_devices_once(alice, devices):
    key = new_key(alice)
    ada = factories.make_person(alice.channel, "ada")
    for _, row in devices:
        link(row, ada)
    support.send(alice.channel, body="To all")
    factories.make_direct_notification(alice.channel, subscriptions=[devices[1][1]], body="There")
    support.plan()
    support.deliver()
    proved = {"identity_token": token(alice, key, "ada")}

    shown = read(alice, **proved)

    assert [each["body"] for each in shown["messages"]] == ["There", "To all"]
    report((read(alice, devices[0][1])["messages"][0]["token"], "clicked"))
    shown = read(alice, **proved)
    assert [each["clicked"] for each in shown["messages"]] == [False, True]
    assert shown["unread"] == 1
    assert read(alice, identity_token=token(alice, key, "nobody")) == {"messages": [], "unread": 0}
    refused = asked(alice, identity_token=token(alice, key, "ada", exp=1))
    assert code(refused, 403) == "identity_refused"


def test_the_next_person_on_a_device_sees_nothing_of_the_one_before(alice, devices):
    (_, row), _ = devices
    ada, bob = (factories.make_person(alice.channel, name) for name in ("ada", "bob"))
    link(row, ada)
    support.send(alice.channel, body="While Ada's")
    factories.make_direct_notification(alice.channel, people=["ada"], body="To Ada")
    support.plan()
    support.deliver()
    assert bodies(alice, row) == ["To Ada", "While Ada's"]

    devices_link(channel=alice.channel, links={row.pk: bob.external_id})

    assert bodies(alice, row) == []

    support.send(alice.channel, body="To all")
    factories.make_direct_notification(alice.channel, people=["bob"], body="Welcome, Bob")
    support.plan()
    support.deliver()
    assert bodies(alice, row) == ["Welcome, Bob", "To all"]


def test_a_correction_is_listed_in_the_place_of_what_it_corrects(alice, devices):
    """Where it was not delivered, what it corrects is listed."""
    (_, row), (device, other) = devices
    device.behave("too_large", times=1)
    wrong = support.send(alice.channel, body="1:0")
    right = delivered(alice.channel, wrong, body="0:1")
    again = delivered(alice.channel, right, body="0:2")

    shown = read(alice, row)

    assert [each["notification_id"] for each in shown["messages"]] == [str(again.pk)]
    assert (shown["messages"][0]["body"], shown["unread"]) == ("0:2", 1)
    assert bodies(alice, other) == ["1:0"]


def test_the_correction_of_a_direct_message_is_listed_for_its_person_alone(alice, devices):
    """Its own values count, and not those of the target."""
    (_, row), _ = devices
    link(row, factories.make_person(alice.channel, "ada"))
    body = "You owe {{ vars.sum }}"
    wrong = factories.make_direct_notification(
        alice.channel,
        targets=[TargetId(external_id="ada", vars={"sum": 12})],
        body=body,
        extras={"personalize": True},
    )
    support.plan()
    support.deliver()
    assert bodies(alice, row) == ["You owe 12"]
    delivered(alice.channel, wrong, body=body, personalize=True, vars={"sum": 21})
    assert bodies(alice, row) == ["You owe 21"]

    devices_link(channel=alice.channel, links={row.pk: "bob"})
    Subscription.objects.filter(pk=row.pk).update(linked_at=None)  # as rows of earlier versions

    assert bodies(alice, row) == []


def test_retention_leaves_the_correction_of_an_old_message_in_the_inbox(alice, devices):
    (_, row), _ = devices
    link(row, factories.make_person(alice.channel, "ada"))
    wrong = sent_long_ago(alice.channel, people=["ada"], body="You owe 12")
    delivered(alice.channel, wrong, body="You owe 21")
    assert bodies(alice, row) == ["You owe 21"]

    purge()

    assert bodies(alice, row) == ["You owe 21"]


def test_an_erased_person_has_no_inbox(alice, devices):
    key = new_key(alice)
    (_, row), _ = devices
    link(row, factories.make_person(alice.channel, "ada"))
    factories.make_direct_notification(alice.channel, people=["ada"], body="To Ada")
    support.plan()
    support.deliver()

    person_forget(channel=alice.channel, external_id="ada")

    assert read(alice, identity_token=token(alice, key, "ada"))["messages"] == []
    assert code(asked(alice, row), 403) == "device_unproven"


def test_a_message_is_in_the_device_s_language_with_its_values_of_now(alice, devices):
    (_, row), _ = devices
    Subscription.objects.filter(pk=row.pk).update(language="de", attributes={"name": "Ada"})
    extras = {
        "personalize": True,
        "translations": {"de": {"body": "Hallo {{ name }}"}},
    }
    support.send(alice.channel, body="Hello {{ name }}", extras=extras)
    assert bodies(alice, row) == ["Hallo Ada"]
    Subscription.objects.filter(pk=row.pk).update(attributes={"name": "Grace"})
    assert bodies(alice, row) == ["Hallo Grace"]


def test_pages_follow_each_other(alice, devices, monkeypatch):
    for number in range(5):
        support.send(alice.channel, body=str(number))
    (_, row), _ = devices
    first = read(alice, row, limit=2)
    assert [each["body"] for each in first["messages"]] == ["4", "3"]
    assert first["unread"] == 5
    last = first["messages"][-1]["notification_id"]
    assert bodies(alice, row, limit=2, before=last) == ["2", "1"]
    oldest = read(alice, row)["messages"][-1]["notification_id"]
    assert bodies(alice, row, before=oldest) == []
    assert code(asked(alice, row, before=str(row.pk)), 404) == "not_found"
    assert errors(asked(alice, row, limit=51)) == [("limit", "out_of_range")]


@pytest.mark.parametrize("is_known", [True, False])
def test_the_cost_does_not_grow_with_the_channel(
    alice, other_channel, devices, monkeypatch, is_known
):
    """Also if PostgreSQL knows of no send of the channel, and if many never started."""
    monkeypatch.setattr(inbox, "MOST_CANDIDATES", 5)
    fields = {"target_platforms": ["web"], "ttl": 60, "scheduled_at": Now()}
    Notification.objects.bulk_create(
        Notification(channel=other_channel, **fields) for _ in range(300)
    )
    sql.execute("ANALYZE notifications_app_notification", {})
    Notification.objects.filter(channel=other_channel).delete()
    for number in range(4):
        support.send(alice.channel, body=str(number))
    (_, row), (_, other) = devices
    for number in range(12):
        support.send(alice.channel, body=f"later {number}")
        factories.make_direct_notification(alice.channel, subscriptions=[other])
    support.plan()
    support.deliver()
    for _ in range(30):
        factories.make_notification(alice.channel, status="cancelled")
    assert bodies(alice, row) == [f"later {number}" for number in range(11, 6, -1)]
    if is_known:
        sql.execute("ANALYZE notifications_app_notification", {})
    read_rows = support.most_rows_read(lambda: asked(alice, row), as_if_large=True)
    assert read_rows <= 20
