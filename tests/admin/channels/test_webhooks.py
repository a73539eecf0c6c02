"""A channel's webhooks in the console."""

import pytest
from django.urls import reverse

from channels_app.models import Webhook, WebhookAttempt
from channels_app.webhooks import webhook_create, webhook_test
from tests.admin.support import signed_in, submit

URL = "https://backend.shop.com/push?secret=of-the-owner"
GIVEN = {"url": URL, "events": ["notifications.finished"], "description": "Orders"}


@pytest.fixture
def manager(alice):
    return signed_in(alice.members["manager"])


@pytest.fixture
def webhook(alice):
    return webhook_create(channel=alice.channel, **GIVEN)[0]


def page_of(house):
    return reverse("admin:channel_webhooks", args=[house.channel.pk])


def own_page(house, webhook):
    return reverse("admin:channel_webhook", args=[house.channel.pk, webhook.pk])


def text(client, path):
    return client.get(path).content.decode()


def test_a_webhook_is_made_and_its_secret_shown_once(alice, manager):
    response = manager.post(page_of(alice), GIVEN)

    secret = response.context["secret"]
    assert secret in response.content.decode()
    assert "no-store" in response.headers["Cache-Control"]
    assert secret not in text(manager, page_of(alice))
    assert Webhook.objects.get().url == URL


def test_an_address_inside_is_refused_beside_its_field(alice, manager):
    response = manager.post(page_of(alice), GIVEN | {"url": "https://127.0.0.1/"})

    assert response.status_code == 400
    assert "must be a name" in response.content.decode()
    assert not Webhook.objects.exists()


def test_who_may_not_change_it_sees_neither_its_whole_address_nor_its_messages(alice, webhook):
    viewer = signed_in(alice.members["viewer"])

    shown = text(viewer, page_of(alice))

    assert "https://backend.shop.com" in shown
    assert "of-the-owner" not in shown
    assert viewer.get(own_page(alice, webhook)).status_code == 403
    assert viewer.post(page_of(alice), GIVEN).status_code == 403


def test_its_page_shows_messages_with_body_and_answer(alice, manager, webhook):
    webhook_test(channel_id=alice.channel.pk, webhook_id=webhook.pk)
    WebhookAttempt.objects.update(state="failed", attempts=10, answer="500: <b>broken</b>")

    shown = text(manager, own_page(alice, webhook))

    assert "webhook.test" in shown
    assert f"&quot;webhook_id&quot;:&quot;{webhook.pk}&quot;" in shown
    assert "500: &lt;b&gt;broken" in shown


def test_a_test_a_replay_and_a_rotation(alice, manager, webhook):
    page = own_page(alice, webhook)

    manager.post(page, {"do": "test"})
    WebhookAttempt.objects.update(state="failed")
    replayed = manager.post(page, {"do": "replay", "days": "1"}, follow=True)
    rotated = manager.post(page, {"do": "rotate"})

    assert "sent again: 1" in replayed.content.decode()
    assert WebhookAttempt.objects.get().state == "waiting"
    assert rotated.context["secret"] in rotated.content.decode()
    assert Webhook.objects.get().old_secret_encrypted == webhook.secret_encrypted


def test_it_is_changed_disabled_and_deleted(alice, manager, webhook):
    page = own_page(alice, webhook)

    submit(manager, page, GIVEN | {"do": "save", "events": ["notifications.clicked"]})
    changed = Webhook.objects.get()
    assert (changed.events, changed.is_enabled) == (["notifications.clicked"], False)
    refused = manager.post(page, {"do": "test"}, follow=True)
    assert "disabled" in refused.content.decode()
    submit(manager, page, GIVEN | {"do": "save", "enabled": "on"})
    assert Webhook.objects.get().is_enabled
    wrong = submit(manager, page, GIVEN | {"do": "save", "url": "http://x.com/"})
    assert wrong.status_code == 400
    manager.post(page, {"do": "delete"})
    assert not Webhook.objects.exists()


def test_the_webhook_of_another_account_is_not_found(alice, bob, webhook):
    page = own_page(alice, webhook)
    other = signed_in(bob.members["owner"])
    in_own = reverse("admin:channel_webhook", args=[bob.channel.pk, webhook.pk])

    for address in (page, in_own):
        assert other.get(address).status_code == 404
        assert other.post(address, {"do": "delete"}).status_code == 404
    assert Webhook.objects.exists()
