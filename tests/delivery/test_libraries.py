"""Private parts of libraries that the transports use. Read them again in each new version."""

from importlib.metadata import version

import pytest
from firebase_admin import messaging

from notifications_app.delivery.fcm import message as fcm_message


@pytest.mark.parametrize(
    ("package", "read", "part"),
    [
        ("firebase-admin", "7.7.0", "MessageEncoder, in delivery/fcm/message.py"),
    ],
)
def test_the_installed_version_is_the_one_that_was_read(package, read, part):
    assert version(package) == read, f"read {part} in the new version, then name that here"


def test_the_encoder_of_firebase_admin_returns_a_json_object():
    built = messaging.Message(data={"k": "v"})
    built.token = "a token"

    assert fcm_message._ENCODER.default(built) == {"token": "a token", "data": {"k": "v"}}
