"""A user asks for a link to set a new password, which comes by mail over a real mail server."""

import pytest
from auditlog.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from channels_app.accounts.members import member_add, member_remove
from channels_app.models import Mail, Role
from channels_app.sign_in import mails
from pushsvc.common.store.redis_client import redis_client
from tests.admin.accounts.test_members import choose_password
from tests.admin.sign_in.mail_orders import FORGOT, VIEWER, ask, mailed, path_in
from tests.admin.sign_in.mail_server import PUBLIC, link_in
from tests.admin.sign_in.steps import sign_in, turned_on
from tests.admin.support import said, signed_in

NEW_PASSWORD = "another-long-battery-staple"


def test_the_forgotten_password_is_offered_only_with_a_mail_server(db, server, settings):
    assert FORGOT in Client().get("/admin/login/").content.decode()
    assert Client().get(FORGOT).status_code == 200

    settings.MAIL_SERVER = None
    assert FORGOT not in Client().get("/admin/login/").content.decode()
    assert Client().get(FORGOT).status_code == 404
    assert ask().status_code == 404
    assert not Mail.objects.exists()


def test_a_user_sets_a_new_password_by_the_mail_and_other_sessions_end(viewer, server):
    inside = signed_in(viewer)
    assert ask().status_code == 200
    (mail,) = mailed(server)

    assert choose_password(path_in(mail)).status_code == 200
    viewer.refresh_from_db()
    assert viewer.check_password(NEW_PASSWORD)
    assert inside.get("/admin/").status_code == 302
    assert choose_password(path_in(mail)) is None  # works once
    notes = [entry.additional_data["note"] for entry in LogEntry.objects.all()]
    assert any("asked for it" in note and "127.0.0.1" in note for note in notes)
    assert "A password was set by a link." in notes


def test_the_mail_is_in_the_language_of_the_last_sign_in_or_of_the_choice_since(
    viewer, server, settings
):
    settings.RESET_MAILS_PER_HOUR = 10
    choice = "/admin/auth/user/time-zone/"

    def subject():
        ask()
        return mailed(server)[-1]["Subject"].strip()

    assert subject() == "A link to set a new password"
    browser = Client(headers={"accept-language": "de-AT,de;q=0.9"})
    sign_in(viewer, client=browser)
    assert subject() == "Ein Link, um ein neues Passwort zu setzen"
    assert "Jemand hat einen Link angefordert" in server.mails[-1].get_content()
    browser.post(choice, {"language": "ar", "zone": ""})
    assert subject() == "رابط لتعيين كلمة مرور جديدة"
    browser.post(choice, {"language": "", "zone": ""})
    assert subject() == "Ein Link, um ein neues Passwort zu setzen"


def test_a_link_expires_after_a_day(viewer, server, settings):
    ask()
    (mail,) = mailed(server)
    settings.PASSWORD_RESET_TIMEOUT = -1

    assert choose_password(path_in(mail)) is None


def test_a_link_begins_with_the_public_address_whatever_the_host_header_says(viewer, server):
    assert ask(headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example"}).status_code

    (mail,) = mailed(server)
    assert "evil" not in mail.as_string()
    assert link_in(mail).startswith(f"{PUBLIC}/")


def statements(client, address, django_assert_num_queries):
    with django_assert_num_queries(2) as seen:
        answer = ask(address, client=client)
    return (
        *said(answer),
        [query["sql"].split("VALUES")[0] for query in seen.captured_queries],
    )


def test_known_and_unknown_addresses_get_the_same_answer_after_the_same_statements(
    viewer, server, django_assert_num_queries
):
    """So neither answer nor time says who has an account."""
    client = Client()
    known = statements(client, VIEWER, django_assert_num_queries)

    assert statements(client, "nobody@example.com", django_assert_num_queries) == known
    assert len(mailed(server)) == 1
    assert not Mail.objects.exists()


def test_the_mail_goes_to_the_stored_address_and_not_to_another_spelling(viewer, server):
    ask(VIEWER.upper())

    (mail,) = mailed(server)
    assert mail["X-Recipients"] == VIEWER


def test_deactivated_users_get_no_mail_and_each_of_an_addresss_users_gets_one(
    alice, viewer, server
):
    User.objects.filter(username__in=["alice-sender", "alice-manager"]).update(email=VIEWER)
    User.objects.filter(username="alice-manager").update(is_active=False)
    ask()

    names = {"alice-viewer", "alice-sender", "alice-manager"}
    told = [{name for name in names if name in mail.get_content()} for mail in mailed(server)]
    assert told == [{"alice-viewer"}, {"alice-sender"}]


@pytest.mark.parametrize("leaves", [False, True])
def test_an_owner_who_gives_users_somebodys_address_keeps_no_mail_back(alice, bob, server, leaves):
    """A mail goes to five users of an address. Bob's owner has made more before Alice's invites the
    one whose address it is, and takes them out of the account again."""
    address, owner = "carol@example.com", bob.members["owner"]
    for number in range(6):
        planted, _ = member_add(
            account=bob.account, username=f"p{number}", role=Role.VIEWER, by=owner, email=address
        )
        if leaves:
            member_remove(membership=planted)
    member_add(
        account=alice.account,
        username="carol",
        role=Role.VIEWER,
        by=alice.members["owner"],
        email=address,
    )
    ask(address)

    assert any("user carol of" in mail.get_content() for mail in mailed(server))


def test_users_without_an_address_are_found_by_none(alice, server):
    mails.ask_for_link(address="", asked_from="192.0.2.1")

    assert mailed(server) == []


@pytest.mark.parametrize("address", ["a@b.example\nBcc: c@d.example", "a@b.example\r\n", "x", ""])
def test_a_malformed_address_is_refused(db, server, address):
    ask(address)

    # A line break at its end is cut.
    assert set(Mail.objects.values_list("address", flat=True)) <= {"a@b.example"}


def test_an_address_gets_few_mails_an_hour_and_the_answer_stays_the_same(viewer, server, settings):
    settings.RESET_MAILS_PER_HOUR = 2
    answers = [said(ask(address)) for address in (VIEWER, VIEWER.upper(), VIEWER)]

    assert answers[0] == answers[2]
    assert len(mailed(server)) == 2
    assert not [key for key in redis_client().scan_iter("limit:*") if "viewer" in str(key)]


def test_no_spelling_of_an_address_gets_more_mails(viewer, server, settings):
    """The database's upper case of an i without a dot is I."""
    settings.RESET_MAILS_PER_HOUR = 1
    for address in (VIEWER, "v\u0131ewer@example.com", " Viewer@Example.com"):
        assert ask(address).status_code == 200

    assert len(mailed(server)) == 1


def test_a_network_may_ask_only_a_few_times_an_hour(viewer, server, settings):
    settings.RESET_REQUESTS_PER_HOUR = 2
    settings.TRUSTED_PROXIES = 1
    here = {"headers": {"X-Forwarded-For": "192.0.2.7"}}
    for n in range(2):
        assert ask(f"n{n}@example.com", **here).status_code == 200

    answer = ask(**here)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 3600
    assert "Too many attempts" in answer.content.decode()
    assert ask(headers={"X-Forwarded-For": "192.0.2.8"}).status_code == 200
    assert Mail.objects.count() == 3


def test_a_limited_number_of_requests_wait(viewer, server, monkeypatch):
    monkeypatch.setattr(mails, "MOST_REQUESTS", 2)
    for n in range(3):
        assert ask(f"n{n}@example.com").status_code == 200

    assert Mail.objects.count() == 2


def test_a_mail_does_not_bypass_two_step_sign_in(viewer, server):
    codes = turned_on(viewer)
    ask()
    (mail,) = mailed(server)

    assert "you still need a code" in mail.get_content()
    choose_password(path_in(mail))
    assert sign_in(viewer, codes[0], NEW_PASSWORD).status_code == 302
    assert sign_in(viewer, password=NEW_PASSWORD).status_code == 200
