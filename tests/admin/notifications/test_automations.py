"""Automations in the console: the list, the form, the switch, and words."""

from dataclasses import asdict
from datetime import timedelta

import pytest
from auditlog.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from notifications_app.admin.automation_form import FollowForm
from notifications_app.models import Automation, AutomationDay
from notifications_app.sends.automations import MAX_AUTOMATIONS
from pushsvc.common.ids import uuid7
from tests.admin.notifications.composing import shown_in
from tests.admin.notifications.stored import act, edit
from tests.admin.support import signed_in
from tests.api.support import owner_of
from tests.api.test_automations import path
from tests.factories import (
    add_subscriptions,
    make_automation,
    make_category,
    make_notification,
    make_segment,
    make_template,
)
from tests.segments import attribute

FORM = {
    "name": "Cart",
    "event": "subscriptions.tagged",
    "event_tag": "cart",
    "about_name": "of another event",
    "hours": "24",
    "delay": "2",
    "delay_unit": "hours",
    "recipient": "person",
    "again": "30",
    "title": "Your cart",
    "body": "Something is left in it.",
    "url": "https://shop.example/",
    "ttl_number": "3",
    "ttl_unit": "days",
    "urgency": "normal",
    "platforms": ["web"],
    "audience": "",
}
TAGGED = {"event": "subscriptions.tagged", "tag": "cart"}


@pytest.fixture
def automation(alice):
    return make_automation(alice.channel)


def new(house):
    return reverse("admin:automation_new", args=[house.channel.pk])


def listing(house):
    return reverse("admin:channel_automations", args=[house.channel.pk])


def test_an_automation_is_written_and_the_api_shows_it(alice, sender):
    page = sender.post(new(alice), FORM, follow=True)

    made = Automation.objects.get()
    assert page.redirect_chain[-1][0] == edit(made)
    (shown,) = owner_of(alice.channel).call("GET", path(alice)).json()
    assert shown["notification"] == {
        "title": "Your cart",
        "body": "Something is left in it.",
        "url": "https://shop.example/",
        "target_platforms": ["web"],
    }
    assert (shown["name"], shown["trigger"], shown["delay_minutes"]) == ("Cart", TAGGED, 120)
    assert (shown["recipient"], shown["once_per_days"], shown["enabled"]) == ("person", 30, True)
    assert made.changed_by == alice.members["sender"].username
    entry = LogEntry.objects.filter(object_pk=made.pk).get()
    assert (entry.action, entry.actor) == (LogEntry.Action.CREATE, alice.members["sender"])


def test_a_new_automation_begins_with_a_template_and_keeps_its_id(alice, sender):
    template = make_template(alice.channel, content={"title": "Your cart", "body": "Still full."})
    begun = f"{new(alice)}?template={template.pk}"

    page = sender.get(begun)
    posted = shown_in(page) | {"name": "Cart", "title": "Your basket"}
    sender.post(begun, posted)
    made = Automation.objects.get()
    sender.post(edit(made), shown_in(sender.get(edit(made))) | {"title": "Your bag"})

    assert (
        f'<option value="{template.pk}" selected>{template.name}</option>' in page.content.decode()
    )
    made.refresh_from_db()
    assert {name: made.send[name] for name in ("title", "body", "template_id")} == {
        "title": "Your bag",
        "body": "Still full.",
        "template_id": str(template.pk),
    }


@pytest.mark.parametrize("chosen", ["another channel's", "unknown", "", "malformed"])
def test_a_template_that_the_channel_does_not_have_fills_in_nothing(alice, bob, sender, chosen):
    foreign = make_template(bob.channel, content={"body": "Of another."}).pk
    named = {"another channel's": foreign, "unknown": uuid7()}.get(chosen, chosen)
    begun = f"{new(alice)}?template={named}"

    page = sender.get(begun)
    sender.post(begun, FORM)

    assert page.context["form"].body == ""
    assert "template_id" not in Automation.objects.get().send


def test_the_list_shows_what_happens_when_and_how_many(alice, sender, automation):
    add_subscriptions(alice.channel, 3)
    sender.post(new(alice), FORM)
    now = timezone.now()
    for begins_at, fired in [(now, 1_200), (now - timedelta(days=1), 50)]:
        AutomationDay.objects.create(
            automation=automation, begins_at=begins_at, ends_at=now, fired=fired
        )

    page = sender.get(listing(alice))

    cart, welcome = page.context["listed"]
    assert (cart["waiting"], cart["fired"]) == (0, 0)
    assert (welcome["waiting"], welcome["fired"], welcome["state"]) == (3, 1_200, ("on", "good"))
    text = page.content.decode()
    assert "A device gets the tag “cart”, after 2 h" in text
    assert "A subscription becomes active, at once" in text


@pytest.mark.parametrize(
    ("about", "trigger", "words"),
    [
        ({"event": "subscriptions.created"}, {}, "A subscription becomes active"),
        (
            {"event": "notifications.clicked", "about_label": "offer", "action": "buy"},
            {"name": "of another event", "label": "offer", "action": "buy"},
            "Label: offer",
        ),
        (
            {"event": "notifications.unclicked", "about_name": "", "hours": "48"},
            {"hours": 48},
            "A notification is not clicked within 48 hours",
        ),
    ],
)
def test_an_event_keeps_only_its_own_fields(alice, sender, about, trigger, words):
    page = sender.post(new(alice), FORM | about, follow=True)
    made = Automation.objects.get()
    assert made.trigger == {"event": about["event"], **trigger}
    assert words in page.content.decode()


def test_a_saved_form_that_is_saved_again_changes_nothing(alice, sender):
    segment = make_segment(alice.channel, attribute("plan", "eq", "pro"))
    extra = {
        "segment_id": str(segment.pk),
        "category": make_category(alice.channel).key,
        "data_name": ["b", "a"],
        "data_value": ["1", "2"],
        "rate_per_minute": "5000",
        "send_name": "Left in the cart",
        "labels": "cart, autumn",
        "cap": "ignore",
    }
    sender.post(new(alice), FORM | extra)
    before = Automation.objects.get()

    sender.post(edit(before), shown_in(sender.get(edit(before))))

    after = Automation.objects.get()
    assert after.updated_at > before.updated_at
    assert before.send["rate_per_minute"] == 5_000
    assert before.send["labels"] == ["cart", "autumn"]
    assert after.send_json == before.send_json
    assert (after.segment_id, after.trigger) == (segment.pk, before.trigger)
    assert (after.delay_minutes, after.recipient, after.once_per_days) == (120, "person", 30)


@pytest.mark.parametrize(
    ("changed", "field", "shown"),
    [
        ({"name": " "}, "automation_name", "Must have 1 to 100 characters."),
        ({"event": "x"}, "event", "Choose what must happen."),
        ({"event_tag": ""}, "event_tag", "Enter a tag."),
        ({"event_tag": "not a tag"}, "event_tag", "Must"),
        ({"event": "notifications.unclicked", "hours": ""}, "hours", "Enter 1 to 168 hours."),
        ({"event": "notifications.unclicked", "hours": "x"}, "hours", "Enter 1 to 168 hours."),
        ({"event": "notifications.unclicked", "hours": "169"}, "hours", "Enter 1 to 168 hours."),
        ({"event": "notifications.clicked", "action": "ä"}, "event_action", "Must"),
        ({"delay": "-1"}, "delay", "Enter 0 minutes to 30 days."),
        ({"delay": "31", "delay_unit": "days"}, "delay", "Enter 0 minutes to 30 days."),
        ({"delay_unit": "weeks"}, "delay", "Enter 0 minutes to 30 days."),
        ({"recipient": "all"}, "recipient", "Choose who gets it."),
        ({"again": "366"}, "again", "Enter 1 to 365 days, or nothing."),
        ({"body": ""}, "body", "Write a text."),
    ],
)
def test_an_error_is_shown_at_its_field_and_the_form_keeps_what_was_written(
    alice, sender, changed, field, shown
):
    response = sender.post(new(alice), FORM | changed)
    assert response.status_code == 400
    page = response.content.decode()
    assert shown in page.partition(f'data-error="{field}"')[2].partition("</div>")[0]
    assert "Nothing was saved." in page
    assert 'value="Your cart"' in page
    written = {
        name: (FORM | changed)[name].strip() for name in asdict(FollowForm()) if name in FORM
    }
    assert asdict(response.context["follow"]).items() >= written.items()
    assert not Automation.objects.exists()


def test_every_error_is_shown_at_once(alice, sender):
    wrong = {"event_tag": "", "delay": "x", "again": "0", "body": ""}
    page = sender.post(new(alice), FORM | wrong).content.decode()
    for shown in ("Enter a tag.", "Enter 0 minutes", "Enter 1 to 365 days", "Write a text."):
        assert shown in page


def test_what_was_changed_meanwhile_is_not_overwritten_unseen(sender, automation):
    form = shown_in(sender.get(edit(automation)))
    assert sender.post(edit(automation), form | {"name": "First"}).status_code == 302
    refused = sender.post(edit(automation), form | {"name": "Second"})
    assert "after you opened this page." in refused.content.decode()
    again = form | {"name": "Second", "version": refused.context["version"]}
    assert sender.post(edit(automation), again).status_code == 302
    assert Automation.objects.get().name == "Second"


def test_an_automation_is_turned_off_and_on_and_an_edit_leaves_it_off(sender, automation):
    seen = automation.version
    page = act(sender, automation, "off")
    assert page.context["state"] == ("off", "")
    sender.post(edit(automation), shown_in(page))
    automation.refresh_from_db()
    assert not automation.is_enabled

    page = act(sender, automation, "on", version=seen)
    assert "The automation is still off, because it was changed" in page.content.decode()
    assert act(sender, automation, "on").context["state"] == ("on", "good")
    assert act(sender, automation, "off", version=seen).context["state"] == ("off", "")


def test_a_refused_automation_says_why_and_saving_it_enables_it(alice, sender, automation):
    Automation.objects.update(is_enabled=False, disabled_code="category_unknown")
    assert "disabled: category_unknown" in sender.get(listing(alice)).content.decode()
    page = sender.get(edit(automation))
    assert 'href="/docs/errors#category_unknown"' in page.content.decode()
    sender.post(edit(automation), shown_in(page))
    automation.refresh_from_db()
    assert (automation.is_enabled, automation.disabled_code) == (True, "")


def test_a_day_leads_to_its_notification_and_back(alice, sender, automation):
    sent = make_notification(alice.channel, has_targets=True)
    other = make_notification(alice.channel, has_targets=True)
    AutomationDay.objects.create(
        automation=automation,
        begins_at=timezone.now(),
        ends_at=timezone.now(),
        notification_id=sent.pk,
        fired=1,
        repeated=1_000,
    )

    page = sender.get(edit(automation)).content.decode()

    address = reverse("admin:notifications_app_notification_change", args=[sent.pk])
    assert address in page
    assert "1 recipient " in page
    assert "1,000 contacted already" in page
    assert edit(automation) in sender.get(address).content.decode()
    address = reverse("admin:notifications_app_notification_change", args=[other.pk])
    assert edit(automation) not in sender.get(address).content.decode()


def test_a_deleted_automation_is_gone(alice, sender, automation):
    page = act(sender, automation, "delete")
    assert page.redirect_chain[-1][0] == listing(alice)
    assert "The automation “Welcome” was deleted." in page.content.decode()
    assert not Automation.objects.exists()


def test_a_channel_that_has_all_its_automations_offers_no_more(alice, sender):
    for number in range(MAX_AUTOMATIONS):
        make_automation(alice.channel, f"Number {number}")
    page = sender.get(listing(alice)).content.decode()
    assert new(alice) not in page
    assert "Delete one first." in page
    refused = sender.post(new(alice), FORM)
    assert refused.status_code == 400
    assert "The channel has 20 automations." in refused.content.decode()


def test_a_list_of_many_takes_as_few_statements_as_one(
    alice, sender, automation, django_assert_num_queries
):
    with CaptureQueriesContext(connection) as of_one:
        sender.get(listing(alice))
    for number in range(4):
        make_automation(alice.channel, f"Another {number}")

    with django_assert_num_queries(len(of_one)):
        page = sender.get(listing(alice))

    assert len(page.context["listed"]) == 5


@pytest.mark.parametrize("role", ["viewer", "writer", "sender", "editor"])
def test_only_senders_write_automations(alice, automation, role):
    client = signed_in(alice.members[role])
    may_write = role in {"sender", "editor"}
    listed = client.get(listing(alice))
    assert listed.status_code == 200
    assert (new(alice) in listed.content.decode()) == may_write
    page = client.get(edit(automation))
    assert page.status_code == 200
    assert (">Save<" in page.content.decode()) == may_write
    assert client.get(new(alice)).status_code == (200 if may_write else 403)
    assert client.post(new(alice), FORM).status_code == (302 if may_write else 403)
    assert client.post(edit(automation), shown_in(page)).status_code == (302 if may_write else 403)
    assert act(client, automation, "off").status_code == (200 if may_write else 403)
    automation.refresh_from_db()
    assert automation.is_enabled != may_write


def test_another_account_finds_nothing(alice, bob, automation):
    client = signed_in(bob.members["owner"])
    for address in (listing(alice), new(alice), edit(automation)):
        assert client.get(address).status_code == 404
    assert client.post(new(alice), FORM).status_code == 404
    assert client.post(edit(automation), FORM).status_code == 404
    assert act(client, automation, "delete").status_code == 404
    assert Automation.objects.get().is_enabled
