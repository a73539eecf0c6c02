"""Which user somebody at the sign-in provider is, and for how long."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from channels_app.accounts.members import member_add
from channels_app.models import ProviderLink, Role
from tests.admin.sign_in.mail_orders import VIEWER
from tests.admin.sign_in.providers import CODE, START, begin, come_back
from tests.admin.sign_in.test_otp import code_of, turned_on
from tests.admin.sign_in.test_provider import who
from tests.admin.support import signed_in

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
    assert not ProviderLink.objects.exists()


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
    assert not ProviderLink.objects.exists()
    client.post(CODE, {"code": code_of(viewer)})
    assert who(client) == "alice-viewer"


def test_a_choice_of_nobody_is_told(forger, viewer, planted):
    """All users with the address were deactivated meanwhile."""
    client = at_the_choice(forger)
    User.objects.filter(pk__in=[viewer.pk, planted.pk]).update(is_active=False)

    assert choose(client, viewer).status_code == 403
    assert client.get(CHOICE).status_code == 403
