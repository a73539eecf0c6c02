"""Lists of the console show how many rows there are, and what to do if there are none."""

from html.parser import HTMLParser

import pytest
from django.urls import reverse

from channels_app.models import Membership
from pushsvc.common.console.admin import BoundedPaginator
from tests.admin.support import signed_in
from tests.api.support import NOWHERE
from tests.factories import add_crowd, make_channel, make_sent_notification

CHANNELS = reverse("admin:channels_app_channel_changelist")
SUBSCRIBERS = reverse("admin:subscriptions_app_subscription_changelist")
NOTIFICATIONS = reverse("admin:notifications_app_notification_changelist")
LOG = reverse("admin:auditlog_logentry_changelist")
SEGMENTS = reverse("admin:subscriptions_app_segment_changelist")


def text_of(user, address, **query):
    response = signed_in(user).get(address, query, follow=True)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize(
    ("count", "shown"), [(2, "Subscribers: 2<"), (3, "Subscribers: 3 or more<"), (9, "3 or more<")]
)
def test_a_count_that_stopped_at_its_bound_is_marked(alice, monkeypatch, count, shown):
    monkeypatch.setattr(BoundedPaginator, "most_rows", 3)
    add_crowd(alice.channel, count)

    assert shown in text_of(alice.members["viewer"], SUBSCRIBERS)


def test_an_address_with_two_states_reads_no_more_of_the_ended_notifications(alice, monkeypatch):
    monkeypatch.setattr("notifications_app.admin.notifications.LOOKED_AT", 2)
    for _ in range(4):
        make_sent_notification(alice.channel)
    query = {"status__exact": ["sent", "pending"]}

    page = signed_in(alice.members["viewer"]).get(NOTIFICATIONS, query)

    assert len(page.context["cl"].result_list) == 2


def test_a_list_of_one_channel_begins_with_the_largest(alice):
    """It began with the first one, which may be empty."""
    largest = make_channel("The largest", account=alice.account)
    add_crowd(alice.channel, 1)
    add_crowd(largest, 3)

    assert "The largest</a>." in text_of(alice.members["viewer"], SUBSCRIBERS)
    assert "Subscribers: 3<" in text_of(alice.members["viewer"], SUBSCRIBERS)


@pytest.mark.parametrize(
    ("address", "title"),
    [(NOTIFICATIONS, "Notifications"), (LOG, "Audit log entries"), (CHANNELS, "Channels")],
)
def test_the_title_of_a_list_is_its_name(alice, address, title):
    """It was "Select notification to view"."""
    page = text_of(alice.members["viewer"], address)

    assert page.partition("<title>")[2].partition("</title>")[0].strip() == f"{title} | pushsvc"


def test_stock_pages_of_the_admin_lead_to_the_consoles_own(alice, root):
    client = signed_in(root)
    for label in ("auth", "channels_app", "auditlog"):
        answer = client.get(reverse("admin:app_list", args=[label]))
        assert answer["Location"] == reverse("admin:index")
    owner = alice.members["owner"]
    history = client.get(reverse("admin:auth_user_history", args=[owner.pk]))
    assert history["Location"] == f"{LOG}?q={owner.pk}"


def test_a_list_of_subscribers_names_their_channel(alice):
    other = make_channel("The other", account=alice.account)

    assert "Alice&#x27;s channel</a>." in text_of(alice.members["viewer"], SUBSCRIBERS)
    of_other = text_of(alice.members["viewer"], SUBSCRIBERS, channel__id__exact=other.pk)
    assert "The other</a>." in of_other


def test_an_empty_list_explains_how_rows_are_added(alice):
    viewer, manager = alice.members["viewer"], alice.members["manager"]

    assert "Add the channel to a site" in text_of(viewer, SUBSCRIBERS)
    assert "No notifications here" in text_of(viewer, NOTIFICATIONS)
    assert "New segment" in text_of(manager, SEGMENTS)
    assert "New segment" not in text_of(viewer, SEGMENTS)


@pytest.mark.parametrize(
    ("address", "narrowed", "keeps_channel"),
    [(NOTIFICATIONS, {"show": "tests"}, False), (SUBSCRIBERS, {"state": "expired"}, True)],
)
def test_a_list_emptied_by_its_filters_offers_to_remove_them(
    alice, address, narrowed, keeps_channel
):
    viewer = alice.members["viewer"]
    own = {"channel__id__exact": alice.channel.pk} if keeps_channel else {}

    text = text_of(viewer, address, **own, **narrowed)

    assert "No rows match the filters" in text
    kept = f"channel__id__exact={alice.channel.pk}" if keeps_channel else ""
    assert f'href="?{kept}">Show all' in text
    assert "No rows match the filters" not in text_of(viewer, address, **own)


class Filters(HTMLParser):
    """`fields`: what the form of filters would send, by name."""

    def __init__(self, text):
        super().__init__()
        self.fields, self._form, self._select = {}, None, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "form":
            self._form = given.get("id")
        elif self._form == "filter-form" and tag == "input" and "value" in given:
            self.fields[given["name"]] = given["value"]
        elif self._form == "filter-form" and tag == "select":
            self._select = given["name"]
        elif self._select and tag == "option" and "selected" in given:
            self.fields[self._select] = given["value"]

    def handle_endtag(self, tag):
        self._form = None if tag == "form" else self._form
        self._select = None if tag == "select" else self._select


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        (
            NOTIFICATIONS,
            {
                "within": "7",
                "show": "bounces",
                "outcome": "bounced",
                "platform": "ios",
                "status__exact": "sent",
            },
        ),
        (SUBSCRIBERS, {"platform__exact": "ios", "state": "expired", "within": "30"}),
        (NOTIFICATIONS, {"channel__id__exact": NOWHERE, "show": "tests"}),  # not an offered choice
    ],
)
def test_applying_a_filter_keeps_the_others(alice, address, asked):
    asked = {"channel__id__exact": str(alice.channel.pk)} | asked

    fields = Filters(text_of(alice.members["viewer"], address, **asked)).fields

    assert {name: value for name, value in fields.items() if value} == asked


def test_a_list_sorted_by_two_columns_shows_their_priority(alice):
    owner = alice.members["owner"]

    by_account_and_name = text_of(owner, CHANNELS, o="1.0")

    assert [n for n in (1, 2, 3) if f"Sorting priority: {n}" in by_account_and_name] == [1, 2]
    assert "Sorting priority" not in text_of(owner, CHANNELS, o="1")


@pytest.mark.parametrize(
    ("address", "role", "may", "action"),
    [
        (SEGMENTS, "sender", "editor", "make the first segment"),
        (NOTIFICATIONS, "viewer", "writer", "write the first notification"),
    ],
)
def test_an_empty_list_names_the_role_that_can_add_rows(alice, address, role, may, action):
    text = f"A user with the role “{may}” can {action}."

    assert text in text_of(alice.members[role], address)
    assert "A user with the role" not in text_of(alice.members[may], address)


def test_the_first_steps_name_the_role_that_each_needs(alice):
    alice.channel.delete()

    text = "You need the role “manager” for this"
    assert text in text_of(alice.members["viewer"], reverse("admin:index"))
    assert "You need the role" not in text_of(alice.members["manager"], reverse("admin:index"))


def test_a_user_without_an_account_sees_an_explanation_and_no_links(alice):
    loner = alice.members["viewer"]
    Membership.objects.filter(user=loner).delete()

    text = text_of(loner, reverse("admin:index"))

    assert "You are not a member of any account yet" in text
    assert "No problems" not in text
    assert not {address for address in (SUBSCRIBERS, NOTIFICATIONS, SEGMENTS) if address in text}
    assert NOTIFICATIONS in text_of(alice.members["sender"], reverse("admin:index"))
