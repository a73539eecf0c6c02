"""Composing: the schedule, and errors beside their fields."""

import re
from datetime import UTC, datetime

import pytest

from notifications_app.models import Notification
from subscriptions_app.segments.services import segment_create, segment_update
from tests.admin.notifications.composing import (
    CHECK,
    COMPOSE,
    confirm,
    errors,
    key_of,
    review,
    send,
    written,
)

# What only programs say.
API_WORDS = re.compile(r"[a-z]+_[a-z]|`|UUID|ISO 8601|base64url|absolute|blank|\bon (web|ios)\b")

# --- schedule -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "local", "utc"),
    [
        ("Europe/Berlin", "2031-01-02T09:00", "2031-01-02T08:00"),
        ("Europe/Berlin", "2031-07-02T09:00", "2031-07-02T07:00"),
        ("Asia/Kolkata", "2031-01-02T09:00", "2031-01-02T03:30"),
        ("UTC", "2031-01-02T09:00", "2031-01-02T09:00"),
        # The hour that comes twice when clocks go back: the first one is meant.
        ("Europe/Berlin", "2031-10-26T02:30", "2031-10-26T00:30"),
    ],
)
def test_a_schedule_is_a_time_in_the_senders_time_zone(sender, alice, zone, local, utc):
    form = written(alice, when="later", local_time=local, time_zone=zone)

    page = review(sender, form).content.decode()
    assert zone in page
    assert (f'datetime="{utc}:00+00:00"' in page) is (zone != "UTC")  # the reader's
    send(sender, form)

    expected = datetime.fromisoformat(utc).replace(tzinfo=UTC)
    assert Notification.objects.get().scheduled_at == expected
    assert sender.post(CHECK, form).json()["moment"]["utc"] == expected.isoformat()


@pytest.mark.parametrize(
    ("zone", "local"),
    [
        ("Europe/Berlin", "2031-03-30T02:30"),  # clocks go from two to three
        ("Europe/Berlin", ""),
        ("Europe/Berlin", "tomorrow"),
        ("Nowhere/Else", "2031-01-02T09:00"),
        ("../../etc/passwd", "2031-01-02T09:00"),
        ("", "2031-01-02T09:00"),
        ("Asia/Tokyo", "0001-01-01T00:00"),
    ],
)
def test_a_time_that_a_clock_change_skips_is_an_error_of_the_schedule(sender, alice, zone, local):
    form = written(alice, when="later", local_time=local, time_zone=zone)
    answer = review(sender, form)
    assert answer.status_code == 400
    assert list(answer.context["errors"]) == ["scheduled_at"]


def test_the_review_says_that_a_past_time_sends_at_once(sender, alice):
    form = written(alice, when="later", local_time="2001-01-02T09:00")
    assert "will be sent immediately" in review(sender, form).content.decode()
    assert sender.post(CHECK, form).json()["moment"]["is_past"] is True


def test_a_schedule_whose_time_passed_during_the_review_is_reviewed_again(sender, alice):
    form = written(alice, when="later", local_time="2001-01-02T09:00")

    page = confirm(sender, form, "console as it was reviewed before the time passed")

    assert "Nothing was sent yet." in page.content.decode()
    assert "will be sent immediately" in page.content.decode()
    assert not Notification.objects.exists()
    confirm(sender, form | {"seen": page.context["seen"]}, key_of(page))
    assert Notification.objects.exists()


def test_a_send_to_a_segment_that_was_changed_during_the_review_is_reviewed_again(sender, alice):
    rule = {"attribute": "plan", "operator": "eq", "value": "pro"}
    segment = segment_create(channel=alice.channel, name="Payers", rule=rule)
    form = written(alice, segment_id=str(segment.pk))
    seen = {"seen": review(sender, form).context["seen"]}
    others = {"channel_id": alice.channel.pk, "segment_id": segment.pk, "rule": {"not": rule}}
    segment_update(name="Others", **others)

    page = confirm(sender, form | seen, "console one").content.decode()

    assert "The segment was changed" in page
    assert "Others" in page
    assert not Notification.objects.exists()


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"body": ""}, "body", "Write a text."),
        ({"body": "x" * 256}, "body", ""),
        ({"body": "a\0b"}, "", "A text contains a character that cannot be stored."),
        ({"body": " \u200b"}, "body", ""),
        ({"title": "x" * 101}, "title", ""),
        ({"title": "\u3164"}, "title", "Must have a character that people can see."),
        ({"actions.0.id": "a", "actions.0.title": " "}, "actions", ""),
        ({"translations.de.body": "\r\n"}, "translations", ""),
        ({"url": "javascript:alert(1)"}, "url", ""),
        ({"icon": "shop"}, "icon", "Enter a web address, such as https://shop.example/sale."),
        ({"topic": "a b"}, "topic", "Use at most 32 letters, digits, hyphens and underscores."),
        ({"urgency": "urgent"}, "urgency", ""),
        ({"ttl_number": "29", "ttl_unit": "days"}, "ttl", "Enter at most 28 days."),
        ({"ttl_number": "-1"}, "ttl", ""),
        ({"ttl_number": "a"}, "ttl", ""),
        ({"ttl_number": "1", "ttl_unit": "weeks"}, "ttl", ""),
        ({"platforms": []}, "target_platforms", "Choose at least one platform."),
        ({"platforms": ["ios"]}, "target_platforms", ""),
        ({"platforms": ["telegraph"]}, "target_platforms", ""),
        ({"segment_id": "0192f0c0-0000-7000-8000-000000000000"}, "segment_id", ""),
        ({"segment_id": "x"}, "segment_id", "This segment no longer exists. Choose another."),
        ({"data_name": ["a", "a"], "data_value": ["1", "2"]}, "data", ""),
        ({"data_name": [""], "data_value": ["1"]}, "data", ""),
        ({"data_name": ["k"], "data_value": ["x" * 4000]}, "target_platforms", ""),
        (
            {"expires_local": "2001-01-02T09:00"},
            "expires_at",
            "Choose a moment after the start, and later than now.",
        ),
        ({"expires_local": "soon"}, "expires_at", ""),
    ],
)
def test_what_the_api_refuses_is_refused_at_its_field_in_plain_words(
    sender, alice, fields, field, words
):
    form = written(alice, **fields)

    answer = review(sender, form)

    assert answer.status_code == 400
    assert list(answer.context["errors"]) == [field]
    shown = str(*answer.context["errors"][field])
    assert shown in _text(answer)
    assert shown == (words or shown)
    assert not API_WORDS.search(shown)
    assert list(errors(sender, form)) == [field]
    assert send_without_review(sender, form).status_code == 400
    assert not Notification.objects.exists()


def test_a_message_that_is_too_large_names_the_platform_and_what_helps(sender, alice):
    form = written(alice, data_name=["k"], data_value=["x" * 4000])
    (told,) = errors(sender, form)["target_platforms"]
    assert re.fullmatch(r"The message has \d+ bytes on Web; the limit is 3993\. Shorten .+", told)


def _text(answer):
    return answer.content.decode().replace("&#x27;", "'")


def send_without_review(client, form):
    return confirm(client, form, "console made-up")


def test_all_errors_are_shown_together_and_the_input_is_kept(sender, alice):
    form = written(alice, title="x" * 101, body="", url="nowhere", ttl_number="x")
    answer = review(sender, form)
    assert set(answer.context["errors"]) == {"title", "body", "url", "ttl"}
    assert f'value="{"x" * 101}"' in answer.content.decode()
    assert 'value="nowhere"' in answer.content.decode()


def test_markup_in_a_message_is_shown_as_text(sender, alice):
    form = written(alice, title="<script>alert(1)</script>", body="</textarea><b>")
    for answer in (review(sender, form), sender.post(COMPOSE, form | {"step": "edit"})):
        assert "<script>alert" not in answer.content.decode()
        assert "</textarea><b>" not in answer.content.decode()
