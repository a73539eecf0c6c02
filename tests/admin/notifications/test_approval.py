"""Approval: a writer asks, another person decides. What is approved is what is sent."""

from datetime import timedelta
from functools import partial

import pytest
from auditlog.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from channels_app.models import Mail, Membership
from channels_app.sign_in import mailing, mails
from notifications_app.models import Draft, Notification
from notifications_app.sends import approvals
from subscriptions_app.segments.services import segment_create, segment_update
from tests.admin.notifications.composing import (
    COMPOSE,
    DRAFTS,
    SAVE,
    confirm,
    key_of,
    review,
    written,
)
from tests.admin.sign_in import mail_server
from tests.admin.sign_in.mail_server import PUBLIC, running_mail_server
from tests.admin.support import signed_in
from tests.factories import add_crowd, make_draft
from tests.pipeline.support import in_threads

INDEX = reverse("admin:index")
IN_BERLIN = "%Y-%m-%dT%H:%M"


@pytest.fixture
def writer(alice):
    return signed_in(alice.members["writer"])


@pytest.fixture
def owner(alice):
    return signed_in(alice.members["owner"])


@pytest.fixture(scope="module")
def _server(tmp_path_factory):
    with running_mail_server(tmp_path_factory.mktemp("mail")) as server:
        yield server


@pytest.fixture
def server(_server, settings, alice):
    """A mail server; every member has an address."""
    for user in alice.members.values():
        user.email = f"{user.username}@example.com"
        user.save()
    _server.mails.clear()
    mail_server.use(settings, _server)
    return _server


def ask(client, house, note="", **fields):
    """Asks for approval of the form, and returns the draft."""
    answer = client.post(COMPOSE, written(house, **fields) | {"step": "ask", "note": note})
    assert answer.status_code == 302, answer.content.decode()
    return Draft.objects.latest("id")


def page_of(draft):
    return reverse("admin:draft_approval", args=[draft.channel_id, draft.pk])


def decide(client, draft, do, page=None, **fields):
    """Posts what the page shows."""
    page = page or client.get(page_of(draft))
    shown = {"key": key_of(page), "seen": page.context["seen"], "version": draft.version}
    return client.post(page_of(draft), shown | {"do": do} | fields, follow=True)


def notes():
    return [each.additional_data["note"] for each in LogEntry.objects.order_by("id")]


def test_another_person_sends_what_a_writer_asked_for(alice, writer, sender):
    add_crowd(alice.channel, 2)
    draft = ask(writer, alice, note="Before noon, please.")
    assert not Notification.objects.exists()
    page = sender.get(page_of(draft))
    assert "Before noon, please." in page.content.decode()
    assert "Approve and send to 2" in page.content.decode()

    answer = decide(sender, draft, "approve", page)

    sent = Notification.objects.get()
    assert (sent.title, sent.sent_by) == ("Spring sale", "alice-sender")
    assert not Draft.objects.exists()
    assert "It is approved" in answer.content.decode()
    assert "Approval was asked for." in notes()
    words = f"Approved, and sent as notification {sent.pk}. alice-writer had asked."
    assert words in notes()


def test_a_note_stays_while_the_writer_corrects_the_form(alice, writer):
    fields = written(alice) | {"note": "Before noon, please."}

    refused = writer.post(COMPOSE, fields | {"step": "ask", "title": "x" * 101})
    reviewed = writer.post(COMPOSE, fields | {"step": "review"})

    assert refused.status_code == 400
    assert 'name="note" value="Before noon, please."' in refused.content.decode()
    assert ">Before noon, please.</textarea>" in reviewed.content.decode()


@pytest.mark.parametrize("step", ["send", "ask"])
def test_a_writer_sends_nothing(alice, writer, step):
    draft = ask(writer, alice)

    page = review(writer, written(alice))
    assert 'value="send"' not in page.content.decode()
    assert confirm(writer, written(alice), "console x").status_code == 403
    named = written(alice) | {"draft": str(draft.pk), "version": "1", "step": step, "key": "k"}
    assert writer.post(COMPOSE, named).status_code == (403 if step == "send" else 302)
    assert writer.post(page_of(draft), {"do": "approve", "version": 1}).status_code == 403
    assert writer.post(page_of(draft), {"do": "return", "version": 1}).status_code == 403
    assert not Notification.objects.exists()
    assert Draft.objects.get().is_waiting


def test_nobody_approves_or_returns_an_own_request(alice, sender):
    draft = ask(sender, alice)

    page = sender.get(page_of(draft))
    assert 'value="approve"' not in page.content.decode()
    for do in ("approve", "return"):
        answer = decide(sender, draft, do, page, note="-")
        assert "another person has to decide" in answer.content.decode()
    assert not Notification.objects.exists()
    assert Draft.objects.get().is_waiting


def test_a_writer_who_becomes_a_sender_still_does_not_approve_the_own_request(alice, writer):
    draft = ask(writer, alice)
    Membership.objects.filter(user=alice.members["writer"]).update(role="owner")

    answer = decide(writer, draft, "approve")
    assert "another person has to decide" in answer.content.decode()
    form = written(alice) | {"draft": str(draft.pk), "version": "1"}
    around = confirm(writer, form, key_of(review(writer, form)))
    assert "It waits for approval." in around.content.decode()
    assert not Notification.objects.exists()


def test_a_change_withdraws_the_request_and_the_old_page_approves_nothing(alice, writer, sender):
    draft = ask(writer, alice)
    page = sender.get(page_of(draft))
    saved = writer.post(
        SAVE, written(alice, title="Twice") | {"draft": str(draft.pk), "version": 1}
    )

    answer = decide(sender, draft, "approve", page)

    assert saved.json()["version"] == 2
    assert "It no longer waits for approval" in answer.content.decode()
    assert not Draft.objects.get().is_waiting
    assert not Notification.objects.exists()
    assert "The request for approval was withdrawn." in notes()


def test_a_version_that_was_asked_for_later_is_not_approved_unseen(alice, writer, sender):
    draft = ask(writer, alice)
    page = sender.get(page_of(draft))
    ask(writer, alice, title="Twice", draft=str(draft.pk), version="1")

    answer = decide(sender, draft, "approve", page)

    assert "It no longer waits for approval" in answer.content.decode()
    assert Draft.objects.get().is_waiting
    assert not Notification.objects.exists()


def test_what_the_approving_browser_posts_besides_is_not_sent(alice, writer, sender):
    add_crowd(alice.channel, 1)
    decide(sender, ask(writer, alice), "approve", title="Mine", body="Mine")
    assert (Notification.objects.get().title, Notification.objects.get().body) == (
        "Spring sale",
        "Twenty per cent off.",
    )


def test_saving_the_same_text_keeps_the_request(alice, writer):
    draft = ask(writer, alice)
    writer.post(SAVE, written(alice) | {"draft": str(draft.pk), "version": 1})
    assert Draft.objects.get().is_waiting


def test_an_approval_that_is_confirmed_twice_sends_one_notification(alice, writer, sender):
    draft = ask(writer, alice)
    page = sender.get(page_of(draft))

    answers = [decide(sender, draft, "approve", page) for _ in range(2)]

    sent = Notification.objects.get()
    own = reverse("admin:notifications_app_notification_change", args=[sent.pk])
    assert [each.redirect_chain[-1] for each in answers] == [(own, 302)] * 2


@pytest.mark.django_db(transaction=True)
def test_two_people_who_approve_at_once_send_it_once(alice, writer, sender, owner):
    draft = ask(writer, alice)
    pages = [each.get(page_of(draft)) for each in (sender, owner)]

    in_threads(
        partial(decide, sender, draft, "approve", pages[0]),
        partial(decide, owner, draft, "approve", pages[1]),
    )

    assert Notification.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_change_and_an_approval_at_once_never_send_what_was_not_asked_for(alice, writer, sender):
    draft = ask(writer, alice)
    page = sender.get(page_of(draft))
    changed = written(alice, title="Twice") | {"draft": str(draft.pk), "version": 1}

    in_threads(partial(decide, sender, draft, "approve", page), partial(writer.post, SAVE, changed))

    assert [each.title for each in Notification.objects.all()] in ([], ["Spring sale"])
    assert Notification.objects.exists() != Draft.objects.exists()


def test_a_segment_that_changed_meanwhile_is_reviewed_again(alice, writer, sender):
    rule = {"attribute": "plan", "operator": "eq", "value": "pro"}
    segment = segment_create(channel=alice.channel, name="Pro", rule=rule)
    draft = ask(writer, alice, segment_id=str(segment.pk))
    page = sender.get(page_of(draft))
    own = {"channel_id": alice.channel.pk, "segment_id": segment.pk, "name": "Pro"}
    segment_update(**own, rule=rule | {"value": "basic"})

    answer = decide(sender, draft, "approve", page)

    assert "Nothing was sent yet" in answer.content.decode()
    assert not Notification.objects.exists()
    decide(sender, draft, "approve")
    assert Notification.objects.get().segment_id == segment.pk


def test_a_time_that_passed_while_it_waited_is_shown_and_reviewed_again(alice, writer, sender):
    at = timezone.now() + timedelta(hours=1)
    later = {"when": "later", "time_zone": "UTC", "local_time": at.strftime(IN_BERLIN)}
    draft = ask(writer, alice, **later)
    page = sender.get(page_of(draft))
    assert "Approve and schedule" in page.content.decode()
    past = timezone.now() - timedelta(hours=1)
    Draft.objects.update(form=draft.form | {"local_time": past.strftime(IN_BERLIN)})

    answer = decide(sender, draft, "approve", page)

    assert "Nothing was sent yet" in answer.content.decode()
    assert "It will be sent" in answer.content.decode() or "immediately" in answer.content.decode()
    assert not Notification.objects.exists()


def test_a_draft_is_returned_with_a_note_and_asked_for_again(alice, writer, sender):
    draft = ask(writer, alice)
    assert "Write what is to be changed." in decide(sender, draft, "return").content.decode()

    decide(sender, draft, "return", note="Which shops?")

    assert "Which shops?" in writer.get(COMPOSE, {"draft": draft.pk}).content.decode()
    listed = writer.get(DRAFTS, {"approval": "returned"})
    assert listed.context["cl"].result_count == 1
    assert "Returned to alice-writer." in notes()
    assert ask(writer, alice, draft=str(draft.pk), version="1").is_waiting
    assert writer.get(DRAFTS, {"approval": "returned"}).context["cl"].result_count == 0


def test_who_asked_withdraws_it(alice, writer, sender):
    draft = ask(writer, alice)
    writer.post(page_of(draft), {"do": "withdraw"})
    assert not Draft.objects.get().is_waiting
    answer = sender.get(page_of(draft), follow=True)
    assert "It does not wait for approval." in answer.content.decode()


@pytest.mark.parametrize("role", ["viewer", None])
def test_the_request_of_somebody_who_may_no_longer_write_is_not_approved(
    alice, writer, sender, role
):
    draft = ask(writer, alice)
    own = Membership.objects.filter(user=alice.members["writer"])
    if role:
        own.update(role=role)
    else:
        own.delete()

    answer = decide(sender, draft, "approve")

    assert "may no longer write for this channel" in answer.content.decode()
    assert not Notification.objects.exists()


def test_a_sender_who_lost_the_role_after_the_page_was_shown_approves_nothing(
    alice, writer, sender
):
    draft = ask(writer, alice)
    page = sender.get(page_of(draft))
    Membership.objects.filter(user=alice.members["sender"]).update(role="writer")
    assert decide(sender, draft, "approve", page).status_code == 403
    assert not Notification.objects.exists()


def test_a_draft_with_errors_is_not_asked_for(alice, writer):
    answer = writer.post(COMPOSE, written(alice, body="") | {"step": "ask"})
    assert answer.status_code == 400
    assert not Draft.objects.exists()


def test_a_draft_that_can_no_longer_be_sent_says_why(alice, writer, sender):
    draft = ask(writer, alice)
    alice.channel.web_enabled = False
    alice.channel.save()
    page = sender.get(page_of(draft)).content.decode()
    assert "It cannot be sent as it is." in page
    assert 'value="approve"' not in page


def test_an_address_in_a_mail_says_that_the_draft_was_sent_or_deleted(alice, writer, sender):
    draft = ask(writer, alice)
    Draft.objects.all().delete()
    answer = sender.get(page_of(draft), follow=True)
    assert "This draft was sent, deleted or moved." in answer.content.decode()


def test_what_waits_is_on_the_dashboard_and_first_in_the_list_of_drafts(alice, bob, writer, sender):
    draft = ask(writer, alice)
    make_draft(alice.channel, alice.members["owner"], title="Another")

    for client in (writer, sender):
        assert page_of(draft) in client.get(INDEX).content.decode()
        listed = client.get(DRAFTS, {"approval": "waiting"})
        assert [each.pk for each in listed.context["cl"].result_list] == [draft.pk]
    for other in (alice.members["viewer"], bob.members["owner"]):
        assert page_of(draft) not in signed_in(other).get(INDEX).content.decode()
    own = reverse("admin:notifications_app_draft_change", args=[draft.pk])
    assert sender.get(own).url == page_of(draft)


def mailed(server):
    mailing.send_due()
    found = [(mail["To"], mail["Subject"].strip()) for mail in server.mails]
    server.mails.clear()
    return sorted(found)


def test_those_who_may_send_get_one_mail_without_the_message(alice, writer, server):
    draft = ask(writer, alice, note="Before noon, please.")
    ask(writer, alice, draft=str(draft.pk), version="1")
    mailing.send_due()
    text = server.mails[0].get_content()
    assert "Before noon, please." in text
    assert f"{PUBLIC}{page_of(draft)}" in text
    assert "Twenty per cent off." not in text

    subject = "alice-writer asks you to approve “Spring sale” (Alice's channel)"
    roles = ("sender", "editor", "manager", "owner")
    assert mailed(server) == sorted((f"alice-{role}@example.com", subject) for role in roles)


def test_who_asked_gets_a_mail_about_the_decision(alice, writer, sender, server):
    to = "alice-writer@example.com"
    draft = ask(writer, alice)
    mailed(server)
    decide(sender, draft, "return", note="Which shops?")
    assert mailed(server) == [(to, "alice-sender returned “Spring sale” to you (Alice's channel)")]

    ask(writer, alice, draft=str(draft.pk), version="1")
    mailed(server)
    decide(sender, draft, "approve")
    assert mailed(server) == [(to, "alice-sender sent “Spring sale” (Alice's channel)")]


def test_mails_about_an_approval_are_in_the_language_of_each_receiver(alice, sender, server):
    """Whatever the language of who asks or decides."""
    for role in ("writer", "owner"):
        mails.language_keep(user=alice.members[role], language="de")
    writer = signed_in(alice.members["writer"], headers={"accept-language": "ar"})
    draft = ask(writer, alice, note="Before noon, please.")

    asked = dict(mailed(server))
    decide(sender, draft, "approve")

    german = "alice-writer bittet Sie um Freigabe von „Spring sale“ (Alice's channel)"
    english = "alice-writer asks you to approve “Spring sale” (Alice's channel)"
    assert asked.pop("alice-owner@example.com") == german
    assert set(asked.values()) == {english}
    assert mailed(server) == [
        ("alice-writer@example.com", "alice-sender hat „Spring sale“ gesendet (Alice's channel)")
    ]


def test_who_opted_out_or_lost_the_role_gets_no_mail(alice, writer, server):
    own = Membership.objects.filter(account=alice.account)
    own.filter(role="owner").update(gets_alerts=False)
    ask(writer, alice)
    own.filter(role="manager").update(role="writer")

    assert [to for to, _ in mailed(server)] == [
        "alice-editor@example.com",
        "alice-sender@example.com",
    ]


def test_a_line_break_in_a_title_breaks_no_mail(alice, writer, server):
    ask(writer, alice, title="Sale\nBcc: mallory@example.com")
    mailing.send_due()
    assert server.mails
    assert all(mail["Bcc"] is None for mail in server.mails)


def test_mails_of_an_account_are_bounded(alice, writer, server, monkeypatch):
    monkeypatch.setattr("channels_app.sign_in.mails.MOST_ASKED", 1)
    ask(writer, alice)
    before = Mail.objects.count()
    assert ask(writer, alice, title="Another").is_waiting
    assert Mail.objects.count() == before == 4


def test_the_address_in_mails_is_that_of_the_page(alice):
    draft = make_draft(alice.channel, alice.members["owner"])
    assert approvals.PAGE.format(draft.channel_id, draft.pk) == page_of(draft)


def test_a_note_is_bounded(alice, writer):
    long = "x" * (approvals.MOST_NOTE + 1)
    answer = writer.post(COMPOSE, written(alice) | {"step": "ask", "note": long})
    assert "A note has at most" in answer.content.decode()
    assert not Draft.objects.exists()
