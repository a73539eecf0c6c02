"""Pages of lists and of the log: any position gives a page or an error, and all pages together
give every row."""

from urllib.parse import urlencode
from uuid import UUID

import pytest
from django.test import RequestFactory
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rest_framework.request import Request

from notifications_app.models import Delivery
from notifications_app.selectors import log_after
from pushsvc.common.errors import Invalid
from pushsvc.common.http.paging import DEFAULT_LIMIT, MAX_LIMIT, Page, link_header, page_from
from tests.api.support import owner_of
from tests.factories import add_subscriptions, make_channel, make_notification
from tests.pipeline.support import plan

NUMBERS = st.integers().map(str) | st.integers(0, 200).map(str)
ODD = st.text() | st.sampled_from(
    ["", " 1", "1 ", "+1", "1_0", "1.0", "1e3", "0x1", "\N{SUPERSCRIPT TWO}", "9" * 5_000, "-0"]
)
SETTINGS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def request_of(query):
    return Request(RequestFactory().get("/notifications/x", QUERY_STRING=query))


def page_of(header):
    """The page at the only address in a Link header."""
    _, _, query = header.removeprefix("<").partition("?")
    return page_from(request_of(query.partition(">")[0]))


@given(st.dictionaries(st.sampled_from(["limit", "offset"]), NUMBERS | ODD))
@example({"limit": "0"})
@example({"offset": "\N{ARABIC-INDIC DIGIT THREE}"})
def test_any_position_gives_a_page_within_bounds_or_an_error(query):
    errors, page = [], Page(DEFAULT_LIMIT, 0)
    try:
        page = page_from(request_of(urlencode(query, errors="replace")))
    except Invalid as error:
        errors = error.errors
    assert {field_error.attr for field_error in errors} <= set(query)
    assert {field_error.code for field_error in errors} <= {"out_of_range", "not_a_number"}
    if errors:
        return
    assert 1 <= page.limit <= MAX_LIMIT
    assert 0 <= page.offset <= 10**18
    for name, text in query.items():
        assert text.isascii()
        assert text.isdecimal()
        assert getattr(page, name) in {int(text[:4_000]), MAX_LIMIT, 10**18}


@given(st.integers(1, MAX_LIMIT), st.integers(0, 10**18 - MAX_LIMIT), st.booleans())
def test_links_lead_to_the_neighbouring_pages(limit, offset, is_last):
    links = link_header(request_of(""), Page(limit, offset), is_last=is_last).get("Link", "")
    around = {link.rpartition('"')[0][-4:]: page_of(link) for link in links.split(", ") if link}

    assert ("next" in around) is not is_last
    assert ("prev" in around) is (offset > 0)
    if not is_last:
        assert around["next"] == Page(limit, offset + limit)
    if offset:
        assert around["prev"] == Page(limit, max(0, offset - limit))


@pytest.fixture
def owner(db):
    owner = owner_of(make_channel())
    for _ in range(7):
        make_notification(owner.channel)
    return owner


@SETTINGS
@given(
    st.one_of(st.none(), NUMBERS, ODD),
    st.one_of(st.none(), NUMBERS, ODD),
)
@example("1", "9" * 30)
@example("\x00", "\x00")
def test_a_list_is_cut_where_the_query_says(owner, limit, offset):
    given_ = {"limit": limit, "offset": offset}
    query = urlencode(
        {name: text for name, text in given_.items() if text is not None}, errors="replace"
    )
    whole = owner.call("GET", f"/notifications/{owner.channel.id}").json()

    answer = owner.call("GET", f"/notifications/{owner.channel.id}?{query}")

    assert answer.status_code in {200, 400}
    if answer.status_code == 200:
        start = int((offset or "0")[:18])
        assert answer.json() == whole[start : start + min(int((limit or "50")[:18]), MAX_LIMIT)]
    assert len(whole) == 7 < DEFAULT_LIMIT


@pytest.fixture
def recipients(db):
    """The recipients of one notification, among those of another."""
    channel = make_channel()
    rows = add_subscriptions(channel, 23)
    first, second = make_notification(channel), make_notification(channel)
    plan()
    assert Delivery.objects.filter(notification_id=second.id).count() == 23
    return first, [row.id for row in rows]


@SETTINGS
@given(st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_the_logs_pages_of_any_size_hold_every_recipient_once(recipients, sizes):
    notification, ids = recipients
    after, read = UUID(int=0), []
    for _ in range(len(ids) + 1):
        limit = sizes[len(read) % len(sizes)]
        page = log_after(notification.id, after=after, limit=limit)
        read += [recipient.subscription_id for recipient in page]
        after = read[-1]

    assert read == sorted(ids)


@SETTINGS
@given(st.uuids())
def test_a_log_continues_after_any_id(recipients, after):
    notification, ids = recipients

    page = log_after(notification.id, after=after, limit=100)

    assert [recipient.subscription_id for recipient in page] == [id_ for id_ in ids if id_ > after]
