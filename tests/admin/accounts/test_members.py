"""Owners manage the members of their account. Superusers manage those of every account."""

import pytest
from auditlog.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from channels_app.accounts import members
from channels_app.accounts.members import member_add
from channels_app.models import Account, Membership, Role
from channels_app.sign_in.passwords import set_password_path
from pushsvc.common.store.redis_client import redis_client
from tests.admin.support import PASSWORD, said, signed_in

NEW_PASSWORD = "another-long-battery-staple"


def page(house):
    return reverse("admin:channels_app_account_change", args=[house.account.pk])


def membership(house, role):
    return Membership.objects.get(user=house.members[role], account=house.account)


def act(client, house, do, **fields):
    return client.post(page(house), {"do": do, **fields}, follow=True)


def link_in(response):
    assert "no-store" in response.headers["Cache-Control"]
    return response.context["link"].removeprefix("http://testserver")


def choose_password(link, password=NEW_PASSWORD):
    """Opens the link and sets a password, as a browser does."""
    visitor = Client()
    form = visitor.get(link, follow=True)
    if "token_fail" in form.context:
        return None
    fields = {"password1": password, "password2": password}
    return visitor.post(form.redirect_chain[-1][0], fields, follow=True)


def test_an_owner_adds_a_new_user_who_chooses_a_password_by_a_link(alice):
    client = signed_in(alice.members["owner"])
    response = act(client, alice, "add", username="carol", role="sender")

    carol = User.objects.get(username="carol")
    assert carol.memberships.get().role == Role.SENDER
    assert (carol.is_staff, carol.is_superuser) == (True, False)
    assert not carol.has_usable_password()
    assert link_in(response) not in client.get(page(alice)).content.decode()  # shown once

    assert choose_password(link_in(response)).status_code == 200
    carol.refresh_from_db()
    assert carol.check_password(NEW_PASSWORD)


def test_a_password_link_works_once(alice):
    link = set_password_path(user=alice.members["viewer"])

    assert choose_password(link) is not None
    assert choose_password(link) is None


def test_a_password_link_is_void_once_its_user_joins_another_account(alice, bob, root):
    """Otherwise the owner who made the link could sign in to that other account."""
    viewer = alice.members["viewer"]
    link = set_password_path(user=viewer)
    member_add(account=bob.account, username=viewer.username, role=Role.OWNER, by=root)

    assert choose_password(link) is None


def test_a_weak_password_is_refused(alice):
    link = set_password_path(user=alice.members["viewer"])

    response = choose_password(link, "12345678")

    assert "too common" in response.content.decode()
    assert User.objects.get(pk=alice.members["viewer"].pk).check_password(PASSWORD)


def test_a_superuser_adds_an_existing_user_without_a_link(alice, bob, root):
    known = bob.members["viewer"]
    response = act(signed_in(root), alice, "add", username=known, role="viewer")

    assert "link" not in response.context
    assert {held.account for held in known.memberships.all()} == {alice.account, bob.account}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("alice-viewer", "is already a member"),
        ("Alice-Viewer", "A user with this name"),
        ("no blanks", "valid username"),
        ("\N{FULLWIDTH LATIN CAPITAL LETTER A}LICE-VIEWER", "A user with this name exists"),
    ],
)
def test_a_name_that_cannot_be_added_is_refused_next_to_its_field(alice, name, says):
    client = signed_in(alice.members["owner"])
    response = act(client, alice, "add", username=name, role="viewer")

    assert response.status_code == 400
    assert says in " ".join(response.context["form"].errors["username"])


def test_an_owner_does_not_learn_whether_a_user_of_others_is_deactivated(alice, bob):
    client, others = signed_in(alice.members["owner"]), bob.members["viewer"]
    before = said(act(client, alice, "add", username=others, role="viewer"))
    User.objects.filter(pk=others.pk).update(is_active=False)

    assert said(act(client, alice, "add", username=others, role="viewer")) == before


def test_an_owner_changes_a_role_and_removes_a_member(alice):
    client = signed_in(alice.members["owner"])
    act(client, alice, "role", membership=membership(alice, "viewer").pk, role="manager")
    assert membership(alice, "viewer").role == Role.MANAGER

    act(client, alice, "remove", membership=membership(alice, "viewer").pk)
    assert not alice.members["viewer"].memberships.exists()
    assert User.objects.filter(pk=alice.members["viewer"].pk, is_active=True).exists()


@pytest.mark.parametrize("do", ["role", "remove"])
@pytest.mark.parametrize("has_deactivated_owner", [False, True])
def test_the_last_active_owner_cannot_be_removed(alice, do, has_deactivated_owner):
    owner = membership(alice, "owner")
    if has_deactivated_owner:
        Membership.objects.filter(pk=membership(alice, "manager").pk).update(role=Role.OWNER)
        User.objects.filter(pk=alice.members["manager"].pk).update(is_active=False)
    response = act(signed_in(owner.user), alice, do, membership=owner.pk, role="viewer")

    assert "needs an owner" in response.content.decode()
    assert membership(alice, "owner").role == Role.OWNER


@pytest.mark.parametrize("role", ["viewer", "sender", "editor", "manager"])
def test_a_member_without_the_owner_role_neither_sees_nor_changes_members(alice, role):
    client = signed_in(alice.members[role])

    assert client.get(page(alice)).status_code == 403
    response = act(client, alice, "role", membership=membership(alice, role).pk, role="owner")
    assert response.status_code == 403
    assert "owner" in response.content.decode()
    assert membership(alice, role).role == role


@pytest.mark.parametrize("who", ["of_another_account", "superuser"])
def test_an_owner_gets_no_password_link_for_a_user_who_also_belongs_elsewhere(
    alice, bob, root, who
):
    user = {"of_another_account": bob.members["viewer"], "superuser": root}[who]
    held, _ = member_add(account=alice.account, username=user.username, role=Role.VIEWER, by=root)

    response = act(signed_in(alice.members["owner"]), alice, "link", membership=held.pk)

    assert "superuser must create the link" in response.content.decode()
    assert "link" not in response.context


def test_an_owner_gets_a_password_link_for_a_user_of_this_account_only(alice):
    held = membership(alice, "viewer")
    response = act(signed_in(alice.members["owner"]), alice, "link", membership=held.pk)

    assert choose_password(link_in(response)) is not None


def test_an_owner_gets_no_password_link_for_themselves(alice):
    """Not by a forged form either: somebody at an unlocked computer would keep access for good."""
    owner = membership(alice, "owner")
    client = signed_in(owner.user)
    assert f'name="membership" value="{owner.pk}"><button class="ps-button">Password link' not in (
        client.get(page(alice)).content.decode()
    )

    response = act(client, alice, "link", membership=owner.pk)

    assert "link" not in response.context
    assert "Change your own password" in response.content.decode()
    assert not LogEntry.objects.filter(additional_data__note__contains="link").exists()


def test_only_superusers_create_and_rename_accounts(alice, root):
    new = reverse("admin:channels_app_account_add")
    assert signed_in(alice.members["owner"]).post(new, {"name": "Mine"}).status_code == 403
    assert act(signed_in(alice.members["owner"]), alice, "rename", name="X").status_code == 403

    assert signed_in(root).post(new, {"name": "Carol"}).status_code == 302
    act(signed_in(root), alice, "rename", name="Alice & Co")
    assert set(Account.objects.values_list("name", flat=True)) == {"Carol", "Alice & Co"}


def test_the_audit_log_has_every_change_of_members_and_no_link(alice):
    client = signed_in(alice.members["owner"])
    link = link_in(act(client, alice, "add", username="carol", role="sender"))
    carol = Membership.objects.get(user__username="carol")
    act(client, alice, "role", membership=carol.pk, role="viewer")
    act(client, alice, "remove", membership=carol.pk)

    entries = LogEntry.objects.filter(content_type__model="membership").order_by("id")
    assert [entry.changes for entry in entries] == [
        {"user": [None, "carol"], "role": [None, "sender"], "gets_alerts": [None, True]},
        {"role": ["sender", "viewer"]},
        {"user": ["carol", None], "role": ["viewer", None], "gets_alerts": [True, None]},
    ]
    assert {entry.actor for entry in entries} == {alice.members["owner"]}
    token = link.rstrip("/").rpartition("/")[2]
    assert not any(token in str(entry) for entry in LogEntry.objects.values())


def test_the_number_of_queries_does_not_grow_with_the_members(alice, django_assert_max_num_queries):
    for number in range(60):
        user = User.objects.create_user(f"member-{number}", is_staff=True)
        Membership.objects.create(account=alice.account, user=user, role="viewer")
    client = signed_in(alice.members["owner"])

    with django_assert_max_num_queries(25):
        assert "member-59" in client.get(page(alice)).content.decode()


# --- bounds ---------------------------------------------------------------------------------------


def test_an_account_has_a_limit_of_members(alice, bob, monkeypatch):
    assert members.MOST_MEMBERS == 500
    monkeypatch.setattr(members, "MOST_MEMBERS", len(alice.members) + 1)
    client = signed_in(alice.members["owner"])
    act(client, alice, "add", username="carol", role="sender")

    refused = act(client, alice, "add", username="dave", role="sender")

    assert refused.status_code == 400
    assert "Remove one first" in refused.content.decode()
    assert not User.objects.filter(username="dave").exists()
    act(client, alice, "remove", membership=User.objects.get(username="carol").memberships.get().pk)
    assert act(client, alice, "add", username="dave", role="sender").status_code == 200


def test_an_owner_creates_few_users_in_an_hour(alice, bob, root, settings):
    redis_client().flushdb()
    settings.NEW_USERS_PER_HOUR = 1
    client = signed_in(alice.members["owner"])
    act(client, alice, "add", username="carol", role="sender")
    # A user remains when the member is removed.
    act(client, alice, "remove", membership=User.objects.get(username="carol").memberships.get().pk)

    refused = act(client, alice, "add", username="dave", role="sender")

    assert refused.status_code == 400
    assert "Too many users were created" in refused.content.decode()
    assert not User.objects.filter(username="dave").exists()
    assert act(signed_in(root), alice, "add", username="dave", role="sender").status_code == 200
    assert act(signed_in(bob.members["owner"]), bob, "add", username="erin", role="sender")
    assert User.objects.filter(username="erin").exists()


@pytest.mark.parametrize("fields", [{"do": "remove"}, {"do": "role", "role": "viewer"}])
def test_an_owner_who_gives_up_the_account_comes_to_a_page_that_says_so(alice, fields):
    owner, other = membership(alice, "owner"), membership(alice, "manager")
    Membership.objects.filter(pk=other.pk).update(role=Role.OWNER)

    response = act(signed_in(owner.user), alice, **fields, membership=owner.pk)

    assert response.status_code == 200
    assert "alice-owner" in str(next(iter(response.context["messages"])))
