"""Superusers manage users. Every user changes their own password."""

import re

import pytest
from auditlog.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from channels_app.models import Account
from channels_app.sign_in import two_step
from channels_app.sign_in.passwords import set_password_path
from pushsvc.common.mail_server import MailServer
from tests.admin.sign_in.steps import code_of, sign_in, turned_on
from tests.admin.support import PASSWORD, signed_in, submit

USERS = "/admin/auth/user/"
NEW_PASSWORD = "another-long-battery-staple"


def change_page(user):
    return reverse("admin:auth_user_change", args=[user.pk])


def test_a_superuser_creates_a_user_and_gets_the_password_link_once(root):
    response = signed_in(root).post(f"{USERS}add/", {"username": "carol", "email": "c@example.com"})

    carol = User.objects.get(username="carol")
    assert (carol.is_staff, carol.is_superuser) == (True, False)
    assert not carol.has_usable_password()
    assert "no-store" in response.headers["Cache-Control"]
    assert "/set-password/" in response.context["link"]


def test_a_superuser_deactivates_a_user_whose_session_ends_at_once(alice, root):
    viewer = alice.members["viewer"]
    session = signed_in(viewer)
    submit(signed_in(root), change_page(viewer), {"do": "change", "email": ""})

    assert User.objects.get(pk=viewer.pk).is_active is False
    assert "/admin/login/" in session.get("/admin/")["Location"]


def test_a_user_who_is_activated_again_has_no_session_of_before(alice, root):
    """Otherwise a stolen browser, for which the user was deactivated, is signed in again."""
    viewer, superuser = alice.members["viewer"], signed_in(root)
    stolen, others = signed_in(viewer), signed_in(alice.members["owner"])
    for active in ({}, {"is_active": "on"}):
        submit(superuser, change_page(viewer), {"do": "change", "email": "", **active})

    assert User.objects.get(pk=viewer.pk).is_active is True
    assert stolen.get("/admin/").status_code == 302
    assert [client.get("/admin/").status_code for client in (others, superuser)] == [200, 200]


def test_a_superuser_makes_a_password_link_for_another_user(alice, root):
    response = signed_in(root).post(change_page(alice.members["owner"]), {"do": "link"})

    assert "/set-password/" in response.context["link"]


@pytest.mark.parametrize("do", ["link", "reset"])
def test_a_superuser_must_prove_password_and_code_for_their_own_user(root, do):
    """The pages for other users do not work for one's own. Those for one's own ask for both."""
    turned_on(root)
    client = Client()
    sign_in(root, code_of(root), client=client)
    shown = client.get(change_page(root)).content.decode()
    assert f'name="do" value="{do}"' not in shown
    assert "This is you." in shown

    response = client.post(change_page(root), {"do": do}, follow=True)

    assert "link" not in response.context
    assert "under “" in response.content.decode()
    assert two_step.is_on(root)
    assert not LogEntry.objects.filter(additional_data__note__contains="link").exists()


@pytest.mark.parametrize("kept", [{"is_active": "on"}, {"is_superuser": "on"}])
def test_a_superuser_cannot_deactivate_or_demote_themselves(root, kept):
    fields = {"do": "change", "email": "", **kept}
    response = submit(signed_in(root), change_page(root), fields)

    assert response.status_code == 400
    root.refresh_from_db()
    assert root.is_active
    assert root.is_superuser


@pytest.mark.parametrize("path", ["", "add/"])
def test_owners_cannot_open_the_pages_of_users(alice, path):
    owner = signed_in(alice.members["owner"])

    assert owner.get(f"{USERS}{path}").status_code == 403
    assert owner.post(f"{USERS}add/", {"username": "x", "is_superuser": "on"}).status_code == 403
    assert owner.get(change_page(alice.members["viewer"])).status_code == 403


def test_users_are_never_deleted(root, alice):
    page = reverse("admin:auth_user_delete", args=[alice.members["viewer"].pk])

    assert signed_in(root).post(page, {"post": "yes"}).status_code == 403


def own_password(client, **fields):
    right = {"oldpassword": PASSWORD, "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    return client.post("/admin/password_change/", right | fields)


def test_password_rules_are_full_sentences(alice):
    viewer = alice.members["viewer"]
    own = signed_in(viewer).get("/admin/password_change/").content.decode()
    link = Client().get(set_password_path(user=viewer), follow=True).content.decode()

    for page in (own, link):
        helps = re.findall(r'<p class="ps-help"[^>]*>(.*?)</p>', page, re.DOTALL)
        (rules,) = [text for text in helps if "at least" in text]
        assert not re.search(r"[\[<]", rules), rules
        assert re.search(r"at least \d+ characters\. ", rules), rules


def test_changing_the_password_ends_the_users_other_sessions(alice):
    viewer = alice.members["viewer"]
    here, elsewhere = signed_in(viewer), signed_in(viewer)

    assert own_password(here).status_code == 302

    assert User.objects.get(pk=viewer.pk).check_password(NEW_PASSWORD)
    assert here.get("/admin/").status_code == 200
    assert elsewhere.get("/admin/").status_code == 302


def test_only_users_who_have_a_password_must_enter_it(alice, settings):
    viewer = alice.members["viewer"]
    client = signed_in(viewer)
    assert "Current password" in client.get("/admin/password_change/").content.decode()
    viewer.set_unusable_password()
    viewer.save()
    client = signed_in(viewer)

    server = MailServer.parse("smtp://127.0.0.1?tls=off")
    for mail_server, address, way in (
        (None, "viewer@example.com", "ask an owner"),
        (server, "", "ask an owner"),
        (server, "viewer@example.com", "Forgot your password?"),
    ):
        settings.MAIL_SERVER = mail_server
        User.objects.filter(pk=viewer.pk).update(email=address)
        page = client.get("/admin/password_change/", follow=True).content.decode()
        assert "You have no password" in page
        assert way in page
        assert "Current password" not in page
    own_password(client)
    viewer.refresh_from_db()
    assert not viewer.has_usable_password()


@pytest.mark.parametrize(
    "wrong",
    [{"oldpassword": "guessed"}, {"password2": "other"}, {"password1": "1", "password2": "1"}],
)
def test_an_invalid_form_changes_no_password(alice, wrong):
    viewer = alice.members["viewer"]

    assert own_password(signed_in(viewer), **wrong).status_code == 200
    assert User.objects.get(pk=viewer.pk).check_password(PASSWORD)


def test_guessing_the_current_password_locks_the_user_out(alice):
    client = signed_in(alice.members["viewer"])
    responses = [own_password(client, oldpassword=f"guess {n}").status_code for n in range(5)]

    assert responses == [200] * 4 + [429]
    assert own_password(client).status_code == 429


def test_the_lists_of_users_take_few_queries(root, django_assert_max_num_queries):
    User.objects.bulk_create(User(username=f"user-{n}", is_staff=True) for n in range(200))
    Account.objects.bulk_create(Account(name=f"account {n}") for n in range(200))
    every_second = IntervalSchedule.objects.create(every=1, period=IntervalSchedule.SECONDS)
    PeriodicTask.objects.bulk_create(
        PeriodicTask(name=f"task {n}", task="tick", interval=every_second) for n in range(200)
    )
    client = signed_in(root)

    for page in (
        USERS,
        reverse("admin:channels_app_account_changelist"),
        reverse("admin:django_celery_beat_periodictask_changelist"),
    ):
        with django_assert_max_num_queries(25):
            assert client.get(page).status_code == 200
