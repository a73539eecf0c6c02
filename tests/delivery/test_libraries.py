"""Private parts of libraries that the transports use do what the transports expect.

`tests/api/test_private_apis.py` names their versions.
"""

from firebase_admin import messaging

from notifications_app.delivery.fcm import message as fcm_message


def test_the_encoder_of_firebase_admin_returns_a_json_object():
    built = messaging.Message(data={"k": "v"})
    built.token = "a token"

    assert fcm_message._ENCODER.default(built) == {"token": "a token", "data": {"k": "v"}}
