"""The console's newsfeeds: the list, the form, and the buttons of a newsfeed's page."""

import json
import re

import pytest
from auditlog.models import LogEntry
from django.urls import reverse

from notifications_app.content.entries import EXAMPLE
from notifications_app.models import Newsfeed
from tests.admin.notifications.composing import shown_in
from tests.admin.notifications.stored import act, edit
from tests.factories import make_newsfeed, make_template

ERRORS = re.compile(r'class="ps-error" id="([^"]+)"[^>]*><p>')  # fields with an error
FORM = {
    "name": "Local news",
    "feed": "https://news.example.com/feed/",
    "every_minutes": "30",
    "daily_limit": "3",
    "title": "{{ entry.title }}",
    "body": "{{ entry.summary | truncate: 90 }}",
    "image": "{{ entry.image }}",
    "ttl_number": "3",
    "ttl_unit": "days",
    "urgency": "normal",
    "platforms": ["web"],
    "audience": "",
}


@pytest.fixture
def newsfeed(alice):
    return make_newsfeed(alice.channel)


def test_a_newsfeed_is_written_and_its_own_form_changes_nothing_but_what_was_edited(alice, sender):
    page = sender.post(reverse("admin:newsfeed_new", args=[alice.channel.pk]), FORM, follow=True)
    made = Newsfeed.objects.get()
    sent = made.send
    sender.post(edit(made), shown_in(sender.get(edit(made))) | {"daily_limit": "4"})

    assert page.redirect_chain[-1][0] == edit(made)
    assert {name: sent[name] for name in ("title", "body", "image")} == {
        name: FORM[name] for name in ("title", "body", "image")
    }
    made.refresh_from_db()
    assert (made.url, made.every_minutes, made.daily_limit) == (FORM["feed"], 30, 4)
    assert made.send == sent
    entries = LogEntry.objects.filter(object_pk=made.pk).order_by("pk")
    assert [each.actor for each in entries] == [alice.members["sender"]] * 2
    assert "news.example.com" not in str([each.changes for each in entries])


def test_a_new_newsfeed_begins_with_a_template_and_keeps_its_id(alice, sender):
    template = make_template(
        alice.channel, content={"title": "New: {{ entry.title }}", "body": "Read it."}
    )
    begun = f"{reverse('admin:newsfeed_new', args=[alice.channel.pk])}?template={template.pk}"

    page = sender.get(begun)
    sender.post(begun, shown_in(page) | {"name": "News", "feed": FORM["feed"]} | {"title": "Mine"})
    made = Newsfeed.objects.get()
    sender.post(edit(made), shown_in(sender.get(edit(made))) | {"title": "Ours"})

    assert page.context["form"].title == "New: {{ entry.title }}"
    made.refresh_from_db()
    assert {name: made.send[name] for name in ("title", "body", "template_id")} == {
        "title": "Ours",
        "body": "Read it.",
        "template_id": str(template.pk),
    }


def test_a_test_of_variants_is_kept(sender, newsfeed):
    variants = [{"name": "a", "title": "{{ entry.title }}"}, {"name": "b", "title": "News"}]
    test = {"share": 20, "minutes": 60, "metric": "clicked", "inconclusive": "b"}
    sent = newsfeed.send | {"variants": variants, "test": test}
    Newsfeed.objects.update(send_json=json.dumps(sent))

    sender.post(edit(newsfeed), shown_in(sender.get(edit(newsfeed))) | {"daily_limit": "4"})

    after = Newsfeed.objects.get()
    assert (after.daily_limit, after.send["test"]) == (4, test)
    assert [each["title"] for each in after.send["variants"]] == ["{{ entry.title }}", "News"]


@pytest.mark.parametrize(
    ("name", "value", "at"),
    [
        ("feed", "http://news.example.com/feed/", "error-feed"),
        ("feed", "", "error-feed"),
        ("every_minutes", "4", "error-every_minutes"),
        ("every_minutes", "often", "error-every_minutes"),
        ("daily_limit", "51", "error-daily_limit"),
        ("name", "", "error-newsfeed_name"),
        ("body", "{{ entry.colour }}", "error-body"),
    ],
)
def test_a_bad_input_has_its_error_at_its_field_and_keeps_the_shown_in(
    alice, sender, name, value, at
):
    posted = FORM | {name: value}

    page = sender.post(reverse("admin:newsfeed_new", args=[alice.channel.pk]), posted)

    assert page.status_code == 400
    assert ERRORS.findall(page.content.decode()) == [at]
    kept = shown_in(page)
    assert {each: kept[each] for each in ("name", "feed", "every_minutes", "daily_limit")} == {
        each: posted[each] for each in ("name", "feed", "every_minutes", "daily_limit")
    }
    assert not Newsfeed.objects.exists()


def test_a_resumed_newsfeed_begins_anew_and_only_as_the_page_showed_it(alice, sender, newsfeed):
    Newsfeed.objects.update(known=[1], found=[{"title": "x"}])
    act(sender, newsfeed, "off")
    off = Newsfeed.objects.get()

    refused = act(sender, newsfeed, "on", version="of another time")
    still = Newsfeed.objects.get()
    act(sender, newsfeed, "on")

    assert (off.is_enabled, off.known, off.found) == (False, [1], None)
    assert "was changed after you opened this page" in refused.content.decode()
    assert not still.is_enabled
    on = Newsfeed.objects.get()
    assert (on.is_enabled, on.known) == (True, None)
    assert on.lease_number > newsfeed.lease_number


def test_the_page_tells_what_failed_and_who_may_not_send_sees_no_address(
    alice, viewer, sender, newsfeed
):
    Newsfeed.objects.update(
        url="https://news.example.com/feed?password=s3cret",
        last_error="The document is empty. Check the address.",
        failures=2,
    )

    seen, full = (each.get(edit(newsfeed)).content.decode() for each in (viewer, sender))

    assert "The document is empty. Check the address." in seen
    assert "news.example.com" in seen
    assert "s3cret" not in seen
    assert "password=s3cret" in full
    assert viewer.post(edit(newsfeed), FORM).status_code == 403


def test_a_newsfeed_whose_text_is_no_template_any_more_can_be_repaired(alice, sender, newsfeed):
    """A later version may refuse what an earlier one has stored."""
    Newsfeed.objects.update(
        send_json=json.dumps(newsfeed.send | {"body": "{{ entry.colour }}"}),
        latest=EXAMPLE,
        is_enabled=False,
        disabled_code="not_a_template",
    )

    page = sender.get(edit(newsfeed))
    assert (page.status_code, "No entry was read" in page.content.decode()) == (200, False)
    refused = act(sender, newsfeed, "on")
    assert (refused.status_code, Newsfeed.objects.get().is_enabled) == (200, False)
    assert "entry.colour" in refused.content.decode()
    sender.post(
        edit(newsfeed), shown_in(sender.get(edit(newsfeed))) | {"body": "{{ entry.title }}"}
    )
    act(sender, newsfeed, "on")
    assert Newsfeed.objects.get().is_enabled


def test_a_deleted_newsfeed_leads_back_to_the_list(alice, sender, newsfeed):
    page = act(sender, newsfeed, "delete")

    assert page.redirect_chain[-1][0] == reverse("admin:channel_newsfeeds", args=[alice.channel.pk])
    assert not Newsfeed.objects.exists()
