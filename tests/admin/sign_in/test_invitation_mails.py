"""Invitations and links to set a password go out by mail, over a real mail server."""

import pytest
from auditlog.models import LogEntry
from django.contrib.auth.models import User
from django.urls import reverse

from channels_app.models import Mail
from tests.admin.accounts.test_members import act, choose_password, membership, page
from tests.admin.sign_in import mail_server
from tests.admin.sign_in.mail_orders import VIEWER, invite, mailed, path_in
from tests.admin.support import signed_in


def test_an_invited_member_gets_the_link_by_mail(alice, server):
    answer = invite(alice, email="carol@example.com")

    assert "a link to choose a password at carol@example.com" in answer.content.decode()
    assert "link" not in answer.context
    (mail,) = mailed(server)
    assert (mail["To"], mail["From"]) == ("carol@example.com", mail_server.FROM)
    assert mail["X-Is-Encrypted"] == "True"
    assert server.logins == [mail_server.USER]
    assert mail.get_content_type() == "text/plain"
    assert "account “Alice”" in mail.get_content()
    assert choose_password(path_in(mail)).status_code == 200
    assert User.objects.get(username="carol").check_password("another-long-battery-staple")
    assert not Mail.objects.exists()
    assert (
        "carol@example.com" in signed_in(alice.members["owner"]).get(page(alice)).content.decode()
    )


def test_without_an_address_or_a_mail_server_the_link_is_shown(alice, server, settings):
    assert invite(alice, username="dave").context["link"]

    settings.MAIL_SERVER = None
    answer = invite(alice, email="carol@example.com")
    assert answer.context["link"]
    assert User.objects.get(username="carol").email == ""
    assert 'name="email"' not in answer.content.decode()


def test_an_owner_mails_a_member_another_link(alice, viewer, server):
    owner = signed_in(alice.members["owner"])
    answer = act(owner, alice, "mail", membership=membership(alice, "viewer").pk)

    assert f"choose a password at {VIEWER}" in answer.content.decode()
    (mail,) = mailed(server)
    assert choose_password(path_in(mail)).status_code == 200


@pytest.mark.parametrize("role", ["owner", "sender"])
def test_nobody_mails_a_link_to_themselves_or_without_an_address(alice, server, role):
    User.objects.filter(username="alice-owner").update(email="owner@example.com")
    owner = signed_in(alice.members["owner"])
    act(owner, alice, "mail", membership=membership(alice, role).pk)

    assert not Mail.objects.exists()


def test_a_superuser_invites_a_new_user_by_mail(root, server):
    new = reverse("admin:auth_user_add")
    signed_in(root).post(new, {"username": "carol", "email": "carol@example.com"})

    (mail,) = mailed(server)
    assert choose_password(path_in(mail)).status_code == 200


def test_the_mails_of_an_account_are_limited(alice, server, settings):
    settings.INVITATION_MAILS_PER_HOUR = 1
    invite(alice, email="carol@example.com")
    answer = invite(alice, username="dave", email="dave@example.com")

    assert "Too many mails" in answer.content.decode()
    assert len(mailed(server)) == 1


def test_an_entry_of_the_audit_log_says_who_ordered_a_mail(alice, server):
    invite(alice, email="carol@example.com")

    notes = LogEntry.objects.filter(actor=alice.members["owner"]).values_list(
        "additional_data__note", flat=True
    )
    assert "A mail with a link to set a password was ordered." in notes
