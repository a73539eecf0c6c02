"""Test devices: named, invited by a link, bounded; who may, and what an invitation is worth."""

import html
import json
import re
from datetime import timedelta

import pytest
from auditlog.models import LogEntry
from django.db.models.functions import Now
from django.test import Client, override_settings
from django.urls import reverse

from channels_app.models import Membership
from pushsvc.common.store.redis_client import redis_client
from subscriptions_app.devices import test_devices
from subscriptions_app.models import Subscription, TestDevice
from tests.admin.support import signed_in, subscriber
from tests.factories import add_crowd, make_channel, make_device, make_person

MISSING = "0192f0c1-0000-7000-8000-00000000dead"


def page_of(house):
    return reverse("admin:channel_devices", args=[house.channel.pk])


def do(client, house, **fields):
    return client.post(page_of(house), fields, follow=True)


def form_of(subscription):
    return reverse("admin:subscription_test_device", args=[subscription.pk])


def add(client, subscription, name):
    return client.post(form_of(subscription), {"name": name}, follow=True)


def find(client, house, q):
    answer = client.get(page_of(house), {"q": q})
    return [each["subscription"].pk for each in answer.context["found"]]


def invitation(client, house, name="the kitchen iPhone"):
    page = do(client, house, name=name).content.decode()
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
    answer = do(sender, alice, name=" the kitchen iPhone ")
    page = answer.content.decode()

    assert "Make “the kitchen iPhone” a test device" in page
    assert "<svg" in page
    assert f'href="http://testserver/test-device/{alice.channel.pk}#' in page
    assert "no-store" in answer["Cache-Control"]
    assert not TestDevice.objects.exists()


def test_an_invitation_can_open_an_app_instead_of_a_browser(alice, sender, phone):
    answer = do(sender, alice, name="a phone", app_link="shop://test-device?a=1")

    page = answer.content.decode()
    link = html.unescape(re.search(r'id="invitation-link" value="([^"]+)"', page)[1])
    assert link.startswith("shop://test-device?a=1#")
    assert "Use this browser" not in page
    assert join(alice, link.partition("#")[2], phone.pk).status_code == 201


@pytest.mark.parametrize(
    "link",
    [
        *("javascript:alert(1)", "shop://javascript:alert(1)", "file:///etc/passwd"),
        *("intent:x;scheme=javascript;end", "shop://x#y", "shop", "shop://a b", "://"),
    ],
)
def test_what_opens_no_app_is_an_error_next_to_the_link(alice, sender, link):
    answer = do(sender, alice, name="a phone", app_link=link)
    assert answer.context["form"].errors == {
        "app_link": ["Enter a link such as shop://test-device."]
    }
    assert f'value="{link}"' in answer.content.decode()
    assert "<svg" not in answer.content.decode()


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
    do(sender, alice, device=str(TestDevice.objects.get().pk))

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


# --- finding, adding, removing -------------------------------------------------------------------


def test_a_device_is_found_by_its_user_its_id_or_its_token_s_hash(alice, sender, phone):
    tablet = another(alice, phone)
    person = make_person(alice.channel, "user-17")
    Subscription.objects.filter(pk__in=[phone.pk, tablet.pk]).update(person=person)
    Subscription.objects.filter(pk=phone.pk).update(registered_at=Now() + timedelta(minutes=1))
    digest = bytes(phone.address_sha256).hex()

    assert find(sender, alice, " user-17 ") == [phone.pk, tablet.pk]
    assert find(sender, alice, str(phone.pk)) == find(sender, alice, digest) == [phone.pk]
    assert find(sender, alice, "user-1") == find(sender, alice, "user-17\0") == []


def test_without_a_search_the_newest_active_devices_of_all_platforms_are_listed(alice, sender):
    add_crowd(alice.channel, 12)
    add_crowd(alice.channel, 2, platform="android")
    rows = Subscription.objects.filter(channel=alice.channel)
    rows.filter(platform="web").update(attributes={"model": "Pixel 9"})
    gone = subscriber(alice.channel)
    Subscription.objects.filter(pk=gone.pk).update(expired_at=Now())

    newest = [each.pk for each in rows.filter(expired_at__isnull=True).order_by("-id")[:10]]

    assert find(sender, alice, "") == newest
    assert "model: Pixel 9" in sender.get(page_of(alice)).content.decode()


def test_a_found_device_becomes_a_test_device_on_a_page_with_a_name(alice, sender, phone):
    Subscription.objects.filter(pk=phone.pk).update(person=make_person(alice.channel, "user-17"))
    found = sender.get(page_of(alice), {"q": "user-17"}).content.decode()
    assert f'href="{form_of(phone)}"' in found
    assert 'value="user-17, Web"' in sender.get(form_of(phone)).content.decode()

    page = add(sender, phone, "my phone").content.decode()

    assert "“my phone” is a test device." in page
    device = TestDevice.objects.get()
    assert (device.subscription_id, device.name) == (phone.pk, "my phone")
    assert 'value="my phone"' in sender.get(form_of(phone)).content.decode()
    assert f'href="{form_of(phone)}"' not in sender.get(page_of(alice)).content.decode()


@pytest.mark.parametrize("page", ["subscription", "person"])
def test_the_pages_of_a_subscriber_and_a_person_lead_to_it(alice, sender, viewer, phone, page):
    person = make_person(alice.channel, "user-17")
    Subscription.objects.filter(pk=phone.pk).update(person=person)
    row = person if page == "person" else phone
    path = reverse(f"admin:subscriptions_app_{page}_change", args=[row.pk])
    link = f'href="{form_of(phone)}"'

    assert link in sender.get(path).content.decode()
    assert link not in viewer.get(path).content.decode()
    make_device(alice.channel, phone, alice.members["owner"])
    assert "“the kitchen iPhone”" in sender.get(path).content.decode()
    Subscription.objects.filter(pk=phone.pk).update(expired_at=Now())
    assert link not in sender.get(path).content.decode()


def test_a_subscriber_that_expired_is_not_added(alice, sender, phone):
    Subscription.objects.filter(pk=phone.pk).update(expired_at=Now())
    answer = add(sender, phone, "gone")
    assert answer.status_code == 400
    assert "no such active subscription" in answer.content.decode()
    assert not TestDevice.objects.exists()


def test_removing_leaves_the_subscriber(alice, sender, phone):
    device = make_device(alice.channel, phone, alice.members["owner"])
    page = do(sender, alice, device=str(device.pk)).content.decode()
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
    for fields in ({"name": "x"}, {"device": str(device.pk)}):
        assert do(viewer, alice, **fields).status_code == 403
    assert add(viewer, phone, "x").status_code == viewer.get(form_of(phone)).status_code == 403
    assert TestDevice.objects.count() == 1


@pytest.mark.parametrize("name", ["", " ", "x" * 51, "a\nb", "a\x00b"])
def test_a_name_is_short_and_readable(alice, sender, phone, name):
    for answer in (add(sender, phone, name), do(sender, alice, name=name)):
        assert answer.status_code == 400
        [error] = answer.context["form"].errors["name"]
        assert error in {"A name has 1 to 50 characters.", "Null characters are not allowed."}
        assert answer.context["form"]["name"].value() == name
    assert not TestDevice.objects.exists()


def test_a_taken_name_is_an_error_next_to_it_and_stays_in_the_field(alice, sender, phone):
    make_device(alice.channel, phone, alice.members["owner"])
    answer = add(sender, another(alice, phone), "the kitchen iPhone")
    taken = ["Another test device is called “the kitchen iPhone”."]
    assert answer.context["form"].errors == {"name": taken}
    assert 'value="the kitchen iPhone"' in answer.content.decode()
    assert TestDevice.objects.count() == 1


def test_two_devices_do_not_share_a_name(alice, sender, phone):
    make_device(alice.channel, phone, alice.members["owner"])
    answer = join(alice, invitation(sender, alice), another(alice, phone).pk)
    assert answer.status_code == 409
    assert answer.json()["detail"] == "Another test device is called “the kitchen iPhone”."


def test_a_channel_has_a_bounded_number_of_test_devices(alice, sender, phone, monkeypatch):
    monkeypatch.setattr(test_devices, "MOST_DEVICES", 1)
    make_device(alice.channel, phone, alice.members["owner"])
    answer = add(sender, another(alice, phone), "one more")
    assert "Remove one first." in answer.content.decode()
    assert 'value="one more"' in answer.content.decode()
    assert TestDevice.objects.count() == 1


def test_devices_of_several_accounts_have_lists_of_their_own(alice, bob, phone):
    make_device(alice.channel, phone, alice.members["owner"])
    page = signed_in(bob.members["owner"]).get(page_of(bob)).content.decode()
    assert "No test devices yet." in page
