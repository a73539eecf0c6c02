"""An account can require two-step sign-in of its members."""

import pytest
from auditlog.models import LogEntry
from django.test import Client
from django.urls import reverse

from channels_app.models import Membership, Role
from channels_app.sign_in import two_step
from tests.admin.accounts.test_members import act, page
from tests.admin.console.test_scope import addresses
from tests.admin.sign_in.steps import code_of, shown, sign_in, turned_on
from tests.admin.support import signed_in
from tests.factories import make_key

SET_UP = "/admin/auth/user/two-step/"
APP, PASSKEY = f"{SET_UP}app/", f"{SET_UP}passkey/"


def inside(user):
    """The browser of a user who has a second step and signed in with it."""
    if not two_step.is_on(user):
        turned_on(user)
    client = Client()
    assert sign_in(user, code_of(user), client=client).status_code == 302
    return client


@pytest.fixture
def strict(alice):
    """Alice's account, which requires it."""
    alice.account.requires_two_step = True
    alice.account.save()
    return alice


def is_required(house):
    house.account.refresh_from_db()
    return house.account.requires_two_step


def test_an_owner_requires_it_only_after_setting_up_their_own(alice):
    owner = alice.members["owner"]
    refused = act(signed_in(owner), alice, "two_step", required="yes")
    assert "Set up your own two-step sign-in first." in refused.content.decode()
    assert not is_required(alice)

    response = act(inside(owner), alice, "two_step", required="yes")
    assert "Two-step sign-in is now required" in response.content.decode()
    assert is_required(alice)
    entry = LogEntry.objects.order_by("-id")[0]
    assert entry.changes == {"requires_two_step": [False, True]}
    assert (entry.actor, entry.additional_data["account"]) == (owner, str(alice.account.pk))


def test_an_owner_makes_it_optional_again(strict):
    act(inside(strict.members["owner"]), strict, "two_step")

    assert not is_required(strict)
    assert signed_in(strict.members["viewer"]).get("/admin/").status_code == 200


@pytest.mark.parametrize("role", ["viewer", "sender", "editor", "manager"])
def test_no_lesser_role_changes_it(strict, role):
    response = act(inside(strict.members[role]), strict, "two_step")

    assert response.status_code == 403
    assert is_required(strict)


def test_the_members_page_and_the_list_show_who_lacks_it(strict, root):
    client = inside(strict.members["owner"])
    shown = client.get(page(strict))

    assert "5 of 6 members have not set it up." in shown.content.decode()
    marks = {held.user.username: held.has_second_step for held in shown.context["members"]}
    assert [name for name, has_it in marks.items() if has_it] == ["alice-owner"]
    accounts = reverse("admin:channels_app_account_changelist")
    assert "required" in signed_in(root).get(accounts).content.decode()
    user = reverse("admin:auth_user_change", args=[strict.members["viewer"].pk])
    assert "two-step sign-in required" in signed_in(root).get(user).content.decode()


def test_a_member_without_it_can_only_set_it_up(zebra):
    """At every address of the console, by every method."""
    zebra.account.requires_two_step = True
    zebra.account.save()
    client = signed_in(zebra.members["owner"])

    for name, path in addresses(zebra):
        if path in {SET_UP, APP, PASSKEY} or name == "logout":
            continue
        for response in (client.get(path), client.post(path, {"do": "remove", "post": "yes"})):
            assert (response.status_code, response["Location"]) == (302, SET_UP), (name, path)
    for path in ("/admin/password_change/", "/admin/doctor/", "/admin/nowhere/"):
        assert client.get(path)["Location"] == SET_UP
    assert [client.get(path).status_code for path in (SET_UP, APP, PASSKEY)] == [200] * 3
    assert Membership.objects.filter(account=zebra.account).count() == len(Role)


def test_a_member_sets_it_up_after_the_password_and_goes_on(transactional_db, strict):
    viewer, client = strict.members["viewer"], Client()
    first = sign_in(viewer, client=client)
    assert client.get(first["Location"])["Location"] == SET_UP
    assert "An account of yours requires" in client.get(SET_UP).content.decode()

    secret = client.get(APP).context["form"].secret
    response = client.post(APP, {"code": shown(secret)}, follow=True)

    assert len(response.context["unused_codes"]) == 10
    assert client.get("/admin/").status_code == 200


def test_a_member_who_turns_it_off_has_to_set_it_up_again(strict):
    viewer = strict.members["viewer"]
    client = inside(viewer)
    two_step.turn_off(user=viewer)

    assert client.get("/admin/")["Location"] == SET_UP


def test_a_member_without_it_can_sign_out(strict):
    client = signed_in(strict.members["viewer"])
    client.post(reverse("admin:logout"))

    assert "/admin/login/" in client.get("/admin/")["Location"]


def test_members_of_other_accounts_and_api_keys_are_not_affected(strict, bob):
    assert signed_in(bob.members["viewer"]).get("/admin/").status_code == 200
    response = Client().get(
        f"/channel/{strict.channel.pk}",
        headers={"Authorization": f"Key {make_key(strict.channel)}"},
    )
    assert response.status_code == 200


def test_it_costs_no_query_where_nobody_requires_it(alice, django_assert_num_queries):
    """The session, the user, and one query for the second step."""
    client = signed_in(alice.members["viewer"])

    with django_assert_num_queries(3):
        assert client.get("/admin/nowhere/").status_code == 404
