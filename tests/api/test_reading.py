import re
from datetime import UTC, datetime

import pytest
from django.test import Client

from notifications_app.models import Notification
from tests.api.support import NOWHERE, NOWHERE_BARE, code, errors, owner_of
from tests.factories import make_notification

pytestmark = pytest.mark.django_db

LISTED = [
    "notification_id", "title", "body", "icon", "url", "recipient_count", "delivered_count",
    "bounced_count", "clicked_count", "scheduled_at", "created_at", "status", "target_platforms",
    "segment_id",
]  # fmt: skip
READ = [LISTED[0], "channel_id", *LISTED[1:]]
FIRST = datetime(2026, 11, 20, 15, 11, 0, 123456, tzinfo=UTC)


def listed(owner, query="", status=200):
    response = owner.call("GET", f"/notifications/{owner.channel.id}{query}")
    assert response.status_code == status, response.content
    return response


def stored(owner, count):
    """Notifications, newest first; those of one moment by id."""
    rows = [
        make_notification(
            owner.channel, created_at=FIRST.replace(minute=number // 2), scheduled_at=FIRST
        )
        for number in range(count)
    ]
    return sorted(rows, key=lambda row: (row.created_at, row.id), reverse=True)


def ids(response):
    return [entry["notification_id"] for entry in response.json()]


def links(response):
    found = re.findall(r'<([^>]+)>; rel="(\w+)"', response.headers.get("Link", ""))
    return {rel: address for address, rel in found}


def test_a_notification_has_the_documented_fields(alice):
    notification_id = alice.send(
        {
            "body": "Fresh bread",
            "title": "Bread",
            "icon": "https://shop.example/i.png",
            "url": "https://shop.example/",
            "scheduled_at": "2026-11-20T16:11:00.123+01:00",
            "image": "https://shop.example/image.png",
            "data": {"k": "v"},
        }
    ).json()["notification_id"]
    Notification.objects.update(
        status="sent", recipient_count=3, delivered_count=2, bounced_count=1, clicked_count=5,
        created_at=FIRST,
    )  # fmt: skip

    response = alice.call("GET", f"/notification/{notification_id}")

    assert response.status_code == 200
    assert list(response.json()) == READ
    assert response.json() == {
        "notification_id": notification_id,
        "channel_id": str(alice.channel.id),
        "title": "Bread",
        "body": "Fresh bread",
        "icon": "https://shop.example/i.png",
        "url": "https://shop.example/",
        "recipient_count": 3,
        "delivered_count": 2,
        "bounced_count": 1,
        "clicked_count": 5,
        "scheduled_at": "2026-11-20T15:11:00.123Z",
        "created_at": "2026-11-20T15:11:00.123Z",
        "status": "sent",
        "target_platforms": ["web"],
        "segment_id": None,
    }
    (entry,) = listed(alice).json()
    assert list(entry) == LISTED
    assert entry == {k: v for k, v in response.json().items() if k != "channel_id"}


def test_omitted_texts_read_as_empty(alice):
    alice.send({"body": "x"})
    (entry,) = listed(alice).json()
    assert [entry[name] for name in ("title", "icon", "url")] == ["", "", ""]


@pytest.mark.parametrize("status", ["pending", "processing", "sent", "failed", "cancelled"])
def test_notifications_of_every_status_are_listed(alice, status):
    stored(alice, 1)
    Notification.objects.update(status=status)
    assert [entry["status"] for entry in listed(alice).json()] == [status]


def test_a_page_of_the_list_holds_fifty_newest_first(alice, bob):
    rows = stored(alice, 60)
    stored(bob, 3)
    assert ids(listed(alice)) == [str(row.id) for row in rows[:50]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?limit=3", slice(0, 3)),
        ("?limit=3&offset=2", slice(2, 5)),
        ("?offset=5", slice(5, 55)),
        ("?limit=100", slice(0, 100)),
        ("?limit=101", slice(0, 100)),
        ("?limit=" + "9" * 5000, slice(0, 100)),
        ("?limit=1&offset=119", slice(119, 120)),
        ("?offset=120", slice(0)),
        ("?offset=" + "9" * 19, slice(0)),
        ("?offset=" + "9" * 5000, slice(0)),
        ("?limit=003", slice(0, 3)),
        ("/?limit=2&unknown=x", slice(0, 2)),
    ],
)
def test_limit_and_offset_choose_the_page(alice, query, expected):
    rows = stored(alice, 120)
    assert ids(listed(alice, query)) == [str(row.id) for row in rows[expected]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?limit=0", [("limit", "out_of_range")]),
        ("?limit=-1", [("limit", "out_of_range")]),
        ("?offset=-1", [("offset", "out_of_range")]),
        ("?limit=", [("limit", "not_a_number")]),
        ("?limit=1.0", [("limit", "not_a_number")]),
        ("?limit=1e1", [("limit", "not_a_number")]),
        ("?limit=%2B1", [("limit", "not_a_number")]),
        ("?limit=%201", [("limit", "not_a_number")]),
        ("?limit=1_0", [("limit", "not_a_number")]),
        ("?limit=%D9%A3", [("limit", "not_a_number")]),
        ("?limit=1%00", [("limit", "not_a_number")]),
        ("?offset=null", [("offset", "not_a_number")]),
        ("?limit=x&offset=-5", [("limit", "not_a_number"), ("offset", "out_of_range")]),
    ],
)
def test_an_invalid_limit_or_offset_is_refused(alice, query, expected):
    assert errors(listed(alice, query, status=400)) == expected


def test_links_lead_over_every_notification_once_and_back(alice):
    rows = stored(alice, 25)
    address, seen, pages = f"/notifications/{alice.channel.id}?limit=10", [], []
    while address:
        response = alice.call("GET", address)
        seen += ids(response)
        pages.append(response)
        address = links(response).get("next")
    assert seen == [str(row.id) for row in rows]
    assert "prev" not in links(pages[0])
    assert ids(alice.call("GET", links(pages[2])["prev"])) == ids(pages[1])
    assert ids(alice.call("GET", links(pages[1])["prev"])) == ids(pages[0])


def test_the_last_page_has_no_next_link(alice):
    stored(alice, 10)
    assert links(listed(alice, "?limit=10")) == {}
    assert links(listed(alice, "?limit=9&offset=1")).keys() == {"prev"}
    assert links(listed(alice, "?limit=9")).keys() == {"next"}


def test_links_use_the_public_address(alice, settings):
    stored(alice, 2)
    path = f"/notifications/{alice.channel.id}?limit=1&offset=1"
    assert links(listed(alice, "?limit=1"))["next"] == f"http://testserver{path}"
    settings.PUBLIC_BASE_URL = "https://push.example.com"
    assert links(listed(alice, "?limit=1"))["next"] == f"https://push.example.com{path}"


def test_the_list_of_an_empty_channel_is_empty(alice):
    assert listed(alice).json() == []


def test_a_long_list_takes_no_more_queries_than_a_short_one(alice, django_assert_max_num_queries):
    stored(alice, 120)
    listed(alice)  # stores the key's last use
    with django_assert_max_num_queries(2):
        assert len(listed(alice, "?limit=100").json()) == 100


def test_ids_are_read_in_either_case(alice):
    (row,) = stored(alice, 1)
    assert alice.call("GET", f"/notification/{str(row.id).upper()}/").status_code == 200
    assert alice.call("GET", f"/notifications/{str(alice.channel.id).upper()}").status_code == 200


@pytest.mark.parametrize("name", ["x", NOWHERE_BARE, f"{NOWHERE}%0A", f"{NOWHERE}/x"])
@pytest.mark.parametrize("path", ["/notification", "/notifications"])
def test_an_invalid_id_is_not_found(alice, path, name):
    errors(alice.call("GET", f"{path}/{name}"), 404)


def test_only_a_key_with_the_scope_may_read(alice):
    (row,) = stored(alice, 1)
    sender = owner_of(alice.channel, scopes=["send", "manage"])
    for path in (f"/notification/{row.id}", f"/notifications/{alice.channel.id}"):
        assert code(sender.call("GET", path), 403) == "missing_scope"
        errors(Client().get(path), 401)
        assert owner_of(alice.channel, scopes=["read"]).call("GET", path).status_code == 200
        assert alice.call("POST", path, {}).status_code == 405
