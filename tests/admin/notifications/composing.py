"""The compose form, as a browser posts it."""

import re
from collections import defaultdict

from django.urls import reverse

COMPOSE = reverse("admin:notification_compose")
CHECK = reverse("admin:notification_compose_check")
TEST = reverse("admin:notification_compose_test")
IMAGE = reverse("admin:notification_image_check")
SAVE = reverse("admin:draft_save")
DELETE = reverse("admin:draft_delete")
DRAFTS = reverse("admin:notifications_app_draft_changelist")


def written(house, **fields):
    """The form as a browser posts it."""
    return {
        "channel": str(house.channel.pk),
        "title": "Spring sale",
        "body": "Twenty per cent off.",
        "url": "https://shop.example/sale",
        "icon": "",
        "image": "",
        "topic": "",
        "urgency": "normal",
        "ttl_number": "3",
        "ttl_unit": "days",
        "segment_id": "",
        "when": "now",
        "local_time": "",
        "expires_local": "",
        "time_zone": "Europe/Berlin",
        "platforms": ["web"],
        "data_name": [],
        "data_value": [],
    } | fields


def review(client, form):
    return client.post(COMPOSE, form | {"step": "review"})


def key_of(page):
    return re.search(r'name="key" value="([^"]+)"', page.content.decode()).group(1)


def confirm(client, form, key):
    return client.post(COMPOSE, form | {"step": "send", "key": key})


def send(client, form):
    """Reviews and confirms the form."""
    page = review(client, form)
    return confirm(client, form | {"seen": page.context["seen"]}, key_of(page))


def errors(client, form):
    return client.post(CHECK, form).json()["errors"]


def shown_in(answer):
    """The form of the page, as a browser would post it unchanged."""
    fields = defaultdict(list)
    for name, value in answer.context["form"].inputs():
        fields[name].append(value)
    many = {"platforms", "data_name", "data_value"}
    return {name: found if name in many else found[0] for name, found in fields.items()}


def duplicate(client, notification):
    """The page of the draft that is a copy of it."""
    path = reverse("admin:notification_duplicate", args=[notification.pk])
    return client.post(path, follow=True)
