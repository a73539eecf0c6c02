"""Composing: what is written, what is said about it, what is stored when it is confirmed."""

import re
from datetime import UTC, datetime

import pytest
from auditlog.models import LogEntry
from django.urls import reverse

from notifications_app.models import IdempotencyRecord, Notification
from subscriptions_app.services import segment_create
from tests.admin.support import fill_subscribers, make_notification, signed_in, subscriber

COMPOSE = reverse("admin:notification_compose")
CHECK = reverse("admin:notification_compose_check")
TEST = reverse("admin:notification_compose_test")


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
        "time_zone": "Europe/Berlin",
        "platforms": ["web"],
        "data_name": [],
        "data_value": [],
    } | fields


@pytest.fixture
def sender(alice):
    return signed_in(alice.members["sender"])


def review(client, form):
    return client.post(COMPOSE, form | {"step": "review"})


def key_of(page):
    return re.search(r'name="key" value="([^"]+)"', page.content.decode())[1]


def confirm(client, form, key):
    return client.post(COMPOSE, form | {"step": "send", "key": key})


def send(client, form):
    """Reviewed and confirmed."""
    return confirm(client, form, key_of(review(client, form)))


def faults(client, form):
    return client.post(CHECK, form).json()["faults"]


# --- writing, reviewing, sending ------------------------------------------------------------------


def test_a_sender_with_one_channel_writes_to_it_at_once(sender, alice):
    page = sender.get(COMPOSE)
    assert page.status_code == 200
    assert page.context["channel"] == alice.channel
    assert 'name="body"' in page.content.decode()


def test_who_has_several_channels_chooses_one_first(alice, bob, root):
    client = signed_in(root)
    choosing = client.get(COMPOSE).content.decode()
    assert 'name="body"' not in choosing
    assert alice.channel.name.replace("'", "&#x27;") in choosing

    chosen = client.get(COMPOSE, {"channel": str(bob.channel.pk)})
    assert chosen.context["channel"] == bob.channel


def test_a_review_says_who_gets_what_and_when_and_stores_nothing(sender, alice):
    fill_subscribers(alice.channel, 1_234)

    page = review(sender, written(alice)).content.decode()

    assert "1,234 subscribers" in page
    assert "Spring sale" in page
    assert "Twenty per cent off." in page
    assert "At once" in page
    assert not Notification.objects.exists()


def test_what_is_confirmed_is_stored_as_the_api_stores_it(sender, alice):
    form = written(
        alice,
        image="https://shop.example/a.png",
        topic="sale",
        urgency="high",
        ttl_number="36",
        ttl_unit="hours",
        data_name=["campaign", ""],
        data_value=["spring", ""],
    )

    answer = send(sender, form)

    row = Notification.objects.get()
    page = reverse("admin:notifications_app_notification_change", args=[row.pk])
    assert answer.status_code == 302
    assert answer.url == f"{page}?composed=1"
    assert row.channel == alice.channel
    assert (row.title, row.body, row.url) == (form["title"], form["body"], form["url"])
    assert (row.image, row.icon, row.topic) == ("https://shop.example/a.png", "", "sale")
    assert (row.urgency, row.ttl, row.data) == ("high", 36 * 3600, {"campaign": "spring"})
    assert (row.target_platforms, row.segment_id, row.status) == (["web"], None, "pending")
    assert row.scheduled_at == row.created_at


def test_a_second_click_sends_nothing_a_second_time(sender, alice):
    form = written(alice)
    key = key_of(review(sender, form))

    first, second = confirm(sender, form, key), confirm(sender, form, key)

    assert first.url == second.url
    assert Notification.objects.count() == 1
    assert IdempotencyRecord.objects.count() == 1


def test_a_second_review_is_a_second_notification(sender, alice):
    form = written(alice)
    send(sender, form)
    send(sender, form)
    assert Notification.objects.count() == 2


def test_what_was_reviewed_cannot_be_changed_behind_its_key(sender, alice):
    form = written(alice)
    key = key_of(review(sender, form))
    confirm(sender, form, key)

    answer = confirm(sender, form | {"body": "Something else"}, key)

    assert answer.status_code == 400
    assert "another body" in answer.content.decode()
    assert Notification.objects.count() == 1


def test_sending_is_an_entry_of_the_audit_log_once(sender, alice):
    form = written(alice)
    key = key_of(review(sender, form))
    confirm(sender, form, key)
    confirm(sender, form, key)

    entry = LogEntry.objects.get(object_pk=str(Notification.objects.get().pk))
    assert entry.actor == alice.members["sender"]
    assert entry.changes["body"] == [None, "Twenty per cent off."]


def test_going_back_from_the_review_keeps_what_was_written(sender, alice):
    form = written(alice, data_name=["a"], data_value=["b"], body="Two\r\nlines")
    page = sender.post(COMPOSE, form | {"step": "edit"}).content.decode()
    assert 'value="Spring sale"' in page
    assert "Two\nlines</textarea>" in page
    assert 'name="data_value" value="b"' in page


def test_line_ends_of_a_browser_count_as_one_character(sender, alice):
    form = written(alice, body="x" * 253 + "\r\n" + "y")
    send(sender, form)
    assert Notification.objects.get().body == "x" * 253 + "\ny"


# --- when -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "local", "utc"),
    [
        ("Europe/Berlin", "2031-01-02T09:00", "2031-01-02T08:00"),
        ("Europe/Berlin", "2031-07-02T09:00", "2031-07-02T07:00"),
        ("Asia/Kolkata", "2031-01-02T09:00", "2031-01-02T03:30"),
        ("UTC", "2031-01-02T09:00", "2031-01-02T09:00"),
        # The hour that comes twice: the first of the two.
        ("Europe/Berlin", "2031-10-26T02:30", "2031-10-26T00:30"),
    ],
)
def test_a_schedule_is_a_time_of_the_senders_zone(sender, alice, zone, local, utc):
    form = written(alice, when="later", local_time=local, time_zone=zone)

    page = review(sender, form).content.decode()
    assert zone in page
    assert f"{datetime.fromisoformat(utc):%H:%M} UTC" in page
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
def test_a_time_that_no_clock_shows_is_a_fault_of_the_schedule(sender, alice, zone, local):
    form = written(alice, when="later", local_time=local, time_zone=zone)
    answer = review(sender, form)
    assert answer.status_code == 400
    assert list(answer.context["faults"]) == ["scheduled_at"]


def test_a_time_that_is_over_is_said_to_go_out_at_once(sender, alice):
    form = written(alice, when="later", local_time="2001-01-02T09:00")
    assert "It goes out at once" in review(sender, form).content.decode()
    assert sender.post(CHECK, form).json()["moment"]["is_past"] is True


# --- what is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"body": ""}, "body"),
        ({"body": "x" * 256}, "body"),
        ({"body": "a\0b"}, ""),
        ({"title": "x" * 101}, "title"),
        ({"url": "javascript:alert(1)"}, "url"),
        ({"icon": "shop.example"}, "icon"),
        ({"topic": "a b"}, "topic"),
        ({"urgency": "urgent"}, "urgency"),
        ({"ttl_number": "29", "ttl_unit": "days"}, "ttl"),
        ({"ttl_number": "-1"}, "ttl"),
        ({"ttl_number": "a"}, "ttl"),
        ({"ttl_number": "1", "ttl_unit": "weeks"}, "ttl"),
        ({"platforms": []}, "target_platforms"),
        ({"platforms": ["ios"]}, "target_platforms"),
        ({"platforms": ["telegraph"]}, "target_platforms"),
        ({"segment_id": "0192f0c0-0000-7000-8000-000000000000"}, "segment_id"),
        ({"segment_id": "x"}, "segment_id"),
        ({"data_name": ["a", "a"], "data_value": ["1", "2"]}, "data"),
        ({"data_name": [""], "data_value": ["1"]}, "data"),
        ({"data_name": ["k"], "data_value": ["x" * 4000]}, "target_platforms"),
    ],
)
def test_what_the_api_refuses_is_refused_beside_its_field(sender, alice, fields, field):
    form = written(alice, **fields)

    answer = review(sender, form)

    assert answer.status_code == 400
    assert list(answer.context["faults"]) == [field]
    assert answer.context["faults"][field][0] in _text(answer)
    assert list(faults(sender, form)) == [field]
    assert send_without_review(sender, form).status_code == 400
    assert not Notification.objects.exists()


def _text(answer):
    return answer.content.decode().replace("&#x27;", "'")


def send_without_review(client, form):
    return confirm(client, form, "console made-up")


def test_every_fault_is_said_at_once_and_nothing_written_is_lost(sender, alice):
    form = written(alice, title="x" * 101, body="", url="nowhere", ttl_number="x")
    answer = review(sender, form)
    assert set(answer.context["faults"]) == {"title", "body", "url", "ttl"}
    assert f'value="{"x" * 101}"' in answer.content.decode()
    assert 'value="nowhere"' in answer.content.decode()


def test_markup_in_a_message_stays_text(sender, alice):
    form = written(alice, title="<script>alert(1)</script>", body="</textarea><b>")
    for answer in (review(sender, form), sender.post(COMPOSE, form | {"step": "edit"})):
        assert "<script>alert" not in answer.content.decode()
        assert "</textarea><b>" not in answer.content.decode()


# --- asked while writing --------------------------------------------------------------------------


def test_size_and_audience_are_told_while_writing(sender, alice):
    fill_subscribers(alice.channel, 7)
    answer = sender.post(CHECK, written(alice)).json()
    (web,) = answer["platforms"]
    assert answer["faults"] == {}
    assert (web["platform"], web["audience"], web["estimated"]) == ("web", 7, False)
    assert 100 < web["payload_bytes"] < web["most_bytes"] == 3993
    assert not Notification.objects.exists()


def test_the_audience_is_told_before_there_is_a_text(sender, alice):
    fill_subscribers(alice.channel, 7)
    answer = sender.post(CHECK, written(alice, body="")).json()
    assert answer["platforms"][0]["audience"] == 7
    assert answer["platforms"][0]["payload_bytes"] is None


def test_the_audience_of_a_segment_is_that_of_its_rule(sender, alice):
    fill_subscribers(alice.channel, 30)
    rule = {"attribute": "plan", "operator": "eq", "value": "pro"}
    segment = segment_create(channel=alice.channel, name="Payers", rule=rule)
    form = written(alice, segment_id=str(segment.pk))

    assert sender.post(CHECK, form).json()["platforms"][0]["audience"] == 10
    assert "10 subscribers" in review(sender, form).content.decode()
    send(sender, form)
    assert Notification.objects.get().segment_id == segment.pk


# --- a test to one subscriber ---------------------------------------------------------------------


def test_a_test_is_stored_for_one_subscriber_and_for_now(sender, alice):
    fill_subscribers(alice.channel, 3)
    device = subscriber(alice.channel)
    form = written(alice, when="later", local_time="2031-01-02T09:00", test_device=str(device.pk))

    answer = sender.post(TEST, form)

    row = Notification.objects.get()
    assert answer.status_code == 200
    assert "on its way" in answer.content.decode()
    assert row.only_subscription_id == device.pk
    assert row.is_test
    assert row.scheduled_at == row.created_at
    assert (row.body, row.target_platforms) == (form["body"], ["web"])


def test_a_subscriber_is_found_by_the_hash_of_its_token(sender, alice):
    fill_subscribers(alice.channel, 2)
    device = subscriber(alice.channel)
    known_as = bytes(device.address_sha256).hex().upper()
    sender.post(TEST, written(alice, test_device="", test_known_as=f" {known_as} "))
    assert Notification.objects.get().only_subscription_id == device.pk


def test_nothing_is_sent_to_a_subscriber_of_another_channel_or_none(sender, alice, bob):
    fill_subscribers(bob.channel, 1)
    theirs = subscriber(bob.channel)
    for known_as in (str(theirs.pk), bytes(theirs.address_sha256).hex(), "x", ""):
        answer = sender.post(TEST, written(alice, test_known_as=known_as))
        assert "No test was sent" in answer.content.decode()
    assert not Notification.objects.exists()


def test_a_test_of_what_cannot_be_sent_says_what_is_wrong(sender, alice):
    fill_subscribers(alice.channel, 1)
    device = subscriber(alice.channel)
    answer = sender.post(TEST, written(alice, body="", test_device=str(device.pk)))
    assert "body" in answer.content.decode()
    assert not Notification.objects.exists()


# --- once more ------------------------------------------------------------------------------------


def test_an_earlier_one_is_written_once_more_without_its_time(sender, alice):
    earlier = make_notification(
        alice.channel, data={"a": "b"}, ttl=7200, urgency="low", topic="t", image="https://x.y/z"
    )

    page = sender.get(COMPOSE, {"from": str(earlier.pk)})

    form = page.context["form"]
    assert (form.title, form.body, form.url) == (earlier.title, earlier.body, earlier.url)
    assert (form.image, form.topic, form.urgency) == ("https://x.y/z", "t", "low")
    assert (form.ttl_number, form.ttl_unit, form.when) == ("2", "hours", "now")
    assert [(row.name, row.value) for row in form.data] == [("a", "b")]


def test_one_that_was_for_at_once_or_never_stays_so(sender, alice):
    earlier = make_notification(alice.channel, ttl=0)
    form = sender.get(COMPOSE, {"from": str(earlier.pk)}).context["form"]
    send(sender, written(alice, ttl_number=form.ttl_number, ttl_unit=form.ttl_unit))
    assert Notification.objects.order_by("-id")[0].ttl == 0


# --- who may --------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["edit", "review", "send"])
def test_a_viewer_composes_nothing_by_any_way(alice, step):
    client = signed_in(alice.members["viewer"])
    form = written(alice) | {"step": step, "key": "k"}
    assert client.get(COMPOSE).status_code == 403
    assert client.post(COMPOSE, form).status_code == 403
    assert client.post(CHECK, form).status_code == 403
    assert client.post(TEST, form).status_code == 403
    assert not Notification.objects.exists()


def test_a_channel_of_another_account_is_not_to_be_found(alice, bob, sender):
    form = written(bob) | {"step": "send", "key": "k"}
    assert sender.get(COMPOSE, {"channel": str(bob.channel.pk)}).status_code == 404
    assert sender.get(COMPOSE, {"channel": "x"}).status_code == 404
    for address in (COMPOSE, CHECK, TEST):
        assert sender.post(address, form).status_code == 404
    theirs = make_notification(bob.channel)
    assert sender.get(COMPOSE, {"from": str(theirs.pk)}).status_code == 404
    assert Notification.objects.count() == 1


def test_a_viewer_of_one_account_who_sends_in_another_may_not_send_here(alice, bob):
    both = alice.members["sender"]
    bob.account.memberships.create(user=both, role="viewer")
    client = signed_in(both)
    assert client.post(COMPOSE, written(bob) | {"step": "review"}).status_code == 403
    theirs = make_notification(bob.channel)
    assert client.get(COMPOSE, {"from": str(theirs.pk)}).status_code == 403
    assert client.get(COMPOSE).context["channel"] == alice.channel


def test_nothing_is_sent_by_a_link(sender, alice):
    form = written(alice) | {"step": "send", "key": "k"}
    sender.get(COMPOSE, form)
    assert sender.get(TEST, form).status_code == 405
    assert sender.get(CHECK, form).status_code == 405
    assert not Notification.objects.exists()


def test_composing_takes_few_queries(alice, sender, django_assert_max_num_queries):
    fill_subscribers(alice.channel, 50)
    for number in range(60):
        rule = {"attribute": "age", "operator": "gt", "value": number}
        segment_create(channel=alice.channel, name=f"Over {number}", rule=rule)
    with django_assert_max_num_queries(25):
        sender.get(COMPOSE)
    with django_assert_max_num_queries(25):
        review(sender, written(alice))
    with django_assert_max_num_queries(25):
        sender.post(CHECK, written(alice))
