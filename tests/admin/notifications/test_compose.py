"""Composing: the form, its review, and what a confirmation stores."""

from auditlog.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from channels_app.models import ProviderCredential
from notifications_app.models import IdempotencyRecord, Notification
from subscriptions_app.segments.services import segment_create
from tests.admin.notifications.composing import (
    CHECK,
    COMPOSE,
    confirm,
    duplicate,
    key_of,
    review,
    send,
    written,
)
from tests.admin.support import signed_in
from tests.factories import add_crowd, add_subscriptions, make_sent_notification

# --- writing, reviewing, sending ------------------------------------------------------------------


def test_a_sender_with_one_channel_gets_the_form_at_once(sender, alice):
    page = sender.get(COMPOSE)
    assert page.status_code == 200
    assert page.context["channel"] == alice.channel
    assert 'name="body"' in page.content.decode()


def test_a_member_of_several_channels_chooses_one_first(alice, bob, root):
    client = signed_in(root)
    choosing = client.get(COMPOSE).content.decode()
    assert 'name="body"' not in choosing
    assert alice.channel.name.replace("'", "&#x27;") in choosing

    chosen = client.get(COMPOSE, {"channel": str(bob.channel.pk)})
    assert chosen.context["channel"] == bob.channel


def test_a_review_says_who_gets_what_and_when_and_stores_nothing(sender, alice):
    add_crowd(alice.channel, 1_234)

    page = review(sender, written(alice)).content.decode()

    assert "1,234 subscribers" in page
    assert "Spring sale" in page
    assert "Twenty per cent off." in page
    assert "At once" in page
    assert not Notification.objects.exists()


def test_a_pause_and_its_effect_are_shown_in_form_and_review(sender, alice):
    alice.channel.android_enabled = alice.channel.ios_enabled = True
    alice.channel.save()
    ProviderCredential.objects.create(
        channel=alice.channel,
        platform="android",
        secret_encrypted="sealed",
        paused_at=timezone.now(),
        paused_code="permission_denied",
        paused_detail="The caller has <no> permission",
    )

    page = sender.get(COMPOSE).content.decode()
    assert "Android is paused" in page
    assert "The caller has &lt;no&gt; permission" in page
    assert "iOS has no credentials." in page

    reviewed = review(sender, written(alice, platforms=["web", "android"])).content.decode()
    assert "Recipients wait for up to an hour, then bounce." in reviewed
    assert reverse("admin:channel_credentials", args=[alice.channel.pk]) in reviewed
    assert "iOS has no" not in reviewed

    assert "is paused" not in review(sender, written(alice)).content.decode()


def test_a_confirmation_stores_what_the_api_would_store(sender, alice):
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


def test_a_second_click_on_the_confirmation_sends_nothing(sender, alice):
    form = written(alice)
    key = key_of(review(sender, form))

    first, second = confirm(sender, form, key), confirm(sender, form, key)

    assert first.url == second.url
    assert Notification.objects.count() == 1
    assert IdempotencyRecord.objects.count() == 1


def test_a_second_review_makes_a_second_notification(sender, alice):
    form = written(alice)
    send(sender, form)
    send(sender, form)
    assert Notification.objects.count() == 2


def test_reviewed_content_cannot_be_changed_under_the_same_key(sender, alice):
    form = written(alice)
    key = key_of(review(sender, form))
    confirm(sender, form, key)

    answer = confirm(sender, form | {"body": "Something else"}, key)

    assert answer.status_code == 400
    assert "another body" in answer.content.decode()
    assert Notification.objects.count() == 1


def test_a_send_has_one_entry_in_the_audit_log(sender, alice):
    form = written(alice)
    key = key_of(review(sender, form))
    confirm(sender, form, key)
    confirm(sender, form, key)

    entry = LogEntry.objects.get(object_pk=str(Notification.objects.get().pk))
    assert entry.actor == alice.members["sender"]
    assert entry.changes["body"] == [None, "Twenty per cent off."]


def test_going_back_from_the_review_keeps_the_input(sender, alice):
    form = written(alice, data_name=["a"], data_value=["b"], body="Two\r\nlines")
    page = sender.post(COMPOSE, form | {"step": "edit"}).content.decode()
    assert 'value="Spring sale"' in page
    assert "Two\nlines</textarea>" in page
    assert 'name="data_value" value="b"' in page


def test_a_browsers_line_end_counts_as_one_character(sender, alice):
    form = written(alice, body="x" * 253 + "\r\n" + "y")
    send(sender, form)
    assert Notification.objects.get().body == "x" * 253 + "\ny"


# --- asked while writing --------------------------------------------------------------------------


def test_the_form_shows_size_and_audience_while_it_is_filled_in(sender, alice):
    add_crowd(alice.channel, 7)
    answer = sender.post(CHECK, written(alice)).json()
    (web,) = answer["platforms"]
    assert answer["errors"] == {}
    assert (web["platform"], web["audience"], web["estimated"]) == ("web", 7, False)
    assert 100 < web["payload_bytes"] < web["most_bytes"] == 3993
    assert not Notification.objects.exists()


def test_a_message_too_large_for_firefox_on_android_is_told_before_the_send(sender, alice):
    add_subscriptions(alice.channel, 1, push_service="mozilla")
    large = written(alice, data_name=["a"], data_value=["x" * 3_000])
    said = "Firefox for Android gets no message over 2,912 bytes"

    assert said in sender.post(CHECK, large).json()["platforms"][0]["too_large"][0]
    assert said in review(sender, large).content.decode()
    assert sender.post(CHECK, written(alice)).json()["platforms"][0]["too_large"] == []
    assert said not in review(sender, written(alice)).content.decode()


def test_a_personal_message_is_judged_by_its_largest_sample(sender, alice):
    for service in ("mozilla", "fcm"):
        add_subscriptions(alice.channel, 1, push_service=service, attributes={"name": "x" * 255})
    personal = written(
        alice, personalize="on", data_name=["a"], data_value=["{{ name | default: '' }}" * 12]
    )
    (said,) = sender.post(CHECK, personal).json()["platforms"][0]["too_large"]
    assert said.startswith("Firefox for Android gets no message over 2,912 bytes. This one has 3,")


def test_the_form_shows_the_audience_before_it_has_a_text(sender, alice):
    add_crowd(alice.channel, 7)
    answer = sender.post(CHECK, written(alice, body="")).json()
    assert answer["platforms"][0]["audience"] == 7
    assert answer["platforms"][0]["payload_bytes"] is None


def test_the_audience_of_a_segment_is_that_of_its_rule(sender, alice):
    add_crowd(alice.channel, 30)
    rule = {"attribute": "plan", "operator": "eq", "value": "pro"}
    segment = segment_create(channel=alice.channel, name="Payers", rule=rule)
    form = written(alice, segment_id=str(segment.pk))

    assert sender.post(CHECK, form).json()["platforms"][0]["audience"] == 10
    assert "10 subscribers" in review(sender, form).content.decode()
    send(sender, form)
    assert Notification.objects.get().segment_id == segment.pk


# --- once more ------------------------------------------------------------------------------------


def test_a_duplicate_takes_everything_but_the_time(sender, alice):
    earlier = make_sent_notification(
        alice.channel, data={"a": "b"}, ttl=7200, urgency="low", topic="t", image="https://x.y/z"
    )

    page = duplicate(sender, earlier)

    form = page.context["form"]
    assert (form.title, form.body, form.url) == (earlier.title, earlier.body, earlier.url)
    assert (form.image, form.urgency) == ("https://x.y/z", "low")
    assert form.extras == {"topic": "t"}
    assert (form.ttl_number, form.ttl_unit, form.when) == ("2", "hours", "now")
    assert [(row.name, row.value) for row in form.data] == [("a", "b")]


def test_a_duplicate_keeps_a_ttl_of_zero(sender, alice):
    earlier = make_sent_notification(alice.channel, ttl=0)
    form = duplicate(sender, earlier).context["form"]
    send(sender, written(alice, ttl_number=form.ttl_number, ttl_unit=form.ttl_unit))
    assert Notification.objects.order_by("-id")[0].ttl == 0


def test_the_compose_form_takes_few_queries(alice, sender, django_assert_max_num_queries):
    add_crowd(alice.channel, 50)
    for number in range(60):
        rule = {"attribute": "age", "operator": "gt", "value": number}
        segment_create(channel=alice.channel, name=f"Over {number}", rule=rule)
    with django_assert_max_num_queries(25):
        sender.get(COMPOSE)
    with django_assert_max_num_queries(25):
        review(sender, written(alice))
    with django_assert_max_num_queries(25):
        sender.post(CHECK, written(alice))
