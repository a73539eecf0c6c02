"""A channel's categories in the console, and the category of a notification that staff write."""

import pytest
from django.urls import reverse

from notifications_app.models import Notification
from subscriptions_app.models import Category
from subscriptions_app.people.linking import devices_link
from subscriptions_app.people.services import PersonChange, person_change
from tests.admin.support import signed_in, submit
from tests.factories import add_each, make_category


@pytest.fixture
def offers(alice):
    return make_category(alice.channel, "offers", default=False)


def page_of(house):
    return reverse("admin:channel_categories", args=[house.channel.pk])


def post(house, role, **fields):
    return signed_in(house.members[role]).post(page_of(house), fields)


def test_every_member_sees_the_categories_with_what_subscribers_chose(alice, bob, offers):
    chosen = [{"choices": choices} for choices in ({"offers": True}, {"offers": False}, {}, {})]
    *_, linked = add_each(alice.channel, chosen)
    devices_link(channel=alice.channel, links={linked.id: "user-42"})
    change = PersonChange(choices={"offers": True})
    person_change(channel=alice.channel, external_id="user-42", change=change)
    add_each(bob.channel, [{"choices": {"offers": True}}] * 3)

    page = signed_in(alice.members["viewer"]).get(page_of(alice))

    ((seen, _),) = page.context["categories"]
    assert (seen.category, seen.wanted, seen.refused) == (offers, 2, 1)
    assert page.context["looked_at"] == 4
    assert 'name="do"' not in page.content.decode()


def test_an_editor_creates_and_changes_a_category(alice):
    add = {"do": "add", "key": "news", "name": "News", "default": "on"}
    assert post(alice, "editor", **add).status_code == 302
    category = Category.objects.get()
    assert (category.key, category.name, category.chosen_by_default) == ("news", "News", True)

    change = {"do": "change", "key": "news", "name": "All news", "description": "Daily"}
    client = signed_in(alice.members["editor"])
    assert submit(client, page_of(alice), change).status_code == 302
    category.refresh_from_db()
    assert (category.name, category.description) == ("All news", "Daily")
    assert category.chosen_by_default is False


@pytest.mark.parametrize(
    "fields", [{"key": "No Key"}, {"key": "news\n"}, {"name": ""}, {"key": "offers"}]
)
def test_an_error_is_shown_beside_the_input_and_nothing_is_stored(alice, offers, fields):
    form = {"do": "add", "key": "news", "name": "News", "description": "At noon"} | fields

    page = post(alice, "editor", **form)

    assert page.status_code == 400
    assert sum(map(len, page.context["adding"].errors.values())) == 1
    assert 'value="At noon"' in page.content.decode()
    assert Category.objects.get() == offers


def test_roles_may_do_what_they_may_do_elsewhere(alice, offers):
    change = {"do": "change", "key": "offers", "name": "Mine"}
    assert post(alice, "sender", **change).status_code == 403
    archive = {"do": "archive", "key": "offers"}
    assert post(alice, "editor", **archive).status_code == 403
    assert post(alice, "manager", **archive).status_code == 302
    offers.refresh_from_db()
    assert offers.archived_at is not None


def test_staff_choose_the_category_of_a_notification(alice, offers):
    client = signed_in(alice.members["sender"])
    compose = reverse("admin:notification_compose")
    url = f"{compose}?channel={alice.channel.pk}"
    assert '<option value="offers">' in client.get(url).content.decode()
    form = {"channel": str(alice.channel.pk), "body": "Bread", "platforms": "web"}
    form |= {"category": "offers", "ttl_number": "1", "ttl_unit": "days", "when": "now"}

    review = client.post(compose, form | {"step": "review"})
    assert "who want the category" in review.content.decode()
    sent = client.post(compose, form | {"step": "send", "key": "compose-1"})

    assert sent.status_code == 302, sent.content
    assert Notification.objects.get().category == "offers"
    page = client.get(sent.headers["Location"]).content.decode()
    assert "offers" in page
