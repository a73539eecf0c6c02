"""One person, as the backend asks about them and their devices sign in."""

from subscriptions_app.models import Subscription

USER = "user-42"


def path(owner, external_id=USER, part=""):
    return f"/channel/{owner.channel.id}/person{part}?external_id={external_id}"


def read(owner, external_id=USER):
    response = owner.call("GET", path(owner, external_id))
    assert response.status_code == 200, response.content
    return response.json()


def change(owner, external_id=USER, **fields):
    response = owner.call("PATCH", path(owner, external_id), fields)
    assert response.status_code == 200, response.content
    return response.json()


def sign_in(owner, device, external_id=USER):
    """Registers the device as the person's, and returns it."""
    response = owner.subscribe(device | {"external_id": external_id})
    assert response.status_code in {200, 201}, response.content
    return device


def row(device):
    return Subscription.objects.get(address=device["endpoint"])


def is_active(device):
    return row(device).expired_at is None
