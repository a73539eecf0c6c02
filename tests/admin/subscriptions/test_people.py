"""People in the console: searched by external id, shown, opted out, erased, exported."""

import json

import pytest
from auditlog.models import LogEntry
from django.urls import reverse

from notifications_app.models import Delivery
from subscriptions_app.categories.services import category_create
from subscriptions_app.models import Person, Subscription, Tag
from subscriptions_app.people.linking import devices_link
from tests.admin.support import signed_in
from tests.factories import add_crowd, make_sent_notification

LIST = reverse("admin:subscriptions_app_person_changelist")


def make_person(house, external_id, *, devices=2):
    add_crowd(house.channel, devices)
    new = Subscription.objects.filter(channel=house.channel, person=None)
    devices_link(channel=house.channel, links={each.pk: external_id for each in new})
    return Person.objects.get(channel=house.channel, external_id=external_id)


@pytest.fixture
def person(alice):
    make_person(alice, "user-43", devices=1)
    return make_person(alice, "user-42")


@pytest.fixture
def manager(alice):
    return signed_in(alice.members["manager"])


def page_of(person, name="subscriptions_app_person_change"):
    return reverse(f"admin:{name}", args=[person.pk])


def text_of(client, person):
    answer = client.get(page_of(person))
    assert answer.status_code == 200
    return answer.content.decode()


def found(client, house, text):
    page = client.get(LIST, {"q": text, "channel__id__exact": house.channel.pk})
    return {row.external_id for row in page.context["cl"].result_list}


def test_a_person_is_found_by_the_whole_external_id_only(alice, person, viewer):
    assert found(viewer, alice, "user-42") == {"user-42"}
    assert found(viewer, alice, " user-42 ") == {"user-42"}
    assert found(viewer, alice, "user-4") == set()
    assert found(viewer, alice, "") == {"user-42", "user-43"}


def test_the_page_shows_devices_choices_and_tags(alice, person, viewer):
    category_create(
        channel=alice.channel, key="offers", name="Offers", description="", default=True
    )
    Person.objects.filter(pk=person.pk).update(choices={"offers": False})
    device = person.devices.order_by("id")[0]
    Subscription.objects.filter(pk=device.pk).update(timezone="Europe/Vienna", language="de-AT")
    Tag.objects.create(
        channel_id=alice.channel.pk, platform=device.platform, tag="team-7", subscription=device
    )

    page = text_of(viewer, person)

    for text in ("user-42", str(device.pk), "Europe/Vienna", "de-AT", "team-7", "Offers"):
        assert text in page
    assert "refused" in page
    assert device.address not in page


def test_a_subscribers_page_leads_to_its_person_and_shows_tags(alice, person, viewer):
    device = person.devices.order_by("id")[0]
    Tag.objects.create(
        channel_id=alice.channel.pk, platform=device.platform, tag="team-7", subscription=device
    )

    address = reverse("admin:subscriptions_app_subscription_change", args=[device.pk])
    page = viewer.get(address).content.decode()

    assert page_of(person) in page
    assert "team-7" in page


def test_the_history_is_of_all_devices_with_the_newest_first(alice, person, viewer):
    sent = [make_sent_notification(alice.channel, title=title) for title in ("Parcel", "Sale")]
    for notification, device in zip(sent, person.devices.all(), strict=True):
        Delivery.objects.create(
            notification_id=notification.pk, subscription_id=device.pk, batch_id=1, status=1
        )
    make_sent_notification(alice.channel, title="News of others")

    page = viewer.get(page_of(person, "person_history")).content.decode()

    assert page.index("Sale") < page.index("Parcel")
    assert "News of others" not in page.partition("</table>")[0]
    assert "Of the channel's last 200 notifications, the newest 50 results." in page


def test_a_manager_opts_a_person_out_and_lifts_it(person, manager):
    manager.post(page_of(person), {"do": "opt-out"})

    person.refresh_from_db()
    assert (person.opted_out_at is None, person.active_devices) == (False, 0)
    assert set(person.devices.values_list("expired_code", flat=True)) == {"opted_out"}
    assert "Lift the opt-out" in text_of(manager, person)

    manager.post(page_of(person), {"do": "opt-in"})

    person.refresh_from_db()
    assert person.opted_out_at is None


def test_a_person_is_called_reachable_only_with_an_active_device(alice, person, viewer):
    assert "reachable" in text_of(viewer, person)
    Person.objects.filter(pk=person.pk).update(active_devices=0)

    page = text_of(viewer, person)

    assert "reachable" not in page
    assert "no active device" in page
    listed = viewer.get(LIST, {"q": "user-42", "channel__id__exact": alice.channel.pk})
    assert "no active device" in listed.content.decode()


def test_an_erased_person_leaves_no_trace(alice, person, manager):
    answer = manager.post(page_of(person), {"do": "erase"}, follow=True)

    assert answer.status_code == 200
    assert not Person.objects.filter(external_id="user-42").exists()
    assert Subscription.objects.filter(channel=alice.channel).count() == 1
    told = str(list(LogEntry.objects.values_list("changes", "object_repr", "additional_data")))
    assert "user-42" not in told
    assert manager.post(page_of(person), {"do": "erase"}).status_code == 404


def test_the_export_holds_the_devices_and_the_results_and_is_audited(alice, person, manager):
    notification = make_sent_notification(alice.channel, title="Spring sale")
    device = person.devices.order_by("id")[0]
    Delivery.objects.create(
        notification_id=notification.pk, subscription_id=device.pk, batch_id=1, status=1
    )

    answer = manager.get(page_of(person, "person_export"))

    assert "attachment" in answer.headers["Content-Disposition"]
    assert "no-store" in answer.headers["Cache-Control"]
    known = json.dumps(json.loads(answer.content))
    for text in ("user-42", device.address, str(notification.pk)):
        assert text in known
    assert LogEntry.objects.filter(action=LogEntry.Action.ACCESS).exists()


@pytest.mark.parametrize("role", ["viewer", "sender", "editor"])
def test_a_member_without_the_manager_role_reads_and_changes_nothing(alice, person, role):
    client = signed_in(alice.members[role])

    assert "Erase" not in text_of(client, person)
    for act in ("opt-out", "opt-in", "erase"):
        assert client.post(page_of(person), {"do": act}).status_code == 403
    assert client.get(page_of(person, "person_export")).status_code == 403
    person.refresh_from_db()
    assert (person.opted_out_at, person.active_devices) == (None, 2)
