"""The side bar marks one link as current, also on pages whose address is another model's."""

import re

import pytest
from django.urls import reverse

from tests.admin.support import signed_in


def marked(client, path):
    page = client.get(path, follow=True).content.decode()
    links = re.findall(r'<a href="[^"]*" class="([^"]*)">(.*?)</a>', page, re.DOTALL)
    current = [text for classes, text in links if "active" in classes.split()]
    return [re.findall(r"<span>(.+?)</span>", text)[0] for text in current]


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("channels_app_channel_changelist", "Channels"),
        ("subscriptions_app_subscription_changelist", "Subscribers"),
        ("notifications_app_notification_changelist", "Notifications"),
        ("notifications_app_draft_changelist", "Notifications"),
        ("notification_compose", "Notifications"),
        ("subscriptions_app_segment_changelist", "Segments"),
        ("subscriptions_app_person_changelist", "People"),
        ("index", "Dashboard"),
    ],
)
def test_one_link_is_marked(alice, name, link):
    client = signed_in(alice.members["manager"])
    assert marked(client, reverse(f"admin:{name}")) == [link]


def test_every_tab_of_a_channel_marks_the_channels_and_leads_back_to_them(alice):
    client = signed_in(alice.members["manager"])
    overview = reverse("admin:channels_app_channel_change", args=[alice.channel.pk])
    back = f'<a href="{reverse("admin:channels_app_channel_changelist")}">Channels</a>'
    tabs = client.get(overview).context["tabs"]
    assert len(tabs) > 10
    for tab in tabs:
        assert marked(client, tab["url"]) == ["Channels"], tab["title"]
        assert back in client.get(tab["url"]).content.decode(), tab["title"]
