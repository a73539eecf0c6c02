"""Drafts: saved, listed, sent and deleted; their roles and bounds."""

from functools import partial

import pytest
from auditlog.models import LogEntry
from django.contrib.auth.models import User
from django.urls import reverse

from notifications_app.models import Draft, Notification
from notifications_app.sends import drafts
from notifications_app.sends.drafts import DraftGone
from subscriptions_app.segments.services import segment_create
from tests.admin.notifications.composing import (
    COMPOSE,
    DELETE,
    DRAFTS,
    SAVE,
    confirm,
    duplicate,
    key_of,
    review,
    written,
)
from tests.admin.support import signed_in
from tests.factories import add_crowd, make_channel, make_draft, make_sent_notification
from tests.pipeline.support import in_threads


def save(client, house, **fields):
    return client.post(SAVE, written(house) | fields)


def test_a_draft_holds_all_fields_as_they_were_typed(alice, sender):
    typed = {
        "url": "not yet an address",
        "when": "later",
        "local_time": "2027-01-01T09:00",
        "data_name": ["colour"],
        "data_value": ["green"],
        "ttl_number": "soon",
    }

    answer = save(sender, alice, **typed).json()

    draft = Draft.objects.get(pk=answer["draft"])
    assert (draft.owner, draft.changed_by) == (alice.members["sender"],) * 2
    form = sender.get(COMPOSE, {"draft": answer["draft"]}).context["form"]
    assert (form.url, form.local_time, form.ttl_number) == (
        typed["url"],
        "2027-01-01T09:00",
        "soon",
    )
    assert [(row.name, row.value) for row in form.data] == [("colour", "green")]


def test_a_change_must_name_the_version_that_was_seen(alice, sender):
    draft = save(sender, alice).json()
    changed = save(sender, alice, **draft, title="Autumn sale").json()

    stale = save(sender, alice, **draft, title="Winter sale")

    assert changed == draft | {"version": draft["version"] + 1}
    assert stale.status_code == 409
    assert Draft.objects.get().form["title"] == "Autumn sale"


def test_a_repeated_change_is_no_conflict(alice, sender):
    """The answer to the first one may have been lost."""
    draft = save(sender, alice).json()
    once, twice = (save(sender, alice, **draft, title="Autumn sale").json() for _ in range(2))
    assert once == twice


def test_a_form_that_is_shown_again_names_the_version_that_was_seen(alice, sender):
    draft = save(sender, alice).json()
    save(sender, alice, **draft, title="Autumn sale")
    stale = written(alice) | draft

    for fields in ({"step": "edit"}, {"step": "review", "body": ""}, {"step": "save"}):
        page = sender.post(COMPOSE, stale | fields).content.decode()
        assert 'name="version" value="1"' in page
        assert f'<a href="?draft={draft["draft"]}">Show the change</a>' in page
    assert Draft.objects.get().form["title"] == "Autumn sale"


def test_a_repeated_move_of_a_draft_with_a_segment_is_no_conflict(alice, sender):
    """The segment is of the earlier channel, so the move drops it."""
    other = make_channel("Another", account=alice.account)
    moved = save(sender, alice).json() | {"channel": str(other.pk), "segment_id": "of the first"}

    once, twice = (save(sender, alice, **moved) for _ in range(2))

    assert (once.status_code, once.json()) == (twice.status_code, twice.json())
    assert once.status_code == 200
    assert Draft.objects.get().form["segment_id"] == ""
    colleague = signed_in(alice.members["owner"])
    assert save(colleague, alice, **moved).status_code == 409


@pytest.mark.parametrize("version", ["", "x", "0", "-1", "99999999999999999999"])
def test_a_made_up_version_changes_nothing(alice, sender, version):
    draft = make_draft(alice.channel, alice.members["owner"])
    answer = save(sender, alice, draft=str(draft.pk), version=version)
    assert answer.status_code == 409
    assert Draft.objects.get().form == draft.form


def test_colleagues_share_drafts_and_the_list_shows_owner_and_last_change(alice, sender):
    draft = make_draft(alice.channel, alice.members["owner"], title="Ours")
    save(sender, alice, draft=str(draft.pk), version="1", title="Still ours")

    page = sender.get(DRAFTS).content.decode()

    assert "Still ours" in page
    assert alice.members["owner"].username in page
    draft.refresh_from_db()
    assert draft.changed_by == alice.members["sender"]
    assert sender.get(DRAFTS, {"q": "still OURS"}).context["cl"].result_count == 1
    assert sender.get(DRAFTS, {"q": "nothing"}).context["cl"].result_count == 0


def test_the_list_shows_a_drafts_internal_name_and_finds_it_by_that(alice, sender):
    make_draft(alice.channel, alice.members["owner"], title="Hi {{ first_name }}", name="Autumn")
    page = sender.get(reverse("admin:notifications_app_draft_changelist"), {"q": "autumn"})
    assert "Autumn</a>" in page.content.decode()
    assert "first_name" not in page.content.decode()


def test_sending_a_draft_deletes_it_and_a_second_confirmation_sends_nothing(alice, sender):
    add_crowd(alice.channel, 2)
    form = written(alice) | save(sender, alice).json()
    page = review(sender, form)
    assert f'name="draft" value="{form["draft"]}"' in page.content.decode()

    answers = [confirm(sender, form, key_of(page)) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [302, 302]
    assert not Draft.objects.exists()
    assert Notification.objects.count() == 1


def test_a_draft_that_two_users_review_is_sent_once(alice, sender):
    """Each review page has a key of its own, so the keys do not find the second confirmation."""
    colleague = signed_in(alice.members["owner"])
    form = written(alice) | save(sender, alice).json()
    keys = [key_of(review(each, form)) for each in (sender, colleague)]

    first, second = confirm(sender, form, keys[0]), confirm(colleague, form, keys[1])

    assert (first.status_code, second.status_code) == (302, 400)
    assert Notification.objects.count() == 1
    assert str(DraftGone.detail) in second.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_draft_that_two_users_send_at_once_is_sent_once(alice, sender):
    colleague = signed_in(alice.members["owner"])
    form = written(alice) | save(sender, alice).json()
    keys = [key_of(review(each, form)) for each in (sender, colleague)]

    answers = in_threads(
        partial(confirm, sender, form, keys[0]), partial(confirm, colleague, form, keys[1])
    )

    assert sorted(answer.status_code for answer in answers) == [302, 400]
    assert Notification.objects.count() == 1


def test_the_review_of_a_draft_that_was_sent_says_so_and_then_begins_a_new_one(alice, sender):
    form = written(alice) | save(sender, alice).json()
    Draft.objects.all().delete()

    back = sender.post(COMPOSE, form | {"step": "edit"})
    page = review(sender, form)
    again = sender.post(f"{COMPOSE}?draft={form['draft']}", written(alice) | {"step": "review"})

    assert (back.status_code, str(DraftGone.detail) in back.content.decode()) == (400, True)
    assert (page.status_code, str(DraftGone.detail) in page.content.decode()) == (400, True)
    assert 'name="draft" value=""' in page.content.decode()
    assert (again.status_code, key_of(again) != "") == (200, True)


def test_sending_keeps_a_change_that_the_sender_did_not_see(alice, sender):
    draft = save(sender, alice).json()
    page = review(sender, written(alice) | draft)
    save(sender, alice, **draft, title="A colleague's thought")

    answer = confirm(sender, written(alice) | draft, key_of(page))

    assert (answer.status_code, Notification.objects.get().title) == (302, "Spring sale")
    assert Draft.objects.get().form["title"] == "A colleague's thought"


def test_two_users_who_reviewed_a_version_send_it_once_even_if_it_was_saved_in_between(
    alice, sender
):
    colleague = signed_in(alice.members["owner"])
    draft = save(sender, alice).json()
    form = written(alice) | draft
    keys = [key_of(review(each, form)) for each in (sender, colleague)]
    saved = save(sender, alice, **draft, title="A second thought").json()

    first, second = confirm(sender, form, keys[0]), confirm(colleague, form, keys[1])
    assert (first.status_code, second.status_code) == (302, 400)
    assert str(DraftGone.detail) in second.content.decode()
    assert Notification.objects.get().title == "Spring sale"

    changed = written(alice, title="A second thought") | saved
    assert confirm(colleague, changed, key_of(review(colleague, changed))).status_code == 302
    assert Notification.objects.count() == 2
    assert not Draft.objects.exists()


def test_a_draft_stays_if_it_cannot_be_sent(alice, sender):
    form = written(alice, body="") | save(sender, alice).json()
    assert confirm(sender, form, "console 1").status_code == 400
    assert Draft.objects.exists()


def test_a_draft_that_was_sent_or_deleted_meanwhile_says_so(alice, sender):
    draft = save(sender, alice).json()
    Draft.objects.all().delete()
    answer = save(sender, alice, **draft, title="Too late")
    assert (answer.status_code, answer.json()["detail"]) == (404, DraftGone.detail)


def test_duplicating_makes_a_separate_draft(alice, sender):
    earlier = make_sent_notification(alice.channel, title="Spring sale")

    page = duplicate(sender, earlier)

    draft = Draft.objects.get()
    assert page.redirect_chain == [(f"{COMPOSE}?draft={draft.pk}", 302)]
    assert (draft.owner, draft.form["title"]) == (alice.members["sender"], "Spring sale")
    assert "This draft is a copy of “Spring sale”." in page.content.decode()


def test_deleting_a_draft_is_in_the_audit_log(alice, sender):
    draft = make_draft(alice.channel, alice.members["owner"], title="A bad idea")

    answer = sender.post(DELETE, {"draft": str(draft.pk), "version": "1"})

    assert (answer.status_code, answer.url) == (302, DRAFTS)
    assert not Draft.objects.exists()
    entry = LogEntry.objects.latest("id")
    assert (entry.object_repr, entry.actor) == ("A bad idea", alice.members["sender"])


def test_a_draft_that_somebody_else_has_changed_is_not_deleted_unseen(alice, sender):
    draft = save(sender, alice).json()
    save(signed_in(alice.members["owner"]), alice, **draft, title="Better")

    answer = sender.post(DELETE, draft, follow=True)

    assert answer.redirect_chain == [(f"{COMPOSE}?draft={draft['draft']}", 302)]
    assert "It was not deleted, because" in answer.content.decode()
    assert Draft.objects.get().form["title"] == "Better"


def test_a_button_saves_a_draft_without_javascript(alice, sender):
    answer = sender.post(COMPOSE, written(alice) | {"step": "save"})
    assert answer.url == f"{COMPOSE}?draft={Draft.objects.get().pk}"


def test_a_draft_of_a_deleted_segment_does_not_become_one_for_all_subscribers(alice, sender):
    rule = {"attribute": "plan", "operator": "eq", "value": "pro"}
    segment = segment_create(channel=alice.channel, name="Pro", rule=rule)
    draft = make_draft(alice.channel, alice.members["sender"], segment_id=str(segment.pk))
    option = f'<option value="{segment.pk}" selected>A segment that no longer exists</option>'
    segment.delete()

    assert option in sender.get(COMPOSE, {"draft": str(draft.pk)}).content.decode()


def test_a_draft_of_an_earlier_version_opens(alice, sender):
    draft = make_draft(alice.channel, alice.members["sender"], gone="x")
    form = sender.get(COMPOSE, {"draft": str(draft.pk)}).context["form"]
    assert (form.body, form.urgency) == ("Half", "normal")


# --- roles ----------------------------------------------------------------------------------------


def test_a_viewer_neither_reads_nor_writes_drafts(alice, viewer):
    draft = str(make_draft(alice.channel, alice.members["owner"]).pk)
    assert viewer.get(DRAFTS).status_code == 403
    assert viewer.get(COMPOSE, {"draft": draft}).status_code == 403
    assert save(viewer, alice).status_code == 403
    assert save(viewer, alice, draft=draft, version="1").status_code == 403
    assert viewer.post(DELETE, {"draft": draft}).status_code == 403
    assert Draft.objects.get().version == 1


def test_a_sender_of_another_account_is_still_a_viewer_here(alice, bob):
    both = alice.members["sender"]
    bob.account.memberships.create(user=both, role="viewer")
    client = signed_in(both)
    draft = str(make_draft(bob.channel, bob.members["owner"], title="Theirs").pk)

    assert "Theirs" not in client.get(DRAFTS).content.decode()
    assert client.get(COMPOSE, {"draft": draft}).status_code == 404
    assert save(client, bob).status_code == 403
    assert save(client, alice, draft=draft, version="1").status_code == 404
    assert client.post(DELETE, {"draft": draft}).status_code == 404
    assert Draft.objects.get().channel == bob.channel


# --- bounds --------------------------------------------------------------------------------------


def test_a_channel_has_a_bounded_number_of_drafts(alice, bob, sender, monkeypatch):
    monkeypatch.setattr(drafts, "MOST_DRAFTS", 2)
    for _ in range(2):
        make_draft(bob.channel, bob.members["owner"])
        assert save(sender, alice).status_code == 200

    refused = save(sender, alice)

    assert refused.status_code == 409
    assert refused.json()["detail"] == "The channel has 2 drafts. Delete one first."
    earlier = make_sent_notification(alice.channel)
    assert "Delete one first." in duplicate(sender, earlier).content.decode()
    assert Draft.objects.filter(channel=alice.channel).count() == 2


def test_a_draft_moves_only_to_a_channel_that_has_a_place(alice, sender, monkeypatch):
    monkeypatch.setattr(drafts, "MOST_DRAFTS", 1)
    other = make_channel("Another", account=alice.account)
    there = make_draft(other, alice.members["owner"])
    draft = save(sender, alice).json()

    refused = save(sender, alice, **draft, channel=str(other.pk))

    assert refused.status_code == 409
    assert refused.json()["detail"] == "The channel has 1 drafts. Delete one first."
    assert Draft.objects.filter(channel=alice.channel).count() == 1
    there.delete()
    assert save(sender, alice, **draft, channel=str(other.pk)).status_code == 200


def test_a_draft_has_a_bounded_length(alice, sender):
    draft = save(sender, alice).json()
    long = "\N{PILE OF POO}" * 12_400
    for fields in ({}, draft):
        answer = save(sender, alice, body=long, **fields)
        assert answer.status_code == 400
        assert "A draft may have 49,152 bytes." in answer.json()["detail"]
    assert Draft.objects.get().version == 1


@pytest.mark.parametrize("field", ["title", "data_name", "local_time", "web.tag"])
def test_text_that_the_database_cannot_hold_is_refused(alice, sender, field):
    answer = save(sender, alice, **{field: ["a\x00b"], "data_value": ["x"]})
    assert (answer.status_code, Draft.objects.count()) == (400, 0)


def test_a_user_with_drafts_may_be_deactivated(alice, sender):
    save(sender, alice)
    User.objects.filter(pk=alice.members["sender"].pk).update(is_active=False)
    assert signed_in(alice.members["owner"]).get(DRAFTS).status_code == 200


def test_a_send_whose_time_is_over_is_not_called_scheduled(alice, sender):
    form = written(alice, when="later", local_time="2020-01-01T09:00")
    page = sender.post(
        COMPOSE, form | {"step": "send", "key": "console 1", "seen": "late"}, follow=True
    )
    text = page.content.decode()
    assert ("It is on its way." in text, "It is scheduled." in text) == (True, False)
