import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from notifications_app import selectors
from notifications_app.models import Notification
from pushsvc.common.store import sql
from tests.api.support import NOWHERE, NOWHERE_BARE, code, errors, owner_of
from tests.factories import make_notification
from tests.pipeline.support import most_rows_read

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


def test_only_notifications_of_a_status_are_listed(alice):
    rows = stored(alice, 5)
    sent = [rows[1], rows[4]]
    Notification.objects.filter(pk__in=[row.pk for row in sent]).update(status="sent")

    assert ids(listed(alice, "?status=sent")) == [str(row.id) for row in sent]
    assert ids(listed(alice, "?status=failed")) == []


@pytest.mark.parametrize(
    ("query", "days"),
    [
        ("?scheduled_after=2026-11-03T00:00:00Z", [4, 3]),
        ("?scheduled_before=2026-11-03T00:00:00Z", [2, 1]),
        ("?scheduled_after=2026-11-02T00:00:00Z&scheduled_before=2026-11-03T00:00Z", [2]),
        ("?scheduled_after=2026-11-03T02:00:00%2B02:00", [4, 3]),
        ("?scheduled_after=2026-11-02T00:00:00Z&status=sent", [3]),
        ("?scheduled_after=2026-11-05T00:00:00Z", []),
    ],
)
def test_only_notifications_of_a_period_are_listed(alice, bob, query, days):
    """It begins with `scheduled_after`, and ends before `scheduled_before`."""
    for number in range(1, 5):
        status = "sent" if number % 2 else "pending"
        scheduled_at = datetime(2026, 11, number, tzinfo=UTC)
        make_notification(alice.channel, scheduled_at=scheduled_at, status=status)
        make_notification(bob.channel, scheduled_at=scheduled_at, status=status)

    found = [entry["scheduled_at"] for entry in listed(alice, query).json()]

    assert found == [f"2026-11-0{day}T00:00:00.000Z" for day in days]


def test_links_keep_what_is_listed(alice):
    rows = stored(alice, 6)
    Notification.objects.filter(pk__in=[row.pk for row in rows[::2]]).update(status="sent")

    first = listed(alice, "?limit=2&status=sent&scheduled_after=2026-11-01T00:00:00%2B00:00")

    following = alice.call("GET", links(first)["next"])
    assert ids(first) + ids(following) == [str(row.id) for row in rows[::2]]
    assert "next" not in links(following)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?status=Sent", [("status", "not_a_choice")]),
        ("?status=", [("status", "not_a_choice")]),
        ("?status=sent,failed", [("status", "not_a_choice")]),
        ("?scheduled_after=yesterday", [("scheduled_after", "not_a_timestamp")]),
        ("?scheduled_before=2026-11-20", [("scheduled_before", "not_a_timestamp")]),
        ("?scheduled_after=2026-11-20T00:00:00+02:00", [("scheduled_after", "not_a_timestamp")]),
        ("?scheduled_befor=2026-11-20T00:00:00Z", [("scheduled_befor", "unknown_field")]),
    ],
)
def test_what_no_notification_can_match_is_an_error(alice, query, expected):
    assert errors(listed(alice, query, status=400)) == expected


PERIOD = {
    "scheduled_after": FIRST - timedelta(days=9),
    "scheduled_before": FIRST - timedelta(days=9, hours=-1),
}


@pytest.mark.parametrize(
    "only",
    [{"status": each} for each in ("pending", "processing", "failed", "cancelled")]
    + [PERIOD, PERIOD | {"status": "failed"}],
    ids=str,
)
def test_a_filtered_list_reads_few_rows_of_a_long_one(alice, only):
    """Of 20,000, sent one a minute until FIRST."""
    sql.execute(_MANY, {"channel": alice.channel.id, "last": FIRST})
    sql.execute("ANALYZE notifications_app_notification", {})
    of = {"channel_id": alice.channel.id, "limit": 51, "offset": 0} | only

    assert most_rows_read(lambda: selectors.notification_page(**of)) <= 100


def test_a_list_of_a_period_does_not_read_what_was_sent_later(alice):
    sql.execute(_MANY, {"channel": alice.channel.id, "last": FIRST})
    sql.execute("ANALYZE notifications_app_notification", {})
    day = FIRST - timedelta(days=12)
    of = {"scheduled_after": day, "scheduled_before": day + timedelta(days=1)}
    page = {"channel_id": alice.channel.id, "limit": 51, "offset": 51} | of

    assert most_rows_read(lambda: selectors.notification_page(**page)) <= 24 * 60

    own = Notification.objects.filter(
        scheduled_at__gte=day, scheduled_at__lt=day + timedelta(days=1)
    )
    assert selectors.notification_page(**page) == list(own.order_by("-id")[51:102])
    sent = selectors.notification_page(**page, status="sent")
    assert sent == list(own.filter(status="sent").order_by("-id")[51:102])


def test_a_list_of_a_label_reads_few_notifications_that_do_not_have_it(alice, bob):
    """Alice's oldest have it, and all of Bob's."""
    for house, age in ((alice, timedelta(minutes=19_800)), (bob, timedelta(0))):
        sql.execute(_MANY, {"channel": house.channel.id, "last": FIRST})
        sql.execute(_LABEL, {"channel": house.channel.id, "until": FIRST - age})
    sql.execute("ANALYZE notifications_app_notification", {})
    of = {"channel_id": alice.channel.id, "limit": 51, "offset": 0, "label": 'the "news"'}

    assert most_rows_read(lambda: selectors.notification_page(**of)) <= 200

    oldest = list(Notification.objects.filter(channel=alice.channel).order_by("id")[:200])
    assert selectors.notification_page(**of) == oldest[:-52:-1]


_LABEL = """
UPDATE notifications_app_notification SET labels = '["the \\"news\\"", "sale"]'
WHERE channel_id = %(channel)s AND scheduled_at < %(until)s
"""
_MANY = """
INSERT INTO notifications_app_notification
    (id, channel_id, body, data, ttl, target_platforms, created_at, scheduled_at, status)
SELECT overlay(gen_random_uuid()::text PLACING to_char(at, 'YYYYMMDD-HH24MI') FROM 1)::uuid,
    %(channel)s, repeat('Bread ', 10), '{}', 3600, '["web"]', at, at,
    CASE number %% 2000 WHEN 1 THEN 'pending' WHEN 2 THEN 'processing' WHEN 3 THEN 'failed'
    WHEN 4 THEN 'cancelled' ELSE 'sent' END
FROM generate_series(1, 20000) AS number,
    LATERAL (SELECT %(last)s - number * interval '1 minute' AS at) AS times
"""


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
