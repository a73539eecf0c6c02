"""Test devices: named, invited by a link, bounded; who may, and what an invitation is worth."""

import json
import re

import pytest
from auditlog.models import LogEntry
from django.test import Client, override_settings
from django.urls import reverse

from channels_app.models import Membership
from pushsvc.common.store.redis_client import redis_client
from subscriptions_app.devices import test_devices
from subscriptions_app.models import Subscription, TestDevice
from tests.admin.support import signed_in, subscriber
from tests.factories import add_crowd, make_channel, make_device

MISSING = "0192f0c1-0000-7000-8000-00000000dead"


def page_of(house):
    return reverse("admin:channel_devices", args=[house.channel.pk])


def do(client, house, what, **fields):
    return client.post(page_of(house), {"do": what} | fields, follow=True)


def invitation(client, house, name="the kitchen iPhone"):
    page = do(client, house, "invite", name=name).content.decode()
    return re.search(r"/test-device/[\w-]+#([\w:-]+)", page).group(1)


def join(house, text, subscription_id, channel_id=None):
    return Client().post(
        f"/test-device/{channel_id or house.channel.pk}/join",
        json.dumps({"invitation": text, "subscription_id": str(subscription_id)}),
        content_type="application/json",
    )


@pytest.fixture
def phone(alice):
    add_crowd(alice.channel, 1)
    return subscriber(alice.channel)


def another(house, phone):
    add_crowd(house.channel, 1)
    return Subscription.objects.filter(channel=house.channel).exclude(pk=phone.pk).get()


def test_an_invitation_is_a_link_and_a_picture_of_it(alice, sender):
    answer = do(sender, alice, "invite", name=" the kitchen iPhone ")
    page = answer.content.decode()

    assert "Make “the kitchen iPhone” a test device" in page
    assert "<svg" in page
    assert f'href="http://testserver/test-device/{alice.channel.pk}#' in page
    assert "no-store" in answer["Cache-Control"]
    assert not TestDevice.objects.exists()


def test_a_device_joins_by_it_without_signing_in(alice, sender, phone):
    answer = join(alice, invitation(sender, alice), phone.pk)

    assert (answer.status_code, answer.json()) == (201, {"name": "the kitchen iPhone"})
    device = TestDevice.objects.get()
    assert (device.channel, device.subscription_id) == (alice.channel, phone.pk)
    assert device.added_by == alice.members["sender"]
    assert "the kitchen iPhone" in sender.get(page_of(alice)).content.decode()
    entry = LogEntry.objects.latest("id")
    assert entry.additional_data["note"] == f"Invited by {alice.members['sender']}."


def test_joining_again_gives_the_device_its_new_name(alice, sender, phone):
    for name in ("a phone", "a phone", "the kitchen iPhone"):
        assert join(alice, invitation(sender, alice, name), phone.pk).status_code == 201
    assert TestDevice.objects.get().name == "the kitchen iPhone"


def test_the_page_tells_nobody_whether_there_is_such_a_channel(alice):
    own, missing = (
        Client().get(f"/test-device/{pk}").content.decode().replace(str(pk), "")
        for pk in (alice.channel.pk, MISSING)
    )
    assert own == missing
    worker = Client().get(f"/test-device/{MISSING}/sw.js")
    assert worker.content == b'importScripts("/sdk/push-sw.js");\n'


# --- what an invitation is worth -----------------------------------------------------------------


def test_an_invitation_ends_after_its_time(alice, sender, phone, monkeypatch):
    assert test_devices.INVITED_SECONDS == 15 * 60
    text = invitation(sender, alice)
    monkeypatch.setattr(test_devices, "INVITED_SECONDS", -1)
    answer = join(alice, text, phone.pk)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert not TestDevice.objects.exists()


def test_a_changed_or_made_up_invitation_is_refused(alice, sender, phone):
    text = invitation(sender, alice)
    for forged in (f"{text[:-1]}{'A' if text[-1] != 'A' else 'B'}", "x", text.replace(":", ".")):
        assert join(alice, forged, phone.pk).status_code == 403
    assert not TestDevice.objects.exists()


def test_an_invitation_is_for_one_channel(alice, sender, bob):
    other = make_channel("Another", account=alice.account)
    add_crowd(other, 1)
    add_crowd(bob.channel, 1)
    text = invitation(sender, alice)
    for channel in (other, bob.channel):
        stranger = subscriber(channel)
        assert join(alice, text, stranger.pk, channel.pk).status_code == 403
        assert join(alice, text, stranger.pk).status_code == 404
    assert not TestDevice.objects.exists()


def test_an_invitation_is_for_one_device(alice, sender, phone):
    text = invitation(sender, alice)
    customer = another(alice, phone)
    assert join(alice, text, phone.pk).status_code == 201
    assert join(alice, text, phone.pk).status_code == 201  # the first answer may have been lost
    do(sender, alice, "remove", device=str(TestDevice.objects.get().pk))

    refused = [join(alice, text, each.pk) for each in (customer, phone)]

    assert [answer.status_code for answer in refused] == [403, 403]
    assert not TestDevice.objects.exists()
    [used] = redis_client().scan_iter("pushsvc:invitation:*")
    assert (
        test_devices.INVITED_SECONDS - 60 < redis_client().ttl(used) <= test_devices.INVITED_SECONDS
    )


def test_an_invitation_is_not_used_up_by_what_was_refused(alice, sender, phone):
    text = invitation(sender, alice)
    assert join(alice, text, MISSING).status_code == 404
    assert join(alice, text, phone.pk).status_code == 201


def test_nobody_joins_while_redis_is_away(alice, sender, phone):
    text = invitation(sender, alice)
    with override_settings(REDIS_URL="redis://127.0.0.1:1/0"):
        answer = join(alice, text, phone.pk)
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert not TestDevice.objects.exists()
    assert join(alice, text, phone.pk).status_code == 201


@pytest.mark.parametrize("role", [None, "viewer"])
def test_an_invitation_of_somebody_who_may_not_send_any_more_is_refused(alice, sender, phone, role):
    text = invitation(sender, alice)
    held = Membership.objects.filter(user=alice.members["sender"])
    held.update(role=role) if role else held.delete()
    assert join(alice, text, phone.pk).status_code == 403
    assert not TestDevice.objects.exists()


@pytest.mark.parametrize("body", [{}, {"invitation": "x"}, {"invitation": 1, "subscription_id": 2}])
def test_what_is_no_invitation_is_refused(alice, body):
    path = f"/test-device/{alice.channel.pk}/join"
    answer = Client().post(path, json.dumps(body), content_type="application/json")
    assert answer.status_code == 400


def test_an_address_may_try_so_many_invitations_a_minute(alice, settings, phone):
    settings.INVITATIONS_PER_MINUTE = 2
    assert [join(alice, "x", phone.pk).status_code for _ in range(3)] == [403, 403, 429]


# --- adding by id, removing ----------------------------------------------------------------------


def test_a_phone_with_an_app_is_added_by_its_id_or_its_token_s_hash(alice, sender, phone):
    digest = bytes(phone.address_sha256).hex()
    do(sender, alice, "add", name="by hash", known_as=digest)
    do(sender, alice, "add", name="by id", known_as=str(phone.pk))
    assert TestDevice.objects.get().name == "by id"


def test_a_missing_subscriber_is_not_added(alice, sender):
    for known_as in (MISSING, "x"):
        page = do(sender, alice, "add", name="theirs", known_as=known_as).content.decode()
        assert "The channel has no such subscriber." in page
    assert not TestDevice.objects.exists()


def test_removing_leaves_the_subscriber(alice, sender, phone):
    device = make_device(alice.channel, phone, alice.members["owner"])
    page = do(sender, alice, "remove", device=str(device.pk)).content.decode()
    assert "is no longer a test device" in page
    phone.refresh_from_db()
    assert phone.expired_at is None
    assert not TestDevice.objects.exists()


def test_a_device_that_left_says_so(alice, sender, phone):
    make_device(alice.channel, phone, alice.members["owner"])
    phone.delete()
    assert "no longer subscribed" in sender.get(page_of(alice)).content.decode()


# --- who may, and bounds -------------------------------------------------------------------------


def test_a_viewer_looks_and_changes_nothing(alice, viewer, phone):
    device = make_device(alice.channel, phone, alice.members["owner"])
    page = viewer.get(page_of(alice)).content.decode()
    assert "the kitchen iPhone" in page
    assert "You need the role “sender”" in page
    for what, fields in (
        ("invite", {"name": "x"}),
        ("add", {"name": "x", "known_as": str(phone.pk)}),
        ("remove", {"device": str(device.pk)}),
    ):
        assert do(viewer, alice, what, **fields).status_code == 403
    assert TestDevice.objects.count() == 1


@pytest.mark.parametrize("name", ["", " ", "x" * 51, "a\nb", "a\x00b"])
def test_a_name_is_short_and_readable(alice, sender, phone, name):
    page = do(sender, alice, "add", name=name, known_as=str(phone.pk)).content.decode()
    assert "A name has 1 to 50 characters." in page
    assert not TestDevice.objects.exists()


def test_two_devices_do_not_share_a_name(alice, sender, phone):
    make_device(alice.channel, phone, alice.members["owner"])
    answer = join(alice, invitation(sender, alice), another(alice, phone).pk)
    assert answer.status_code == 409
    assert answer.json()["detail"] == "Another test device is called “the kitchen iPhone”."


def test_a_channel_has_a_bounded_number_of_test_devices(alice, sender, phone, monkeypatch):
    monkeypatch.setattr(test_devices, "MOST_DEVICES", 1)
    make_device(alice.channel, phone, alice.members["owner"])
    known_as = str(another(alice, phone).pk)
    page = do(sender, alice, "add", name="one more", known_as=known_as).content.decode()
    assert "Remove one first." in page
    assert TestDevice.objects.count() == 1


def test_devices_of_several_accounts_have_lists_of_their_own(alice, bob, phone):
    make_device(alice.channel, phone, alice.members["owner"])
    page = signed_in(bob.members["owner"]).get(page_of(bob)).content.decode()
    assert "No test devices yet." in page
