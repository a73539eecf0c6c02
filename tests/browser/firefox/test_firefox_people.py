"""A user signs in and out in Firefox: what is sent to the user is shown only in between."""

import time

import jwt
import pytest

from channels_app.identity_keys import identity_key_create
from notifications_app.models import Delivery
from tests.browser.firefox.test_firefox import shown, subscribe
from tests.pipeline.support import until


@pytest.fixture
def token(alice):
    """An identity token of the user user-42, as Alice's backend makes it."""
    _, secret = identity_key_create(channel=alice.channel, public_key=None)
    claims = {"sub": "user-42", "aud": str(alice.channel.id), "exp": int(time.time()) + 3600}
    return jwt.encode(claims, secret, algorithm="HS256")


def send(owner, **fields):
    return owner.send(external_ids=["user-42"], **fields)


def test_a_user_gets_direct_sends_until_the_sign_out_even_if_one_waits_then(firefox, alice, token):
    subscribe(firefox, alice)
    assert alice.outcome(send(alice)) == (0, 0, 0)  # nobody has said who is signed in

    firefox.in_page(f"push.login('user-42', '{token}')")

    assert alice.outcome(send(alice, title="Your parcel")) == (1, 1, 0)
    shown(firefox, ("Your parcel", "Fresh bread"))
    firefox.close_notifications()
    device = alice.device()
    device.behave("throttled", retry_after=1)
    waiting = send(alice, title="Your next parcel")
    until(lambda: Delivery.objects.filter(notification_id=waiting, due_at__isnull=False).exists())

    firefox.in_page("push.logout()")

    assert alice.outcome(waiting) == (1, 0, 1)
    assert Delivery.objects.get(notification_id=waiting).code == "person_changed"
    assert alice.outcome(send(alice)) == (0, 0, 0)
    device.behave("accept")
    assert alice.outcome(alice.send(title="For everybody")) == (1, 1, 0)
    shown(firefox, ("For everybody", "Fresh bread"))
