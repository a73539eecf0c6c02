"""The dashboard: its scope, its first steps and its cost."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from channels_app.counters import counter_add
from channels_app.models import Channel, ProviderCredential
from pushsvc.common.store.redis_client import redis_client
from tests.admin.notifications.dashboards import everything_lives, html, page, running
from tests.admin.support import fill_hours, signed_in
from tests.factories import add_crowd, make_channel, make_sent_notification

# --- What it offers -------------------------------------------------------------------------------


def test_a_sender_is_offered_a_new_notification_first(alice):
    page_ = html(alice.members["sender"], channel=alice.channel.pk)
    main = page_[page_.index("dashboard-selection") - 500 :]

    link = f'href="{reverse("admin:notification_compose")}?channel={alice.channel.pk}"'
    assert 0 < main.index(link) < main.index("dashboard-selection")
    assert "New notification" not in html(alice.members["viewer"])


# --- Scope ----------------------------------------------------------------------------------------


def test_a_member_sees_the_figures_of_their_account_and_a_superuser_all(alice, bob, root):
    counter_add(alice.channel.id, web_subscribers=111)
    counter_add(bob.channel.id, web_subscribers=222)

    assert page(alice.members["viewer"]).context["statistics"].totals.subscribers == 111
    assert page(bob.members["viewer"]).context["statistics"].totals.subscribers == 222
    assert page(root).context["statistics"].totals.subscribers == 333


def test_a_user_without_an_account_sees_a_dashboard_without_figures(alice):
    loner = alice.members["owner"]
    loner.memberships.all().delete()
    counter_add(alice.channel.id, web_subscribers=111)

    answer = page(loner)

    assert answer.context["statistics"].totals.subscribers == 0
    assert answer.context["offered_channels"] == []
    assert "Ask an account owner" in answer.content.decode()


@pytest.mark.parametrize("part", ["dashboard_live", "dashboard_attention"])
def test_an_anonymous_visitor_is_redirected_to_sign_in(client, db, part):
    answer = client.get(reverse(f"admin:{part}"))

    assert answer.status_code == 302
    assert "login" in answer["Location"]


def test_titles_and_names_are_escaped(alice):
    Channel.objects.filter(pk=alice.channel.pk).update(name="<script>alert(1)</script>")
    running(alice.channel, title="<img src=x onerror=alert(2)>")

    text = html(alice.members["viewer"])

    assert "<script>alert" not in text
    assert "<img src=x" not in text


# --- First steps ----------------------------------------------------------------------------------


def steps(user, **query):
    return [step["is_done"] for step in page(user, **query).context["steps"]]


def test_first_steps_lead_from_channel_to_snippet_to_test_message(root, db):
    assert steps(root) == [False, False, False]
    assert reverse("admin:channels_app_channel_add") in html(root)

    channel = make_channel("First")
    assert steps(root) == [True, False, False]
    assert reverse("admin:channel_snippet", args=[channel.pk]) in html(root)

    counter_add(channel.id, web_subscribers=1)
    assert steps(root) == [True, True, False]
    assert f"{reverse('admin:notification_compose')}?channel={channel.pk}" in html(root)

    counter_add(channel.id, notifications_sent=1)
    assert steps(root) == []


def test_a_viewer_is_not_offered_the_steps_of_a_sender(alice):
    counter_add(alice.channel.id, web_subscribers=1)
    compose = reverse("admin:notification_compose") + "?channel="

    assert compose in html(alice.members["sender"])
    assert compose not in html(alice.members["viewer"])


# --- Cost -----------------------------------------------------------------------------------------


def many(house):
    """More channels, notifications in every state, and hours than fit on the page."""
    everything_lives()
    channels = [house.channel] + [
        make_channel(f"Channel {number}", account=house.account) for number in range(15)
    ]
    Channel.objects.update(android_enabled=True, ios_enabled=True)
    for channel in channels:
        add_crowd(channel, 20)
        fill_hours(channel, days=4)
        running(channel, batches=[{"due_at": timezone.now() - timedelta(minutes=3)}] * 5)
        make_sent_notification(channel, status="pending", scheduled_at=timezone.now())
        ProviderCredential.objects.create(
            channel=channel, platform="ios", secret_encrypted="x", paused_at=timezone.now()
        )


@pytest.mark.parametrize("part", ["index", "dashboard_live", "dashboard_attention"])
@pytest.mark.parametrize("who", ["root", "owner"])
@pytest.mark.parametrize("lives", [True, False])
def test_the_number_of_queries_grows_neither_with_the_data_nor_without_workers(
    alice, root, django_assert_max_num_queries, part, who, lives
):
    many(alice)
    if not lives:
        redis_client().flushdb()
    client = signed_in(root if who == "root" else alice.members["owner"])

    for query in ({}, {"channel": str(alice.channel.pk)}):
        with django_assert_max_num_queries(25):
            answer = client.get(reverse(f"admin:{part}"), {"days": 90} | query)

        assert answer.status_code == 200
