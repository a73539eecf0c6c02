"""Which user somebody at the sign-in provider is, and for how long."""

from django.test import Client
from django.urls import reverse

from tests.admin.sign_in.providers import begin, come_back
from tests.admin.sign_in.test_provider import who
from tests.admin.support import signed_in


def test_removing_the_link_ends_the_sessions_of_the_one_who_was_linked(forger, viewer, root):
    client = Client()
    come_back(client, begin(forger, client))
    assert who(client) == "alice-viewer"
    page = reverse("admin:auth_user_change", args=[viewer.pk])
    signed_in(root).post(page, {"do": "unlink"})

    assert who(client) is None
