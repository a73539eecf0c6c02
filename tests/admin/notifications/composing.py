"""The compose form, as a browser posts it."""

import re
from collections import defaultdict
from html.parser import HTMLParser

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


class _Form(HTMLParser):
    """The names and values that a browser posts of the form with the id `compose`."""

    def __init__(self, html):
        super().__init__()
        self.found = defaultdict(list)
        self._is_inside = False
        self._open = None  # the name, and parts of the value, of a text area or a select
        self._parts = []
        self._is_chosen = False  # an option whose text is its value
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._is_inside = given.get("id") == "compose"
        if not self._is_inside:
            return
        if tag in {"textarea", "select"}:
            self._open, self._parts = given.get("name"), []
        elif tag == "option":
            self._is_chosen = "selected" in given or not self._parts
            if self._is_chosen:
                self._parts = [given["value"]] if "value" in given else []
            self._is_chosen = self._is_chosen and "value" not in given
        elif tag == "input" and given.get("name") and self._is_posted(given):
            self.found[given["name"]].append(given.get("value", ""))

    def handle_data(self, data):
        if self._open and (self.lasttag == "textarea" or self._is_chosen):
            self._parts.append(data)

    def handle_endtag(self, tag):
        if tag == "form":
            self._is_inside = False
        elif tag == "option":
            self._is_chosen = False
        elif tag in {"textarea", "select"} and self._open:
            self.found[self._open].append("".join(self._parts).removeprefix("\n"))
            self._open = None

    @staticmethod
    def _is_posted(given):
        if given.get("type") in {"checkbox", "radio"}:
            return "checked" in given
        return given.get("type") not in {"file", "submit", "button"}


def shown_in(answer):
    """The form of the page, as a browser would post it unchanged."""
    many = {"platforms", "data_name", "data_value"}
    found = _Form(answer.content.decode()).found
    return {name: values if name in many else values[0] for name, values in found.items()}


def duplicate(client, notification):
    """The page of the draft that is a copy of it."""
    path = reverse("admin:notification_duplicate", args=[notification.pk])
    return client.post(path, follow=True)
