"""Orders mails, and reads what arrives."""

from django.test import Client

from channels_app.sign_in import mailing
from tests.admin.accounts.test_members import act
from tests.admin.sign_in.mail_server import PUBLIC, link_in
from tests.admin.support import signed_in

FORGOT = "/admin/auth/user/forgot-password/"
VIEWER = "viewer@example.com"


def ask(address=VIEWER, *, client=None, **more):
    """The page after the request, without what is refused."""
    client = client or Client()
    answer = client.post(FORGOT, {"email": address}, **more)
    return client.get(answer["Location"]) if answer.status_code == 302 else answer


def invite(house, client=None, **fields):
    client = client or signed_in(house.members["owner"])
    return act(client, house, "add", **{"username": "carol", "role": "sender", **fields})


def mailed(server):
    """The mails that arrive when everything that is due is sent."""
    mailing.send_due()
    return server.mails


def path_in(mail):
    assert link_in(mail).startswith(f"{PUBLIC}/admin/")
    return link_in(mail).removeprefix(PUBLIC)
