import json
import time
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifications_app.content.personal import values_of
from notifications_app.content.values import Content
from notifications_app.delivery.client import PayloadTooLargeError
from notifications_app.delivery.fcm.payload import MAX_PAYLOAD, payload, unusable_data_names
from notifications_app.delivery.fcm.transport import build_request
from notifications_app.delivery.messages import Messages
from notifications_app.delivery.types import Destination
from pushsvc.common.platforms import Platform
from sandbox.fcm import message as fcm_message
from sandbox.fcm import schema
from tests.delivery.support import make_message

ID = "01936c5e-0000-7000-8000-0000000000aa"
DESTINATION = Destination(
    subscription_id=UUID("01936c5e-0000-7000-8000-0000000000bb"),
    address="dEv1ce:APA91bX",
    token="tracking-token",
)
URL = "https://fcm.googleapis.com/v1/projects/demo-app"


def request_for(message=None, now=None, **over):
    message = message or make_message(**over)
    return build_request(
        message, DESTINATION, URL, "ya29.c", time.monotonic() if now is None else now
    )


def sent(**over):
    return json.loads(request_for(**over).body)["message"]


def test_a_full_message_is_mapped_field_by_field():
    message = make_message(
        icon="https://example.com/icon.png",
        url="https://example.com/rain",
        image="https://example.com/rain.png",
        data={"city": "Bern"},
        urgency="high",
        topic="rain",
    )
    assert json.loads(request_for(message).body) == {
        "message": {
            "token": "dEv1ce:APA91bX",
            "notification": {
                "title": "Rain",
                "body": "It rains.",
                "image": "https://example.com/rain.png",
            },
            "data": {
                "city": "Bern",
                "notification_id": ID,
                "url": "https://example.com/rain",
                "icon": "https://example.com/icon.png",
                "token": "tracking-token",
            },
            "android": {
                "ttl": "3600s",
                "priority": "HIGH",
                "collapse_key": "rain",
                "notification": {"tag": ID},
            },
        }
    }


FID = "cdEf_-0123456789abcdef"
TOKENS = [
    "dEv1ce:APA91bX",
    f"{FID}:APA91bX",
    f"{FID}x",
    FID[:-1],
    f"b{FID[1:]}",
    f"C{FID[1:]}",
    f"{FID[:-1]}.",
    f"{FID[:-1]}é",
    f"{FID}\n",
]


@pytest.mark.parametrize(
    ("address", "field"),
    [(FID, "fid"), ("f" * 22, "fid"), *((token, "token") for token in TOKENS)],
)
def test_an_installation_id_and_a_token_have_their_own_fields(address, field):
    destination = Destination(DESTINATION.subscription_id, address, DESTINATION.token)
    request = build_request(make_message(), destination, URL, "ya29.c", time.monotonic())
    message = json.loads(request.body)["message"]
    assert {name: message.get(name) for name in ("fid", "token")} == {
        "fid": None,
        "token": None,
        field: address,
    }


def test_a_personal_text_does_not_put_an_installation_id_into_the_field_of_a_token():
    content = Content(title="T", body="Hi {{ name }}", ttl=60, personalize=True)
    messages = Messages(UUID(ID), content, Platform.ANDROID, expires_at=time.monotonic() + 60)
    values = values_of(platform="android", notification_id="", attributes={"name": "Ada"})
    sent = []
    for address in (DESTINATION.address, FID, DESTINATION.address):
        destination = Destination(DESTINATION.subscription_id, address, DESTINATION.token)
        message = messages.filled("", values)
        request = build_request(message, destination, URL, "ya29.c", time.monotonic())
        sent.append(json.loads(request.body)["message"])
    assert [each["notification"]["body"] for each in sent] == ["Hi Ada"] * 3
    assert [(each.get("token"), each.get("fid")) for each in sent] == [
        (DESTINATION.address, None),
        (None, FID),
        (DESTINATION.address, None),
    ]


def test_omitted_content_is_left_out():
    assert sent(title="") == {
        "token": "dEv1ce:APA91bX",
        "notification": {"body": "It rains."},
        "data": {"notification_id": ID, "token": "tracking-token"},
        "android": {"ttl": "3600s", "priority": "HIGH", "notification": {"tag": ID}},
    }


def test_the_request_goes_to_the_project_with_the_access_token():
    request = request_for()
    assert request.url == "https://fcm.googleapis.com/v1/projects/demo-app/messages:send"
    assert request.headers["Authorization"] == "Bearer ya29.c"
    assert request.headers["Content-Type"] == "application/json; charset=UTF-8"


def test_the_icon_replaces_a_missing_image():
    assert sent(icon="https://example.com/i.png")["notification"]["image"] == (
        "https://example.com/i.png"
    )


ANDROID = {
    "channel_id": "orders", "sound": "ding", "color": "#ff8800", "small_icon": "ic_box",
    "click_action": "OPEN", "tag": "order", "count": 0, "visibility": "private",
    "notification_priority": "high", "ticker": "Order", "direct_boot_ok": True,
    "analytics_label": "spring_2026",
}  # fmt: skip
ACTIONS = [
    {"id": "buy", "title": "Kaufen 🥐", "url": "https://example.com/buy"},
    {"id": "no", "title": "No"},
]


def test_androids_own_fields_have_fcms_names():
    assert sent(android=ANDROID)["android"]["notification"] == {
        "channel_id": "orders", "sound": "ding", "color": "#ff8800", "icon": "ic_box",
        "click_action": "OPEN", "tag": "order", "notification_count": 0, "visibility": "PRIVATE",
        "notification_priority": "PRIORITY_HIGH", "ticker": "Order",
    }  # fmt: skip


@pytest.mark.parametrize("data_only", [False, True])
def test_what_fcm_itself_reads_is_beside_the_notification(data_only):
    android = sent(android=ANDROID | {"data_only": data_only})["android"]
    assert android["direct_boot_ok"] is True
    assert android["fcm_options"] == {"analytics_label": "spring_2026"}
    assert "notification" not in android if data_only else "ticker" in android["notification"]


@pytest.mark.parametrize("priority", ["min", "low", "default", "high", "max"])
def test_every_priority_of_a_notification_has_fcms_name(priority):
    message = make_message(android={"notification_priority": priority})
    request = json.loads(request_for(message).body)
    schema.check_request(request)
    notification = request["message"]["android"]["notification"]
    assert notification["notification_priority"] == f"PRIORITY_{priority.upper()}"


def test_buttons_are_in_the_data_as_json():
    assert json.loads(sent(actions=ACTIONS)["data"]["actions"]) == ACTIONS


def test_with_data_only_the_app_gets_everything_as_data():
    picture = "https://example.com/rain.png"
    message = sent(image=picture, actions=ACTIONS, android=ANDROID | {"data_only": True})

    assert message["android"] == {
        "ttl": "3600s",
        "priority": "HIGH",
        "direct_boot_ok": True,
        "fcm_options": {"analytics_label": "spring_2026"},
    }
    assert "notification" not in message
    actions = message["data"].pop("actions")
    assert json.loads(actions) == ACTIONS
    assert message["data"] == {
        "notification_id": ID,
        "title": "Rain",
        "body": "It rains.",
        "image": picture,
        "token": "tracking-token",
    }


def test_the_payload_counts_androids_own_fields():
    plain = len(payload(make_message(), DESTINATION.token))
    assert (
        len(payload(make_message(android={"channel_id": "c" * 100}), DESTINATION.token))
        > plain + 100
    )


@pytest.mark.parametrize(
    ("urgency", "priority"),
    [("very-low", "NORMAL"), ("low", "NORMAL"), ("normal", "HIGH"), ("high", "HIGH")],
)
def test_the_urgency_becomes_a_priority(urgency, priority):
    assert sent(urgency=urgency)["android"]["priority"] == priority


@pytest.mark.parametrize(
    ("ttl", "left", "expected"),
    [
        (60, 59.2, "60s"),
        (60, 0.5, "1s"),
        (60, -5.0, "1s"),
        (0, 3_600.0, "0s"),
        (2_419_200, 2_419_200.4, "2419200s"),
    ],
)
def test_the_ttl_is_the_seconds_left_rounded_up(ttl, left, expected):
    message = make_message(ttl=ttl, expires_at=1_000.0 + left)
    android = json.loads(request_for(message, now=1_000.0).body)["message"]["android"]
    assert android["ttl"] == expected


def test_our_names_override_the_senders():
    data = dict.fromkeys(["notification_id", "url", "icon", "token"], "theirs")
    assert sent(url="https://example.com/", icon="https://example.com/i.png", data=data)[
        "data"
    ] == {
        "notification_id": ID,
        "url": "https://example.com/",
        "icon": "https://example.com/i.png",
        "token": "tracking-token",
    }


def test_forbidden_names_of_data_are_reported():
    usable = ["city", "From", "gcm", "google", "tokens", "message_types"]
    unusable = [
        "notification_id", "url", "icon", "token",
        "from", "message_type", "collapse_key", "google.x", "gcm.notification.title",
    ]  # fmt: skip
    data = dict.fromkeys([*usable, *unusable], "")
    assert unusable_data_names(make_message(data=data).content) == unusable


def test_the_payload_is_what_the_app_gets():
    message = make_message(title="Blåbær 🫐", data={"city": "Zürich"})
    assert (
        payload(message, "tracking-token")
        == (
            '{"notification":{"body":"It rains.","title":"Blåbær 🫐"},'
            f'"data":{{"city":"Zürich","notification_id":"{ID}","token":"tracking-token"}}}}'
        ).encode()
    )


def filled(size):
    """A message whose payload has this many bytes."""
    empty = len(payload(make_message(data={"a": ""}), DESTINATION.token))
    return make_message(data={"a": "x" * (size - empty)})


def test_a_payload_of_exactly_the_limit_is_accepted():
    largest = filled(MAX_PAYLOAD)
    assert len(payload(largest, DESTINATION.token)) == 4_096
    assert request_for(largest).body
    with pytest.raises(PayloadTooLargeError):
        request_for(filled(MAX_PAYLOAD + 1))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=255)


@given(TEXT.filter(bool), TEXT, TEXT, TEXT, st.dictionaries(TEXT, st.text("äx\n", max_size=3_900)))
def test_a_payload_that_fits_by_our_count_fits_by_the_sandboxs(body, title, icon, url, data):
    message = make_message(body=body, title=title, icon=icon, url=url, data=data)
    if (
        unusable_data_names(message.content)
        or len(payload(message, DESTINATION.token)) > MAX_PAYLOAD
    ):
        return
    request = json.loads(request_for(message).body)
    part = {name: request["message"][name] for name in ("notification", "data")}
    assert part == json.loads(payload(message, DESTINATION.token))
    schema.check_request(request)
    assert fcm_message.checked(request).address == DESTINATION.address


def test_token_and_delivery_options_do_not_count_towards_the_payload():
    message = filled(MAX_PAYLOAD)
    long_token = Destination(DESTINATION.subscription_id, "t" * 4_096, DESTINATION.token)
    assert build_request(message, long_token, URL, "ya29.c", time.monotonic())


def test_the_repr_shows_no_secret():
    printed = f"{DESTINATION!r} {request_for()!r}"
    for secret in ("APA91b", "tracking-token", "ya29"):
        assert secret not in printed
