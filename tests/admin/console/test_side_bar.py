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
    ("name", "takes_channel", "link"),
    [
        ("channel_devices", True, "Channels"),
        ("channel_keys", True, "Channels"),
        ("channel_identity", True, "Channels"),
        ("channel_tags", True, "Channels"),
        ("channel_categories", True, "Channels"),
        ("channel_templates", True, "Channels"),
        ("channels_app_channel_changelist", False, "Channels"),
        ("subscriptions_app_subscription_changelist", False, "Subscribers"),
        ("notifications_app_notification_changelist", False, "Notifications"),
        ("notifications_app_draft_changelist", False, "Notifications"),
        ("notification_compose", False, "Notifications"),
        ("subscriptions_app_segment_changelist", False, "Segments"),
        ("subscriptions_app_person_changelist", False, "People"),
        ("index", False, "Dashboard"),
    ],
)
def test_one_link_is_marked(alice, name, takes_channel, link):
    client = signed_in(alice.members["manager"])
    arguments = [alice.channel.pk] if takes_channel else []
    path = reverse(f"admin:{name}", args=arguments)
    assert marked(client, path) == [link]


@pytest.mark.parametrize(
    "name", ["channel_categories", "channel_templates", "channel_devices", "channel_keys"]
)
def test_every_tab_of_a_channel_leads_back_to_the_channels(alice, name):
    path = reverse(f"admin:{name}", args=[alice.channel.pk])
    page = signed_in(alice.members["manager"]).get(path).content.decode()
    assert f'<a href="{reverse("admin:channels_app_channel_changelist")}">Channels</a>' in page
