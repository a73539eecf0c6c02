"""Composing: which roles may, and for which channels."""

import pytest
from django.urls import reverse

from notifications_app.models import Notification
from tests.admin.notifications.composing import CHECK, COMPOSE, TEST, duplicate, written
from tests.admin.support import signed_in
from tests.factories import make_sent_notification


@pytest.mark.parametrize("step", ["edit", "review", "send"])
def test_a_viewer_cannot_compose_in_any_way(alice, step):
    client = signed_in(alice.members["viewer"])
    form = written(alice) | {"step": step, "key": "k"}
    assert client.get(COMPOSE).status_code == 403
    assert client.post(COMPOSE, form).status_code == 403
    assert client.post(CHECK, form).status_code == 403
    assert client.post(TEST, form).status_code == 403
    assert not Notification.objects.exists()


def test_a_viewer_who_is_a_sender_in_another_account_may_not_send_in_this_one(alice, bob):
    both = alice.members["sender"]
    bob.account.memberships.create(user=both, role="viewer")
    client = signed_in(both)
    assert client.post(COMPOSE, written(bob) | {"step": "review"}).status_code == 403
    theirs = make_sent_notification(bob.channel)
    assert duplicate(client, theirs).status_code == 403
    assert client.get(COMPOSE).context["channel"] == alice.channel


def test_a_get_request_sends_nothing(sender, alice):
    form = written(alice) | {"step": "send", "key": "k"}
    sender.get(COMPOSE, form)
    assert sender.get(TEST, form).status_code == 405
    assert sender.get(CHECK, form).status_code == 405
    assert not Notification.objects.exists()


def test_the_admins_address_for_a_new_notification_leads_to_the_compose_form(alice):
    add = reverse("admin:notifications_app_notification_add")

    for role in ("sender", "manager", "owner"):
        answer = signed_in(alice.members[role]).get(add)
        assert (answer.status_code, answer.url) == (302, COMPOSE)
    assert signed_in(alice.members["viewer"]).get(add).status_code == 403
