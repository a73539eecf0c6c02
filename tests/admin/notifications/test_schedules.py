"""Schedules in the console: the list, the form, occurrences, and words."""

from datetime import date, time, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone, translation

from notifications_app.admin.recurrence_words import recurrence_words
from notifications_app.models import Notification, Occurrence, Schedule
from notifications_app.recurrence import Recurrence
from notifications_app.sends.firing import fire_next
from tests.admin.notifications.composing import shown_in
from tests.admin.notifications.stored import act, edit
from tests.admin.support import signed_in
from tests.factories import make_category, make_schedule, make_segment, make_template
from tests.segments import attribute

REPEAT = {
    "repeat_rule": "FREQ=MONTHLY;BYDAY=-1FR",
    "repeat_at": "18:30, 09:00",
    "repeat_zone": "Europe/Berlin",
    "repeat_from": "2026-01-01",
    "repeat_until": "",
    "repeat_count": "",
}
FORM = {
    "name": "Monthly",
    "title": "The month",
    "body": "What you missed.",
    "url": "https://shop.example/",
    "ttl_number": "3",
    "ttl_unit": "days",
    "urgency": "normal",
    "platforms": ["web"],
    "audience": "",
    **REPEAT,
}


@pytest.fixture
def schedule(alice):
    return make_schedule(alice.channel, "Digest")


def new(house):
    return reverse("admin:schedule_new", args=[house.channel.pk])


def listing(house):
    return reverse("admin:channel_schedules", args=[house.channel.pk])


def test_a_schedule_is_written_and_listed_with_its_next_three_occurrences(alice, sender):
    make_segment(alice.channel, attribute("plan", "eq", "pro"))
    assert sender.get(new(alice)).context["repeat"].repeat_zone == alice.channel.timezone
    page = sender.post(new(alice), FORM, follow=True)

    made = Schedule.objects.get()
    assert page.redirect_chain[-1][0] == edit(made)
    assert made.send == {
        "title": "The month",
        "body": "What you missed.",
        "url": "https://shop.example/",
        "target_platforms": ["web"],
    }
    assert made.recurrence["at"] == ["18:30", "09:00"]
    assert made.changed_by == alice.members["sender"].username
    listed = sender.get(listing(alice))
    text = listed.content.decode()
    assert "Every month on the last Friday at 09:00 and 18:30" in text
    (row,) = listed.context["listed"]
    assert len(row["coming"]) == 3
    assert f"{row['coming'][0].local:%A, %-d %B %Y, %H:%M}" in text
    assert row["state"] == ("on", "good")


def test_a_new_schedule_begins_with_a_template_and_keeps_its_id(alice, sender):
    template = make_template(alice.channel, content={"title": "The month", "body": "Read it."})
    begun = f"{new(alice)}?template={template.pk}"

    page = sender.get(begun)
    sender.post(begun, shown_in(page) | REPEAT | {"name": "Monthly"} | {"title": "Mine"})
    made = Schedule.objects.get()
    sender.post(edit(made), shown_in(sender.get(edit(made))) | {"title": "Ours"})

    assert page.context["form"].title == "The month"
    made.refresh_from_db()
    assert {name: made.send[name] for name in ("title", "body", "template_id")} == {
        "title": "Ours",
        "body": "Read it.",
        "template_id": str(template.pk),
    }


def test_a_saved_form_that_is_saved_again_changes_nothing(alice, sender):
    category = make_category(alice.channel)
    segment = make_segment(alice.channel, attribute("plan", "eq", "pro"))
    extra = {
        "segment_id": str(segment.pk),
        "category": category.key,
        "data_name": ["b", "a"],
        "data_value": ["1", "2"],
        "rate_per_minute": "5000",
        "send_name": "Weekly digest",
        "labels": "digest, autumn",
        "repeat_count": "30",
        "repeat_until": "2031-01-31",
    }
    sender.post(new(alice), FORM | extra)
    before = Schedule.objects.get()
    page = sender.get(edit(before))

    sender.post(edit(before), shown_in(page))

    after = Schedule.objects.get()
    assert after.updated_at > before.updated_at
    assert before.send["rate_per_minute"] == 5_000
    assert before.send["name"] == "Weekly digest"
    assert before.send["labels"] == ["digest", "autumn"]
    assert after.send_json == before.send_json
    assert after.recurrence == before.recurrence
    assert (after.segment_id, after.next_at) == (segment.pk, before.next_at)
    assert page.context["state"][0] == "on"


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({"repeat_rule": "FREQ=DAILY;BYDAY=1MO"}, "BYDAY: Numbers such as in 1MO"),
        ({"repeat_rule": "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"}, "selects no day"),
        ({"repeat_at": ""}, "Enter at least one time."),
        ({"repeat_at": "9h"}, "Must be a time from 00:00 to 23:59."),
        ({"repeat_at": "09:00 09:05"}, "at least 15 minutes apart"),
        ({"repeat_count": "many"}, "Must be a whole number."),
        ({"repeat_until": "2025-01-01"}, "not before the first one"),
        ({"body": ""}, "Write a text."),
        ({"name": " "}, "Must have 1 to 100 characters."),
        ({"audience": "people", "ids": "user-42"}, "Nothing was saved."),
    ],
)
def test_an_error_is_shown_and_the_form_keeps_what_was_written(alice, sender, changed, shown):
    response = sender.post(new(alice), FORM | changed)
    assert response.status_code == 400
    page = response.content.decode()
    assert shown in page
    assert "Nothing was saved." in page
    assert 'value="The month"' in page
    assert not Schedule.objects.exists()


def test_what_was_changed_meanwhile_is_not_overwritten_unseen(alice, sender, schedule):
    form = shown_in(sender.get(edit(schedule)))
    assert sender.post(edit(schedule), form | {"name": "First"}).status_code == 302
    refused = sender.post(edit(schedule), form | {"name": "Second"})
    assert "It was changed by alice-sender after you opened this page." in refused.content.decode()
    again = form | {"name": "Second", "version": refused.context["version"]}
    assert sender.post(edit(schedule), again).status_code == 302
    assert Schedule.objects.get().name == "Second"


def test_the_days_and_what_is_said_about_caps_are_kept(alice, sender):
    sender.post(new(alice), FORM | {"repeat_once": "30", "cap": "ignore"})
    made = Schedule.objects.get()
    assert (made.once_per_days, made.send["cap"]) == (30, "ignore")
    page = sender.get(edit(made))
    sender.post(edit(made), shown_in(page))
    made.refresh_from_db()
    assert (made.once_per_days, made.send["cap"]) == (30, "ignore")

    page = sender.post(edit(made), shown_in(page) | {"repeat_once": "366"})
    assert "Enter 1 to 365 days, or nothing." in page.content.decode()


def test_the_next_occurrence_is_skipped_and_sent_after_all(sender, schedule):
    first = schedule.next_at
    page = act(sender, schedule, "skip", occurs_at=first.isoformat())
    assert "The occurrence is skipped." in page.content.decode()
    assert [each.is_skipped for each in page.context["coming"]] == [True, False, False]
    schedule.refresh_from_db()
    assert schedule.next_at > first

    page = act(sender, schedule, "unskip", occurs_at=first.isoformat())
    assert [each.is_skipped for each in page.context["coming"]] == [False] * 3
    schedule.refresh_from_db()
    assert schedule.next_at == first
    first_ever, last_ever = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
    for wrong in ("x", "2020-01-01T00:00:00Z", first_ever, last_ever):
        page = act(sender, schedule, "skip", occurs_at=wrong)
        assert "no such occurrence" in page.content.decode()


def test_a_schedule_is_turned_off_and_on_and_an_edit_leaves_it_off(sender, schedule):
    page = act(sender, schedule, "off")
    assert page.context["state"] == ("off", "")
    assert page.context["coming"] == []
    sender.post(edit(schedule), shown_in(page))
    schedule.refresh_from_db()
    assert not schedule.is_enabled
    assert act(sender, schedule, "on").context["state"] == ("on", "good")


def test_a_page_of_before_a_change_turns_nothing_on_and_anything_off(sender, schedule):
    first, seen = schedule.next_at.isoformat(), schedule.version
    act(sender, schedule, "skip", occurs_at=first)
    page = act(sender, schedule, "off")
    sender.post(edit(schedule), shown_in(page) | {"title": "Other"})

    page = act(sender, schedule, "on", version=seen)
    assert "The schedule is still off, because the schedule was changed" in page.content.decode()
    assert page.context["state"] == ("off", "")
    page = act(sender, schedule, "unskip", version=seen, occurs_at=first)
    assert "The occurrence was left as it is" in page.content.decode()
    assert Occurrence.objects.filter(code="skipped").exists()

    page = act(sender, schedule, "unskip", occurs_at=first)
    assert "no longer skipped, but the schedule is off" in page.content.decode()
    act(sender, schedule, "on")
    page = act(sender, schedule, "off", version=seen)
    assert page.context["state"] == ("off", "")


@pytest.mark.parametrize("on", [True, False])
def test_a_list_of_many_schedules_takes_as_few_statements_as_one(
    alice, sender, schedule, django_assert_num_queries, on
):
    Schedule.objects.update(is_enabled=on)
    with CaptureQueriesContext(connection) as of_one:
        sender.get(listing(alice))
    for number in range(4):
        make_schedule(alice.channel, f"Another {number}")
    Schedule.objects.update(is_enabled=on)

    with django_assert_num_queries(len(of_one)):
        page = sender.get(listing(alice))

    assert [len(each["coming"]) for each in page.context["listed"]] == [3 * on] * 5


def test_a_refused_schedule_says_why_and_saving_it_enables_it(alice, sender, schedule):
    Schedule.objects.update(is_enabled=False, disabled_code="category_unknown", next_at=None)
    page = sender.get(edit(schedule))
    assert "category_unknown" in page.content.decode()
    sender.post(edit(schedule), shown_in(page))
    schedule.refresh_from_db()
    assert (schedule.is_enabled, schedule.disabled_code) == (True, "")


def test_the_history_shows_what_became_of_each_occurrence(alice, sender, schedule):
    Schedule.objects.update(next_at=timezone.now())
    assert fire_next()
    for day, code in [(7, "skipped_late"), (14, "category_unknown")]:
        occurs_at = timezone.now() - timedelta(days=day)
        Occurrence.objects.create(schedule=schedule, occurs_at=occurs_at, code=code)

    page = sender.get(edit(schedule))

    told = [each["words"] for each in page.context["past"]]
    assert told == ["sent", "missed", "refused: category_unknown"]
    sent = Notification.objects.get()
    address = reverse("admin:notifications_app_notification_change", args=[sent.pk])
    assert address in page.content.decode()
    assert edit(schedule) in sender.get(address).content.decode()


def test_a_deleted_schedule_is_gone_and_what_it_sent_stays(alice, sender, schedule):
    Schedule.objects.update(next_at=timezone.now())
    fire_next()
    page = act(sender, schedule, "delete")
    assert page.redirect_chain[-1][0] == listing(alice)
    assert not Schedule.objects.exists()
    assert not Occurrence.objects.exists()
    assert Notification.objects.count() == 1


def test_the_choice_is_shown_in_words_while_it_is_made(alice, sender):
    address = reverse("admin:schedule_recurrence", args=[alice.channel.pk])
    page = sender.post(address, REPEAT | {"repeat_until": "2031-01-01"}).content.decode()
    assert "Every month on the last Friday at 09:00 and 18:30, until 1 January 2031" in page
    assert page.count("<li>") == 3
    refused = sender.post(address, REPEAT | {"repeat_rule": "FREQ=x"}).content.decode()
    assert "FREQ: Must be one of" in refused


def test_the_clock_of_each_recipient_is_chosen_and_kept(alice, sender):
    sender.post(new(alice), FORM | {"repeat_zone": "recipient"})
    made = Schedule.objects.get()
    assert made.recurrence["timezone"] == "recipient"
    page = sender.get(edit(made))
    assert "On the clock of each recipient." in page.content.decode()
    assert {each.local.hour for each in page.context["coming"]} <= {9, 18}
    sender.post(edit(made), shown_in(page))
    assert Schedule.objects.get().recurrence == made.recurrence


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_only_senders_write_schedules(alice, schedule, role):
    client = signed_in(alice.members[role])
    may_write = role in {"sender", "editor"}
    assert client.get(listing(alice)).status_code == 200
    page = client.get(edit(schedule))
    assert page.status_code == 200
    assert (">Save<" in page.content.decode()) == may_write
    assert client.post(new(alice), FORM).status_code == (302 if may_write else 403)
    assert act(client, schedule, "off").status_code == (200 if may_write else 403)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("FREQ=DAILY", "Every day at 09:00"),
        ("FREQ=DAILY;INTERVAL=3", "Every 3 days at 09:00"),
        ("FREQ=DAILY;BYDAY=MO,TU;BYMONTH=3", "Every day on Monday and Tuesday in March at 09:00"),
        ("FREQ=WEEKLY", "Every week on Thursday at 09:00"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE,FR", "Every 2 weeks on Monday, Wednesday and Friday"),
        ("FREQ=MONTHLY", "Every month on the 1st at 09:00"),
        ("FREQ=MONTHLY;BYMONTHDAY=2,13,-1,-3", "on the 2nd, the 13th, the last day and the 3rd"),
        ("FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR", "Every month on the 13th if it is Friday"),
        ("FREQ=MONTHLY;BYDAY=1MO,-2TU", "on the 1st Monday and the 2nd last Tuesday"),
        ("FREQ=YEARLY", "Every year on the 1st of January at 09:00"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "Every year on the 29th of February at 09:00"),
        ("FREQ=YEARLY;BYDAY=-1FR", "Every year on the last Friday at 09:00"),
    ],
)
def test_a_rule_in_words(rule, words):
    recurs = Recurrence(
        rule=rule, at=[time(9)], timezone="UTC", starts_on=date(2026, 1, 1), count=1
    )
    assert words in recurrence_words(recurs)
    assert recurrence_words(recurs).endswith(", 1 time")


@pytest.mark.parametrize(
    ("language", "rule", "words"),
    [
        ("de", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE", "Alle 2 Wochen am Montag und Mittwoch um"),
        ("de", "FREQ=MONTHLY;BYMONTHDAY=3,-1", "Jeden Monat am 3. und letzten Tag um 09:00 Uhr"),
        ("de", "FREQ=YEARLY", "Jedes Jahr am 1. Januar um 09:00 Uhr, bis 2. Mai 2031, 1-mal"),
        ("ar", "FREQ=DAILY;INTERVAL=2;BYMONTH=3", "كل يومين في مارس الساعة 09:00"),
    ],
)
def test_a_rule_in_words_of_another_language(language, rule, words):
    recurs = Recurrence(
        rule=rule,
        at=[time(9)],
        timezone="UTC",
        starts_on=date(2026, 1, 1),
        ends_on=date(2031, 5, 2),
        count=1,
    )
    with translation.override(language):
        assert words in recurrence_words(recurs)
