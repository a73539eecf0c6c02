"""Segments in the console: built, counted, edited, and deleted if nothing needs them."""

import json
import re

import pytest
from django.urls import reverse

from pushsvc.common.console.figures import NOTHING
from subscriptions_app.audiences import sizes
from subscriptions_app.models import Segment, Subscription
from subscriptions_app.segments.services import segment_create
from tests.admin.console.test_scope import text_of
from tests.admin.support import deleted_after_its_lock, signed_in
from tests.factories import add_crowd, add_tags, make_sent_notification

PRO = {"all": [{"attribute": "plan", "operator": "eq", "value": "pro"}]}
OVER_30 = {"all": [{"attribute": "age", "operator": "gt", "value": 30}]}
KINDS = "all, any, not, attribute, field, tag, notification"
CLICKED_LATELY = {"field": "last_clicked_at", "operator": "gte", "value": {"days_ago": 30}}
BAD = {"all": [{"attribute": "plan", "operator": "like", "value": "pro"}]}


def new(house):
    return reverse("admin:segment_new", args=[house.channel.pk])


def page_of(segment, name="subscriptions_app_segment_change"):
    return reverse(f"admin:{name}", args=[segment.pk])


def preview(client, house, rule):
    address = reverse("admin:segment_preview", args=[house.channel.pk])
    return client.post(address, {"rule": json.dumps(rule)})


def opened(client, segment):
    """The version that the segment's form has."""
    page = client.get(page_of(segment))
    version = page.context["version"]
    assert f'name="version" value="{version}"' in page.content.decode()
    return {"version": version}


@pytest.fixture
def pro(alice):
    return segment_create(channel=alice.channel, name="Pro", rule=PRO)


def test_a_manager_builds_a_segment_and_changes_it(alice):
    client = signed_in(alice.members["manager"])

    answer = client.post(new(alice), {"name": "Pro", "rule": json.dumps(PRO)})
    made = Segment.objects.get()
    client.post(
        page_of(made), opened(client, made) | {"name": "Older", "rule": json.dumps(OVER_30)}
    )

    assert answer.url == page_of(made)
    made.refresh_from_db()
    assert (made.channel, made.name, made.rule) == (alice.channel, "Older", OVER_30)


def test_a_change_that_somebody_else_made_meanwhile_is_told_and_then_replaced(alice, pro):
    one, other = (signed_in(alice.members[role]) for role in ("manager", "editor"))
    seen = opened(one, pro)
    theirs = opened(other, pro) | {"name": "Theirs", "rule": json.dumps(OVER_30)}
    assert other.post(page_of(pro), theirs).status_code == 302

    mine = {"name": "Mine", "rule": json.dumps(PRO)}
    refused = one.post(page_of(pro), mine | seen)

    assert refused.status_code == 400
    assert "It was changed by alice-editor after you opened this page." in refused.content.decode()
    assert (refused.context["name"], refused.context["known"]["rule"]) == ("Mine", PRO)
    pro.refresh_from_db()
    assert (pro.name, pro.rule) == ("Theirs", OVER_30)
    again = one.post(page_of(pro), mine | {"version": refused.context["version"]})
    assert again.status_code == 302
    pro.refresh_from_db()
    assert (pro.name, pro.rule) == ("Mine", PRO)


def test_a_segment_that_is_deleted_while_its_form_is_refused_is_not_found(alice, pro):
    client = signed_in(alice.members["manager"])
    form = {"name": "Mine", "rule": json.dumps(PRO), "version": "another"}
    with deleted_after_its_lock(pro):
        assert client.post(page_of(pro), form).status_code == 404


@pytest.mark.parametrize("rule", [json.dumps(BAD), "", "no json", "[" * 5_000])
def test_an_invalid_rule_is_refused_and_the_other_input_is_kept(alice, rule):
    client = signed_in(alice.members["manager"])

    page = client.post(new(alice), {"name": "My segment", "rule": rule})

    assert page.status_code == 400
    assert "My segment" in page.content.decode()
    assert not Segment.objects.exists()


def test_a_name_that_is_taken_is_refused(alice, pro):
    client = signed_in(alice.members["manager"])

    page = client.post(new(alice), {"name": "Pro", "rule": json.dumps(OVER_30)})

    assert page.status_code == 400
    assert "Not saved" in page.content.decode()
    assert Segment.objects.count() == 1


def test_the_preview_counts_members_and_shows_ten(alice):
    add_crowd(alice.channel, 60)

    page = preview(signed_in(alice.members["viewer"]), alice, PRO)

    assert page.context["total"] == 20
    assert not page.context["is_estimated"]
    assert len(page.context["samples"]) == 10
    assert {one.attributes["plan"] for one in page.context["samples"]} == {"pro"}


def test_the_preview_of_an_unfinished_rule_says_what_is_missing(alice):
    page = preview(signed_in(alice.members["viewer"]), alice, BAD)

    assert page.status_code == 200
    assert "Incomplete" in page.content.decode()


def test_every_error_is_worded_for_the_form_and_shown_at_its_place(alice):
    rule = {
        "all": [
            {"attribute": "", "operator": "eq", "value": "x"},
            {"any": [{"attribute": "age", "operator": "in", "value": [5, {"number": "x"}]}]},
            {"field": "platform", "operator": "in", "value": []},
            {"not": {"any": []}},
            {"field": "created_at", "operator": "gte", "value": {"days_ago": 0}},
            {"field": "created_at", "operator": "gte", "value": ""},
            {"tag": "a b"},
            {"notification": "x", "outcome": "clicked"},
            {"attribute": "a", "operator": "eq", "value": 1, "all": 2},
        ]
    }

    errors = preview(signed_in(alice.members["viewer"]), alice, rule).context["errors"]

    assert [(error["path"], error["words"]) for error in errors] == [
        ("rule.all.0.attribute", "Name the attribute."),
        ("rule.all.1.any.0.value.1", "Enter a number."),
        ("rule.all.2.value", "Choose at least one platform."),
        ("rule.all.3.not.any", "Add a condition to this group."),
        ("rule.all.4.value.days_ago", "Enter a whole number of days, from 1 to 36500."),
        ("rule.all.5.value", "Enter a date and a time."),
        ("rule.all.6.tag", "Enter a tag: letters, digits and _ . : - without blanks."),
        ("rule.all.7.notification", "Enter the notification's id, as its page shows it."),
        ("rule.all.8", f"Must have exactly one of: {KINDS}."),
    ]


def test_a_segment_that_a_notification_needs_is_not_deleted(alice, pro):
    client = signed_in(alice.members["manager"])
    waiting = make_sent_notification(
        alice.channel, segment_id=pro.pk, status="pending", delivered_count=0, bounced_count=0
    )

    page = client.post(page_of(pro, "segment_remove"), follow=True)

    assert Segment.objects.exists()
    assert str(waiting.pk) in page.content.decode()

    waiting.status = "cancelled"
    waiting.save()
    client.post(page_of(pro, "segment_remove"))
    assert not Segment.objects.exists()


@pytest.mark.parametrize("role", ["viewer", "sender"])
def test_a_member_without_the_editor_role_reads_segments_and_changes_none(alice, pro, role):
    client = signed_in(alice.members[role])

    assert "Pro" in client.get(page_of(pro)).content.decode()
    assert client.get(new(alice)).status_code == 403
    assert client.post(new(alice), {"name": "x", "rule": json.dumps(PRO)}).status_code == 403
    assert client.post(page_of(pro), {"name": "x", "rule": json.dumps(PRO)}).status_code == 403
    assert client.post(page_of(pro, "segment_remove")).status_code == 403
    assert Segment.objects.get().name == "Pro"


def test_an_editor_creates_and_edits_segments_but_cannot_delete_them(alice, pro):
    client = signed_in(alice.members["editor"])

    client.post(new(alice), {"name": "Mine", "rule": json.dumps(PRO)})
    paid = {"name": "Paid", "rule": json.dumps(PRO)}
    client.post(page_of(pro), opened(client, pro) | paid)
    assert set(Segment.objects.values_list("name", flat=True)) == {"Mine", "Paid"}

    page = client.get(page_of(pro)).content.decode()
    assert ">Save<" in page
    assert ">Delete<" not in page
    assert client.post(page_of(pro, "segment_remove")).status_code == 403
    assert Segment.objects.count() == 2


@pytest.mark.parametrize("rows", [3, 60])
def test_the_number_of_queries_does_not_grow_with_the_segments(
    alice, django_assert_max_num_queries, rows
):
    add_crowd(alice.channel, 300)
    for number in range(rows):
        segment = segment_create(channel=alice.channel, name=f"Segment {number}", rule=PRO)
    client = signed_in(alice.members["manager"])

    for address in (reverse("admin:subscriptions_app_segment_changelist"), page_of(segment)):
        with django_assert_max_num_queries(25):
            assert client.get(address).status_code == 200
    with django_assert_max_num_queries(25):
        preview(client, alice, PRO)


def test_an_earlier_notification_of_another_channel_is_refused_before_and_when_saving(alice, bob):
    theirs = make_sent_notification(bob.channel)
    rule = {"all": [{"notification": str(theirs.pk), "outcome": "clicked"}]}
    client = signed_in(alice.members["manager"])

    (error,) = preview(client, alice, rule).context["errors"]
    answer = client.post(new(alice), {"name": "Again", "rule": json.dumps(rule)})

    assert error == {
        "path": "rule",
        "words": f"The channel has no notification {theirs.pk}.",
    }
    assert answer.status_code == 400
    assert not Segment.objects.exists()


@pytest.mark.parametrize(
    ("start", "rule"),
    [
        ("never", {"field": "last_clicked_at", "operator": "exists", "value": False}),
        ("idle", {"not": {**CLICKED_LATELY}}),
        ("clicked", CLICKED_LATELY),
        ("unknown", None),
    ],
)
def test_a_new_segment_begins_with_a_usual_rule(alice, start, rule):
    client = signed_in(alice.members["editor"])

    page = client.get(new(alice), {"start": start})

    assert page.context["known"]["rule"] == rule
    assert "?start=never" in page.content.decode()
    if rule:
        answer = client.post(new(alice), {"name": "Usual", "rule": json.dumps(rule)})
        assert answer.status_code == 302
        assert Segment.objects.get().rule == rule


def test_a_segment_leads_to_a_notification_for_it(alice, zebra, pro):
    sender = signed_in(alice.members["sender"])
    address = f"{reverse('admin:notification_compose')}?channel={alice.channel.pk}&segment="

    assert f"{address}{pro.pk}".replace("&", "&amp;") in sender.get(page_of(pro)).content.decode()
    assert sender.get(f"{address}{pro.pk}").context["form"].segment_id == str(pro.pk)
    theirs = zebra.rows["segment"].pk
    for nothing in ("", "x", theirs):
        assert sender.get(f"{address}{nothing}").context["form"].segment_id == ""
    viewer = signed_in(alice.members["viewer"])
    assert "Write to this segment" not in viewer.get(page_of(pro)).content.decode()


def sizes_in(client, *segments):
    """The texts by the names of the segments."""
    page = client.get(reverse("admin:segment_sizes"), {"id": [each.pk for each in segments]})
    assert page.status_code == 200
    found = re.findall(r'<span id="size-([^"]+)" hx-swap-oob="true">([^<]*)</span>', text_of(page))
    names = {str(each.pk): each.name for each in segments}
    return {names[pk]: text for pk, text in found}


def test_the_list_loads_the_sizes_of_its_segments(alice, pro, django_assert_max_num_queries):
    add_crowd(alice.channel, 60)
    add_tags(Subscription.objects.filter(channel=alice.channel)[:7], "team-7")
    rules = {
        "Tagged": {"tag": "team-7"},
        "Nobody": {"tag": "team-8"},
        "Not pro": {"not": PRO},
        "Three plans": {
            "all": [
                {"attribute": "plan", "operator": "in", "value": ["pro", "x"]},
                {"attribute": "plan", "operator": "ne", "value": "y"},
                {"attribute": "plan", "operator": "ne", "value": "z"},
            ]
        },
    }
    made = [
        segment_create(channel=alice.channel, name=name, rule=rule) for name, rule in rules.items()
    ]
    client = signed_in(alice.members["viewer"])
    page = text_of(client.get(reverse("admin:subscriptions_app_segment_changelist")))

    with django_assert_max_num_queries(25):
        found = sizes_in(client, pro, *made)

    assert found == {
        "Pro": "20", "Tagged": "7", "Nobody": "0", "Not pro": "40", "Three plans": "20",
    }  # fmt: skip
    for each in (pro, *made):
        assert f'<span id="size-{each.pk}">…</span>' in page
        assert f"id={each.pk}" in page


def test_a_large_channels_sizes_are_estimated_by_one_sample(alice, pro, monkeypatch):
    add_crowd(alice.channel, 120)
    monkeypatch.setattr(sizes, "SAMPLE_ROWS", 10)
    everybody = segment_create(channel=alice.channel, name="All", rule={"not": {"tag": "team-8"}})
    nobody = segment_create(channel=alice.channel, name="Nobody", rule={"tag": "team-8"})

    found = sizes_in(signed_in(alice.members["viewer"]), everybody, nobody)

    assert found == {"All": "about 120", "Nobody": "few or none"}


def test_costly_rules_are_not_counted_in_the_list(alice, pro):
    add_crowd(alice.channel, 3)
    costly = {"all": [{"tag": f"t{n}"} for n in range(50)]}
    made = [segment_create(channel=alice.channel, name=f"{n}", rule=costly) for n in range(3)]
    found = sizes_in(signed_in(alice.members["viewer"]), pro, *made)
    assert sorted(found.values()) == ["0", "0", NOTHING, NOTHING]


def test_sizes_of_another_accounts_segments_are_not_shown(alice, bob, pro):
    add_crowd(alice.channel, 3)
    theirs = signed_in(bob.members["owner"])
    assert sizes_in(theirs, pro) == {}
    assert theirs.get(reverse("admin:segment_sizes"), {"id": "x"}).status_code == 404
