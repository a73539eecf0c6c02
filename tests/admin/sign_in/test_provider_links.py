"""Which user somebody at the sign-in provider is, and for how long."""

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from channels_app.accounts.members import member_add
from channels_app.models import Role
from channels_app.sign_in.passwords import set_password_path
from tests.admin.accounts.test_members import act, choose_password
from tests.admin.sign_in.mail_orders import VIEWER
from tests.admin.sign_in.providers import CODE, START, begin, come_back
from tests.admin.sign_in.steps import code_of, turned_on
from tests.admin.sign_in.test_provider import who
from tests.admin.support import PASSWORD, signed_in

CHOICE = f"{START}choice/"


def test_removing_the_link_ends_the_sessions_of_the_one_who_was_linked(forger, viewer, root):
    client = Client()
    come_back(client, begin(forger, client))
    assert who(client) == "alice-viewer"
    page = reverse("admin:auth_user_change", args=[viewer.pk])
    signed_in(root).post(page, {"do": "unlink"})

    assert who(client) is None


@pytest.fixture
def planted(bob):
    """A user of Bob's account to whom its owner gave the address of Alice's viewer."""
    made, _ = member_add(
        account=bob.account,
        username="planted",
        role=Role.VIEWER,
        by=bob.members["owner"],
        email=VIEWER.upper(),
    )
    return made.user


def at_the_choice(forger, path=START):
    """A browser that the provider sent back, of somebody whose address several users have."""
    client = Client()
    answer = come_back(client, begin(forger, client, path))
    assert answer["Location"] == CHOICE
    assert who(client) is None
    return client


def choose(client, user):
    return client.post(CHOICE, {"user": user.pk})


def test_an_owner_who_gives_a_user_somebodys_address_keeps_nobody_out(forger, viewer, planted):
    client = at_the_choice(forger, f"{START}?next=/admin/search/")
    page = " ".join(client.get(CHOICE).content.decode().split())
    assert "alice-viewer (Alice)" in page
    assert "planted (Bob)" in page

    assert choose(client, viewer)["Location"] == "/admin/search/"
    assert who(client) == "alice-viewer"
    assert client.get(CHOICE).context["users"] == []  # a choice is made once


def test_the_next_sign_in_asks_for_no_choice(forger, viewer, planted):
    choose(at_the_choice(forger), viewer)
    client = Client()
    come_back(client, begin(forger, client))

    assert who(client) == "alice-viewer"


def test_nobody_chooses_a_user_with_another_address(forger, viewer, planted, root):
    client = at_the_choice(forger)

    assert choose(client, root).status_code == 400
    assert client.post(CHOICE, {"user": "x"}).status_code == 400
    assert client.post(CHOICE).status_code == 400
    User.objects.filter(pk=viewer.pk).update(email="other@example.com")
    assert choose(client, viewer).status_code == 400
    assert who(client) is None
    assert not SocialAccount.objects.exists()


def test_nobody_chooses_without_the_provider(forger, viewer, planted):
    client = Client()

    assert choose(client, viewer).status_code == 400
    assert "This took too long" in client.get(CHOICE).content.decode()
    assert who(client) is None


def test_a_choice_must_come_soon(forger, viewer, planted):
    client = at_the_choice(forger)
    session = client.session
    session["provider_users"] |= {"until": 0}
    session.save()

    assert choose(client, viewer).status_code == 400
    assert who(client) is None


def test_the_chosen_user_gives_a_code_too(forger, viewer, planted):
    turned_on(viewer)
    client = at_the_choice(forger)

    assert choose(client, viewer)["Location"] == CODE
    assert who(client) is None
    assert not SocialAccount.objects.exists()
    client.post(CODE, {"code": code_of(viewer)})
    assert who(client) == "alice-viewer"


def test_a_choice_of_nobody_is_told(forger, viewer, planted):
    """All users with the address were deactivated meanwhile."""
    client = at_the_choice(forger)
    User.objects.filter(pk__in=[viewer.pk, planted.pk]).update(is_active=False)

    assert choose(client, viewer).status_code == 403
    assert client.get(CHOICE).status_code == 403


# --- a user whom an owner made for a stranger -----------------------------------------------------


@pytest.fixture
def stranger(bob, viewer):
    """A user whom Bob's owner made with the address of somebody who has no user yet."""
    User.objects.filter(pk=viewer.pk).update(email="other@example.com")
    owner = bob.members["owner"]
    made, _ = member_add(
        account=bob.account, username="planted", role=Role.VIEWER, by=owner, email=VIEWER
    )
    made.user.set_password(PASSWORD)  # by the link that the owner got to see
    made.user.save()
    return made.user


def invited(alice):
    """The same person, whom Alice's owner invites later."""
    made, _ = member_add(
        account=alice.account,
        username="invited",
        role=Role.VIEWER,
        by=alice.members["owner"],
        email=VIEWER,
    )
    return made.user


def test_a_user_made_for_a_stranger_keeps_nobody_out_of_a_later_account(forger, stranger, alice):
    first = Client()
    come_back(first, begin(forger, first))
    assert who(first) == "planted"
    own = invited(alice)

    client = at_the_choice(forger)
    page = " ".join(client.get(CHOICE).content.decode().split())
    assert "planted (Bob)" in page
    assert "invited (Alice)" in page
    choose(client, own)

    assert who(client) == "invited"
    assert SocialAccount.objects.get().user == own
    again = Client()
    come_back(again, begin(forger, again))
    assert who(again) == "invited"


def test_who_stays_with_the_user_is_asked_once(forger, stranger, alice):
    first = Client()
    come_back(first, begin(forger, first))
    invited(alice)
    choose(at_the_choice(forger), stranger)

    again = Client()
    come_back(again, begin(forger, again))
    assert who(again) == "planted"


def test_a_password_that_another_may_know_ends_at_the_first_sign_in(forger, stranger, bob):
    theirs = signed_in(stranger)
    assert who(theirs) == "planted"
    link = set_password_path(user=stranger)
    client = Client()
    come_back(client, begin(forger, client))
    assert who(client) == "planted"

    stranger.refresh_from_db()
    assert not stranger.has_usable_password()
    assert who(theirs) is None
    assert choose_password(link) is None
    owner = signed_in(bob.members["owner"])
    member = stranger.memberships.get()
    refused = act(owner, bob, "link", membership=member.pk)
    assert refused.context.get("link") is None
    assert "Mail the link, or ask a superuser" in refused.content.decode()


def test_who_gives_the_code_keeps_the_password(forger, viewer):
    turned_on(viewer)
    client = Client()
    come_back(client, begin(forger, client))
    client.post(CODE, {"code": code_of(viewer)})

    assert who(client) == "alice-viewer"
    viewer.refresh_from_db()
    assert viewer.has_usable_password()


def test_a_superuser_keeps_the_password(forger, viewer, root):
    User.objects.filter(pk=viewer.pk).update(email="other@example.com")
    User.objects.filter(pk=root.pk).update(email=VIEWER)
    client = Client()
    come_back(client, begin(forger, client))

    assert who(client) == "root"
    root.refresh_from_db()
    assert root.has_usable_password()


def test_a_later_sign_in_keeps_a_new_password(forger, viewer):
    come_back(client := Client(), begin(forger, client))
    viewer.refresh_from_db()
    viewer.set_password(PASSWORD)
    viewer.save()
    come_back(again := Client(), begin(forger, again))

    assert who(again) == "alice-viewer"
    viewer.refresh_from_db()
    assert viewer.has_usable_password()
