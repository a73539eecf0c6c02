"""Composing for people, for subscribers by id, and by conditions; and what the notification's page
says of them afterwards."""

import json

import pytest
from django.urls import reverse

from notifications_app.content.values import TargetId
from notifications_app.models import Notification, Target
from pushsvc.common.ids import uuid7
from tests.admin.notifications.composing import (
    CHECK,
    COMPOSE,
    confirm,
    duplicate,
    errors,
    key_of,
    review,
    send,
    shown_in,
    written,
)
from tests.admin.notifications.test_edit import edited, form_of
from tests.admin.support import signed_in
from tests.factories import (
    add_subscription,
    add_subscriptions,
    add_tags,
    make_direct_notification,
    make_notification,
    make_person,
    make_segment,
    make_sent_notification,
)
from tests.pipeline import support

PRO = {"attribute": "plan", "operator": "eq", "value": "pro"}
FUTURE = "2031-03-14 09:30:00Z"


def page_of(notification):
    return reverse("admin:notifications_app_notification_change", args=[notification.pk])


def targets_of(notification):
    named = Target.objects.of(notification.pk).values_list("external_id", "subscription_id")
    return [external_id or str(subscription_id) for external_id, subscription_id in named]


def test_a_send_to_people_names_the_unknown_before_it_is_confirmed(sender, alice):
    ada = make_person(alice.channel, "ada")
    add_subscription(alice.channel, person=ada)
    add_subscription(alice.channel, person=ada, platform="ios")
    form = written(alice, audience="people", ids=" ada\r\n\r\nnobody\r\nada ")

    live = sender.post(CHECK, form).json()
    reviewed = review(sender, form)

    assert live["unknown"] == ["nobody"]
    assert [each["audience"] for each in live["platforms"]] == [1]
    said = reviewed.content.decode()
    assert "1 of the ids is unknown" in said
    assert "nobody" in said
    assert "The targets also have devices on iOS" in said
    assert not Notification.objects.exists()

    confirm(sender, form, key_of(reviewed))
    assert targets_of(Notification.objects.get()) == ["ada", "nobody"]


def test_a_send_to_subscribers_by_id_and_one_by_conditions(sender, alice):
    rows = [add_subscription(alice.channel, {"plan": plan}) for plan in ("pro", "free")]
    by_id = written(alice, audience="subscriptions", ids=str(rows[1].pk), segment_id="")
    assert send(sender, by_id).status_code == 302
    by_rule = written(alice, audience="rule", rule=json.dumps(PRO))
    assert "plan" in review(sender, by_rule).content.decode()
    assert send(sender, by_rule).status_code == 302

    support.plan()

    second, first = Notification.objects.order_by("-id")
    assert support.planned_ids(first) == [rows[1].id]
    assert support.planned_ids(second) == [rows[0].id]


@pytest.mark.parametrize(
    ("fields", "name", "words"),
    [
        ({"audience": "people", "ids": " \n"}, "external_ids", "Write at least one id."),
        ({"audience": "people", "ids": "a\n" * 1001}, "external_ids", "Write at most 1,000 ids."),
        ({"audience": "people", "ids": "a\nnull"}, "external_ids", "Id 2: This is what"),
        ({"audience": "subscriptions", "ids": "a"}, "subscription_ids", "Id 1: Must be"),
        ({"audience": "rule", "rule": ""}, "rule", "Finish the conditions."),
        ({"audience": "tag", "tag": ""}, "rule", "Enter a tag"),
        ({"audience": "tag", "tag": "team 7"}, "rule", "Enter a tag"),
        ({"audience": "rule", "rule": "[1,"}, "rule", "Finish the conditions."),
        ({"audience": "everybody"}, "", "Choose who gets it."),
    ],
)
def test_an_audience_that_names_nobody_is_refused_and_nothing_is_sent(
    sender, alice, fields, name, words
):
    form = written(alice, **fields)
    assert errors(sender, form)[name][0].startswith(words)
    assert review(sender, form).status_code == 400
    assert not Notification.objects.exists()


def test_a_send_to_a_tag_is_one_by_a_rule(sender, alice):
    fan, _ = add_subscriptions(alice.channel, 2)
    add_tags([fan], "team-7")
    form = written(alice, audience="tag", tag=" team-7 ")
    assert [each["audience"] for each in sender.post(CHECK, form).json()["platforms"]] == [1]
    send(sender, form)

    notification = Notification.objects.get()
    assert notification.rule == {"tag": "team-7"}
    assert shown_in(duplicate(sender, notification))["tag"] == "team-7"


def test_the_page_offers_the_channels_own_tags_and_attributes(sender, alice, bob):
    add_tags(add_subscriptions(alice.channel, 1, attributes={"plan": "pro"}), "team-7", "<b>")
    add_tags(add_subscriptions(bob.channel, 1, attributes={"secret": "x"}), "of-bob")

    page = sender.get(COMPOSE)

    assert page.context["tags"] == ["<b>", "team-7"]
    assert page.context["known"]["attributes"] == [{"name": "plan", "kinds": ["string"]}]
    assert "of-bob" not in page.content.decode()
    assert '<option value="&lt;b&gt;"></option>' in page.content.decode()


def test_the_errors_of_conditions_are_told_where_they_are(sender, alice):
    rule = {"all": [PRO, {"any": [{"attribute": "", "operator": "eq", "value": 1}, {"tag": ""}]}]}
    form = written(alice, audience="rule", rule=json.dumps(rule))

    found = sender.post(CHECK, form).json()["rule_errors"]

    assert found == [
        {"path": "rule.all.1.any.0.attribute", "words": "Name the attribute."},
        {
            "path": "rule.all.1.any.1.tag",
            "words": "Enter a tag: letters, digits and _ . : - without blanks.",
        },
    ]
    page = review(sender, form).content.decode()
    assert '<li data-path="rule.all.1.any.0.attribute">Name the attribute.</li>' in page
    assert sender.post(CHECK, written(alice)).json()["rule_errors"] == []


def test_a_copy_goes_to_the_same_and_never_to_everybody(sender, alice):
    device = add_subscription(alice.channel)
    sends = {
        "people": make_direct_notification(alice.channel, people=["b", "a"]),
        "subscriptions": make_direct_notification(alice.channel, subscriptions=[device]),
        "rule": make_notification(alice.channel, rule=PRO),
        "tag": make_notification(alice.channel, rule={"tag": "team-7"}),
    }
    for audience, notification in sends.items():
        form = shown_in(duplicate(sender, notification))
        assert form["audience"] == audience
        channel = str(alice.channel.pk)
        send(sender, form | {"channel": channel, "when": "now", "time_zone": "UTC"})
        copy = Notification.objects.latest("id")
        assert (copy.rule, targets_of(copy)) == (notification.rule, targets_of(notification))


def test_a_copy_of_people_and_subscribers_together_asks_anew(sender, alice):
    both = make_direct_notification(
        alice.channel, people=["a"], subscriptions=[add_subscription(alice.channel)]
    )
    form = shown_in(duplicate(sender, both)) | {"channel": str(alice.channel.pk)}
    assert errors(sender, form)["subscription_ids"] == ["Write at least one id."]


VALUES = [TargetId(external_id="a", vars={"order": "A-17"}), TargetId(external_id="b")]


def test_a_copy_says_that_it_lacks_the_values_of_single_targets(sender, alice):
    bare = make_direct_notification(alice.channel, people=["a"])
    own = make_direct_notification(alice.channel, targets=VALUES, extras={"personalize": True})

    pages = [duplicate(sender, each).content.decode() for each in (own, bare)]

    assert ["Values of their own" in page for page in pages] == [True, False]


def test_values_of_single_targets_need_placeholders_after_an_edit_too(sender, alice):
    direct = make_direct_notification(
        alice.channel, targets=VALUES, scheduled_at=FUTURE, extras={"personalize": True}
    )
    after, said = edited(sender, direct, personalize="")
    assert "Some who get it have values of their own, which need this." in said
    assert after.content.personalize
    after, _ = edited(sender, direct, title="Another")
    assert (after.title, after.content.personalize) == ("Another", True)


def test_an_edit_changes_targets_and_conditions_and_not_their_kind(sender, alice):
    direct = make_direct_notification(alice.channel, people=["a", "b"], scheduled_at=FUTURE)
    ruled = make_notification(alice.channel, rule=PRO, scheduled_at=FUTURE)

    after, _ = edited(sender, direct, title="Another")
    assert (after.title, targets_of(after)) == ("Another", ["a", "b"])
    edited(sender, direct, ids="c\r\na")
    assert targets_of(direct) == ["c", "a"]
    after, _ = edited(sender, ruled, rule=json.dumps({"not": PRO}))
    assert after.rule == {"not": PRO}

    _, said = edited(sender, direct, audience="", ids="")
    assert "stays one" in said
    assert targets_of(direct) == ["c", "a"]
    assert form_of(sender, ruled)["audience"] == "rule"


def test_the_page_shows_what_became_of_each_target(sender, alice):
    device = add_subscription(alice.channel, person=make_person(alice.channel, "ada"))
    notification = make_direct_notification(
        alice.channel, people=["ada", "<nobody>"], subscriptions=[device]
    )
    assert sender.get(page_of(notification)).content.decode().count(">waiting<") == 3

    support.plan()

    page = sender.get(page_of(notification)).content.decode()
    assert page.count(">reached<") == 2
    assert "&lt;nobody&gt;" in page
    assert page.count(">unknown<") == 1
    assert str(device.pk) in page


def test_the_page_says_a_rule_in_words(sender, alice):
    notification = make_notification(alice.channel, rule=PRO)
    page = sender.get(page_of(notification)).content.decode()
    assert "All subscribers" not in page
    assert "plan" in page


def test_sending_again_to_who_did_not_click_writes_the_rule(sender, alice):
    segment = make_segment(alice.channel, {"tag": "a"})
    sent = make_sent_notification(
        alice.channel, title="Sale", segment_id=segment.pk, clicked_count=4
    )
    page = reverse("admin:notifications_app_notification_change", args=[sent.pk])
    again = reverse("admin:notification_resend", args=[sent.pk])

    assert "Send again to who did not click" in sender.get(page).content.decode()
    form = sender.post(again, follow=True).context["form"]

    assert (form.title, form.audience, form.segment_id) == ("Sale", "rule", "")
    rule = {"notification": str(sent.pk), "outcome": "not_clicked"}
    assert json.loads(form.rule) == rule
    viewer = signed_in(alice.members["viewer"])
    assert viewer.post(again).status_code == 403


@pytest.mark.parametrize(
    "fields",
    [
        {"delivered_count": 5, "bounced_count": 95, "clicked_count": 5},
        {"only_subscription_id": uuid7()},
        {"status": "pending", "started_at": None, "finished_at": None, "delivered_count": 0},
    ],
)
def test_nothing_is_sent_again_if_nobody_is_left(sender, alice, fields):
    sent = make_sent_notification(alice.channel, **fields)
    page = reverse("admin:notifications_app_notification_change", args=[sent.pk])

    assert "Send again" not in sender.get(page).content.decode()
