"""Private parts of libraries that the transports use. Read them again in each new version."""

import asyncio
from importlib.metadata import version

import pytest
from firebase_admin import messaging

from notifications_app.delivery.fcm import message as fcm_message
from pushsvc.common import egress


@pytest.mark.parametrize(
    ("package", "read", "part"),
    [
        ("aiohttp", "3.14.5", "TCPConnector._factory, in pushsvc/common/egress.py"),
        ("firebase-admin", "7.7.0", "MessageEncoder, in delivery/fcm/message.py"),
    ],
)
def test_the_installed_version_is_the_one_that_was_read(package, read, part):
    assert version(package) == read, f"read {part} in the new version, then name that here"


def test_aiohttp_uses_the_connection_class_that_measures_answers():
    async def made():
        tls = egress.tls_context()
        async with egress.plain_session(tls, connections_per_origin=1, keepalive=1.0) as session:
            return session.connector._factory()

    assert isinstance(asyncio.run(made()), egress._MeasuredAnswers)


def test_the_encoder_of_firebase_admin_returns_a_json_object():
    built = messaging.Message(data={"k": "v"})
    built.token = "a token"

    assert fcm_message._ENCODER.default(built) == {"token": "a token", "data": {"k": "v"}}
