"""The check of an image from the form: who may ask, how often, and what is never asked.

tests/delivery/test_image_check.py tests the responses of servers.
"""

import socket

import pytest

from notifications_app.admin.images import CHECKS_OF_A_USER, CHECKS_OF_AN_ACCOUNT
from tests.admin.notifications.composing import IMAGE
from tests.admin.support import signed_in


def ask(client, house, address):
    return client.post(IMAGE, {"channel": str(house.channel.pk), "address": address})


def test_an_error_is_said_in_words(sender, alice):
    answer = ask(sender, alice, " http://shop.example/bread.png ")
    told = "The address must begin with https://. Devices load no other images."
    assert answer.json() == {"error": told, "found": ""}


def test_a_name_that_leads_into_the_own_network_is_not_asked(sender, alice, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = (socket.AF_INET, socket.SOCK_STREAM, 0, "", server.getsockname())
        monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [here])
        told = ask(sender, alice, "https://images.example.org/bread.png").json()
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert told["error"].startswith("The address is not public")


def test_an_address_that_cannot_be_checked_is_not_called_private(sender, alice):
    told = ask(sender, alice, "https://cdn.example.com:8443/x.png").json()

    assert told["error"].startswith("Only addresses of public names at port 443")


def test_only_senders_of_the_channel_ask(viewer, sender, alice, bob):
    assert ask(viewer, alice, "x").status_code == 403
    assert ask(sender, bob, "x").status_code == 404
    assert sender.post(IMAGE, {"address": "x"}).status_code == 404
    assert sender.get(IMAGE).status_code == 405


def test_a_user_asks_a_bounded_number_of_times_a_minute(sender, alice):
    statuses = {ask(sender, alice, "x").status_code for _ in range(CHECKS_OF_A_USER)}
    refused = ask(sender, alice, "x")
    assert (statuses, refused.status_code) == ({200}, 429)
    assert "Wait" in refused.json()["detail"]
    assert ask(signed_in(alice.members["owner"]), alice, "x").status_code == 200


def test_an_account_asks_a_bounded_number_of_times_a_minute(alice, bob):
    users = [alice.members[role] for role in ("sender", "editor", "manager", "owner")]
    asked = [
        ask(signed_in(user), alice, "x").status_code
        for user in users
        for _ in range(CHECKS_OF_A_USER)
    ]
    assert asked.count(200) == CHECKS_OF_AN_ACCOUNT
    assert ask(signed_in(bob.members["sender"]), bob, "x").status_code == 200
