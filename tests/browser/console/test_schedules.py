"""A schedule's way: its recurrence is picked, shown in words, saved, and an occurrence skipped."""

from datetime import timedelta

from playwright.sync_api import expect

from notifications_app.models import Schedule
from tests.factories import make_notification, make_schedule

PAGES = "/admin/notifications_app/notification"


def test_a_recurrence_is_picked_and_an_occurrence_skipped(console, alice):
    page = console.open(f"{PAGES}/schedules/{alice.channel.pk}/", alice.members["sender"])
    page.get_by_role("link", name="New schedule").click()
    words, picker = page.locator("#repeat-words"), page.locator("#repeat-picker")
    expect(words).to_contain_text("Every week on Monday at 09:00")
    expect(page.locator("#repeat_rule")).to_be_hidden()

    picker.get_by_label("Unit").select_option("MONTHLY")
    page.locator("#repeat-place").select_option("-1")
    picker.get_by_label("Weekday").select_option("FR")
    page.locator("#repeat-interval").fill("2")
    page.get_by_label("At", exact=True).fill("18:30")
    page.locator("#repeat_zone").select_option("America/New_York")
    expect(words).to_contain_text("Every 2 months on the last Friday at 18:30")
    expect(words).to_contain_text("on the clock of America/New_York")
    assert page.locator("#repeat_rule").input_value() == "FREQ=MONTHLY;INTERVAL=2;BYDAY=-1FR"

    picker.get_by_label("Unit").select_option(label="another rule")
    page.locator("#repeat_rule").fill("FREQ=MONTHLY;BYDAY=1MO,FR")
    expect(words).to_contain_text("Either all weekdays have numbers or none has.")
    page.locator("#repeat_rule").fill("FREQ=MONTHLY;BYDAY=1MO,-1FR")
    expect(words).to_contain_text("Every month on the 1st Monday and the last Friday")
    page.locator("#schedule-name").fill("Digest")
    page.locator("#body").fill("What you missed.")
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_text("The schedule “Digest” was saved.")).to_be_visible()
    made = Schedule.objects.get(channel=alice.channel)
    assert made.recurrence["rule"] == "FREQ=MONTHLY;BYDAY=1MO,-1FR"
    assert made.recurrence["at"] == ["18:30"]
    expect(page.locator("#repeat_rule")).to_be_visible()  # the picker cannot show it
    page.get_by_role("button", name="Skip").first.click()
    expect(page.get_by_text("The occurrence is skipped.")).to_be_visible()
    expect(page.get_by_role("button", name="Send on")).to_be_visible()
    made.refresh_from_db()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("The schedule “Digest” was deleted.")).to_be_visible()


def test_the_picker_shows_each_rule_that_it_writes(console, alice):
    schedule = make_schedule(alice.channel)
    page = console.open(f"{PAGES}/schedules/{schedule.pk}/edit/", alice.members["sender"])
    for rule in (
        "FREQ=DAILY",
        "FREQ=DAILY;BYDAY=MO,TU",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU",
        "FREQ=MONTHLY;BYMONTHDAY=-1",
        "FREQ=MONTHLY;BYDAY=4TH",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=12;BYDAY=1SU",
    ):
        Schedule.objects.filter(pk=schedule.pk).update(
            recurrence={**schedule.recurrence, "rule": rule}
        )
        page.reload()
        expect(page.locator("#repeat_rule")).to_be_hidden()
        # Written again, without a change.
        page.locator("#repeat-interval").dispatch_event("input")
        assert page.locator("#repeat_rule").input_value() == rule


def test_the_calendar_is_in_the_zone_of_the_reader(console, alice):
    schedule = make_schedule(alice.channel, "Digest")
    at = schedule.next_at + timedelta(hours=1)
    make_notification(alice.channel, body="Later", scheduled_at=at)
    page = console.open(
        f"{PAGES}/calendar/?month={schedule.next_at:%Y-%m}", alice.members["viewer"]
    )
    zone = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    expect(page.get_by_text(f"Days and times are in {zone}.")).to_be_visible()
    clock = page.evaluate(
        "at => new Date(at).toLocaleTimeString('en-GB', {hour: '2-digit', minute: '2-digit'})",
        at.isoformat(),
    )
    expect(page.get_by_text(f"{clock} · to 0")).to_be_visible()
    expect(page.get_by_role("link", name="Digest").first).to_be_visible()
