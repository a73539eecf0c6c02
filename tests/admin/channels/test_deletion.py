"""The page on which owners delete a channel, and what the console allows meanwhile."""

from datetime import timedelta

import pytest
from auditlog.models import LogEntry
from django.db.models.functions import Now
from django.urls import reverse

from channels_app.models import Channel
from notifications_app.models import Draft, Notification
from tests.admin.support import signed_in
from tests.factories import make_notification

pytestmark = pytest.mark.django_db
CONFIRMATION = "The channel is being deleted. You can undo this for a day."


@pytest.fixture
def channel(alice):
    Channel.objects.filter(pk=alice.channel.pk).update(name="Alice's  shop")
    return Channel.objects.get(pk=alice.channel.pk)


@pytest.fixture
def owner(alice):
    return signed_in(alice.members["owner"])


def act(client, channel, do, **fields):
    page = reverse("admin:channel_deletion", args=[channel.pk])
    return client.post(page, {"do": do} | fields, follow=True)


def delete(client, channel, name="Alice's shop"):
    return act(client, channel, "delete", name=name)


def is_to_be_deleted(channel):
    channel.refresh_from_db()
    return channel.is_to_be_deleted


def test_an_owner_deletes_a_channel_and_undoes_it(owner, alice, channel):
    later = make_notification(channel, scheduled_at=Now() + timedelta(days=2))
    settings = reverse("admin:channel_settings", args=[channel.pk])
    assert reverse("admin:channel_deletion", args=[channel.pk]) in owner.get(settings).text

    assert CONFIRMATION in delete(owner, channel).text
    assert is_to_be_deleted(channel)
    later.refresh_from_db()
    assert later.is_paused
    page = owner.get(reverse("admin:channels_app_channel_change", args=[channel.pk])).text
    assert "This channel will be deleted" in page
    assert "being deleted" in owner.get(reverse("admin:channels_app_channel_changelist")).text

    assert "The channel is kept." in act(owner, channel, "undo").text
    assert not is_to_be_deleted(channel)
    later.refresh_from_db()
    assert not later.is_paused
    entries = LogEntry.objects.filter(object_pk=str(channel.pk)).order_by("id")
    assert [entry.additional_data.get("who") for entry in entries][-2:] == ["alice-owner"] * 2
    assert all("deletion_asked_at" in entry.changes for entry in list(entries)[-2:])


@pytest.mark.parametrize("name", ["", "alice's shop", "Alice's shop!"])
def test_the_name_must_be_typed(owner, channel, name):
    assert "its name was not typed" in delete(owner, channel, name).text
    assert not is_to_be_deleted(channel)


def test_only_owners_delete_a_channel(alice, bob, channel):
    for role in ("viewer", "sender", "editor", "manager"):
        client = signed_in(alice.members[role])
        assert delete(client, channel).status_code == 403
        settings = client.get(reverse("admin:channel_settings", args=[channel.pk]))
        assert "Delete this channel" not in settings.text
    assert delete(signed_in(bob.members["owner"]), channel).status_code == 404
    assert not is_to_be_deleted(channel)


def test_meanwhile_nothing_of_the_channel_can_be_changed(owner, alice, channel, root):
    waiting = make_notification(channel, scheduled_at=Now() + timedelta(days=2))
    delete(owner, channel)

    for client in (owner, signed_in(root)):
        refused = [
            client.post(reverse("admin:channel_settings", args=[channel.pk]), {"name": "New"}),
            client.post(reverse("admin:channel_keys", args=[channel.pk]), {"scopes": ["send"]}),
            client.post(reverse("admin:notification_resume", args=[waiting.pk])),
            client.get(reverse("admin:notification_compose"), {"channel": channel.pk}),
            client.post(
                reverse("admin:notification_compose"),
                {"channel": channel.pk, "body": "Hello", "step": "save"},
            ),
        ]
        assert [each.status_code for each in refused] == [403] * 5
        assert all("The channel is being deleted" in each.text for each in refused)
    assert (channel.api_keys.count(), Draft.objects.count()) == (0, 0)
    assert Notification.objects.get().is_paused


def test_after_a_day_the_page_offers_nothing(owner, channel):
    delete(owner, channel)
    Channel.objects.update(deletion_asked_at=Now() - timedelta(days=1))

    assert "has passed" in act(owner, channel, "undo").text
    assert is_to_be_deleted(channel)
    page = owner.get(reverse("admin:channel_deletion", args=[channel.pk])).text
    assert "Keep the channel" not in page
