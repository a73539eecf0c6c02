"""Newsfeeds over the API: what they take, what they show, and their limits."""

import json

import pytest
from auditlog.models import LogEntry
from django.db.models.functions import Now

from notifications_app.api.newsfeed_serializers import NewsfeedEntry
from notifications_app.content.entries import ENTRY_NAMES, EXAMPLE
from notifications_app.models import Newsfeed
from notifications_app.sends import newsfeeds
from tests.api.support import NOWHERE, code, errors
from tests.api.templates import created as template_created
from tests.factories import make_segment
from tests.pipeline.newsfeeds import SEND, path
from tests.segments import attribute

URL = "https://news.example.com/feed/"
GIVEN = {"name": "News", "url": URL, "notification": SEND}


def created(owner, body=GIVEN):
    response = owner.call("POST", path(owner), body)
    assert response.status_code == 201, response.content
    return response.json()


def put(owner, made, **changes):
    return owner.call("PUT", path(owner, made["newsfeed_id"]), GIVEN | changes)


def row():
    return Newsfeed.objects.get()


def test_a_newsfeed_reads_back_as_it_was_created(alice):
    made = created(alice)
    assert made["notification"] == SEND | {"target_platforms": ["web"]}
    assert (made["url"], made["enabled"], made["every_minutes"]) == (URL, True, 15)
    assert (made["daily_limit"], made["sent_today"], made["entries"]) == (5, 0, 0)
    assert (made["last_error"], made["checked_at"], made["disabled_code"]) == (None, None, None)
    assert alice.call("GET", path(alice, made["newsfeed_id"])).json() == made
    assert alice.call("GET", path(alice)).json() == [made]


def test_put_replaces_it_and_delete_deletes_it(alice):
    made = created(alice)
    replaced = put(alice, made, name="Other", daily_limit=1, every_minutes=60).json()
    assert (replaced["name"], replaced["daily_limit"], replaced["every_minutes"]) == (
        "Other",
        1,
        60,
    )
    assert alice.call("DELETE", path(alice, made["newsfeed_id"])).status_code == 204
    assert alice.call("GET", path(alice, made["newsfeed_id"])).status_code == 404
    assert alice.call("GET", path(alice, NOWHERE)).status_code == 404


@pytest.mark.parametrize(
    ("changes", "at"),
    [
        ({"url": "http://news.example.com/feed"}, "url"),
        ({"url": "https://127.0.0.1/feed"}, "url"),
        ({"url": "https://localhost/feed"}, "url"),
        ({"url": "https://user:password@news.example.com/"}, "url"),
        ({"url": "https://news.example.com:8443/"}, "url"),
        # The ASCII form of the host has more characters.
        ({"url": "https://bücher.de/" + "x" * 1980}, "url"),
        ({"every_minutes": 4}, "every_minutes"),
        ({"every_minutes": 1441}, "every_minutes"),
        ({"daily_limit": 0}, "daily_limit"),
        ({"daily_limit": 51}, "daily_limit"),
        ({"notification": {"title": "x"}}, "notification.body"),
        ({"notification": SEND | {"scheduled_at": None}}, "notification.scheduled_at"),
        ({"notification": {"body": "{{ entry.headline }}"}}, "notification.body"),
        ({"notification": {"body": "{{ entry }}"}}, "notification.body"),
        ({"notification": {"body": "{{ entry.title | shout }}"}}, "notification.body"),
        ({"notification": SEND | {"url": "{{ entry.title }}"}}, "notification.url"),
        ({"notification": SEND | {"url": "{{ entry.link }}?x"}}, "notification.url"),
        ({"notification": SEND | {"url": "{{ entry.link }}{{ x }}"}}, "notification.url"),
        (
            {"notification": SEND | {"title": "{{ oops", "personalize": True}},
            "notification.title",
        ),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(alice, changes, at):
    response = alice.call("POST", path(alice), GIVEN | changes)
    assert response.status_code == 400
    assert [each[0] for each in errors(response)] == [at]


def test_a_link_can_be_the_entrys_or_contain_its_values(alice):
    send = {
        **SEND,
        "url": "https://shop.example/news/{{ entry.title }}",
        "image": "{{ entry.image | default: 'https://shop.example/a.png' }}",
        "translations": {"de": {"body": "Neu: {{ entry.title }}"}},
        "data": {"link.of": "{{ entry.link }}"},
    }
    made = created(alice, GIVEN | {"notification": send})
    Newsfeed.objects.update(latest=EXAMPLE | {"title": "a/b c", "image": ""})
    shown = alice.call("GET", path(alice, made["newsfeed_id"], "preview")).json()
    assert shown["entry"]["title"] == "a/b c"
    assert shown["notification"] == {
        "title": "a/b c",
        "body": "Summary",
        "url": "https://shop.example/news/a%2Fb%20c",
        "image": "https://shop.example/a.png",
        "translations": {"de": {"body": "Neu: a/b c"}},
        "data": {"link.of": "https://example.com/news/1"},
    }


def test_a_preview_before_the_first_check_is_empty(alice):
    made = created(alice)
    shown = alice.call("GET", path(alice, made["newsfeed_id"], "preview")).json()
    assert shown == {"checked_at": None, "last_error": None, "entry": None, "notification": None}


def test_the_fields_of_an_entry_are_its_placeholders():
    assert tuple(NewsfeedEntry().fields) == ENTRY_NAMES == tuple(EXAMPLE)


def test_a_plain_send_has_no_values_of_an_entry(alice):
    response = alice.send({"body": "{{ entry.title }}", "personalize": True})
    assert (response.status_code, errors(response)[0][1]) == (400, "not_a_template")
    assert alice.send({"body": "{{ entry.title }}"}).status_code == 202


def test_a_template_can_have_the_placeholders(alice):
    content = {"title": "{{ entry.title }}", "body": "{{ entry.summary }}"}
    template = template_created(alice, {"name": "News", "content": content})
    made = created(alice, GIVEN | {"notification": {"template_id": template["template_id"]}})
    assert made["notification"]["title"] == "{{ entry.title }}"


def test_another_address_or_enabling_begins_anew(alice):
    made = created(alice)

    def seen():
        Newsfeed.objects.update(known=[1], etag="x", checked_at=Now(), found=[{}], latest={})

    seen()
    put(alice, made, name="Other")
    assert (row().known, row().etag, row().found) == ([1], "x", [{}])
    put(alice, made, url="https://news.example.com/other")
    assert (row().known, row().etag, row().checked_at, row().found) == (None, "", None, None)
    seen()
    put(alice, made, url="https://news.example.com/other", enabled=False)
    assert (row().known, row().found) == ([1], None)
    put(alice, made, url="https://news.example.com/other", enabled=True)
    assert row().known is None


def test_the_owners_spelling_of_the_same_address_forgets_nothing(alice):
    spelled = "HTTPS://News.Example.com:443/%66eed/"
    made = created(alice, GIVEN | {"url": spelled})
    assert made["url"] == URL
    Newsfeed.objects.update(known=[1], found=[{}])
    assert put(alice, made, url=spelled).json()["url"] == URL
    assert (row().known, row().found) == ([1], [{}])


def test_a_change_drops_the_result_of_a_check_that_runs(alice):
    made, before = created(alice), row().lease_number
    put(alice, made)
    assert row().lease_number == before + 1


def test_a_check_can_be_asked_for_once_a_minute(alice):
    made = created(alice)
    Newsfeed.objects.update(checked_at=Now(), next_at="2999-01-01T00:00:00Z")
    asked = alice.call("POST", path(alice, made["newsfeed_id"], "check"))
    assert asked.status_code == 202
    assert 0 < (row().next_at - row().checked_at).total_seconds() <= 60
    Newsfeed.objects.update(checked_at="2020-01-01T00:00:00Z", next_at="2999-01-01T00:00:00Z")
    alice.call("POST", path(alice, made["newsfeed_id"], "check"))
    assert Newsfeed.objects.due().exists()


def test_a_channel_has_a_bounded_number_of_newsfeeds(alice, bob, monkeypatch):
    monkeypatch.setattr(newsfeeds, "MOST_NEWSFEEDS", 2)
    created(alice)
    created(alice)
    response = alice.call("POST", path(alice), GIVEN)
    assert code(response, 409) == "too_many_newsfeeds"
    created(bob)


def test_a_segment_of_an_enabled_newsfeed_cannot_be_deleted(alice):
    segment = make_segment(alice.channel, attribute("plan", "eq", "pro"))
    send = SEND | {"segment_id": str(segment.pk)}
    made = created(alice, GIVEN | {"notification": send})
    where = f"/channel/{alice.channel.id}/segments/{segment.pk}"
    response = alice.call("DELETE", where)
    assert code(response, 409) == "segment_in_use"
    put(alice, made, notification=send, enabled=False)
    assert alice.call("DELETE", where).status_code == 204


def test_changes_are_audited_without_the_address(alice):
    secret = "https://news.example.com/feed?token=secret"
    made = created(alice, GIVEN | {"url": secret})
    put(alice, made, notification=SEND | {"data": {"a": "secret"}}, daily_limit=2)
    alice.call("DELETE", path(alice, made["newsfeed_id"]))
    entries = LogEntry.objects.filter(object_pk=made["newsfeed_id"])
    assert entries.count() == 3
    written = json.dumps([[each.changes, each.additional_data] for each in entries], default=str)
    assert "daily_limit" in written
    assert "secret" not in written


def test_keys_without_the_scope_and_other_accounts_are_refused(alice, bob):
    made = created(alice)
    assert bob.call("GET", path(alice, made["newsfeed_id"])).status_code in (403, 404)
    assert bob.call("GET", path(bob, made["newsfeed_id"])).status_code == 404
    assert bob.call("PUT", path(bob, made["newsfeed_id"]), GIVEN).status_code == 404
    assert bob.call("DELETE", path(bob, made["newsfeed_id"])).status_code == 404
    assert bob.call("POST", path(bob, made["newsfeed_id"], "check")).status_code == 404
    assert Newsfeed.objects.count() == 1
