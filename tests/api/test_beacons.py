"""Which reports of devices a web process counts without Django, and which ones it passes on."""

import http.client
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psutil
import pytest
from django.db import connection, transaction

from notifications_app.events import AT_ONCE, MAX_EVENTS
from notifications_app.models import Delivery, HourlyStat
from tests.api.events import counts, reached
from tests.api.support import owner_of
from tests.factories import make_channel
from tests.pipeline.support import until, waiting_sessions

TEXT = {"Content-Type": "text/plain;charset=UTF-8"}
ORIGIN = {"Origin": "https://shop.example"}


@pytest.fixture
def alice(transactional_db):
    return owner_of(make_channel())


def report(web, body, path="/events", **headers):
    """The status, the headers without those of the moment, and the body."""
    with closing(http.client.HTTPConnection("127.0.0.1", web, timeout=60)) as asking:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        asking.request("POST", path, data, {**TEXT, **headers})
        answer = asking.getresponse()
        of_moment = {"x-request-id", "date"}
        found = {name.lower(): value for name, value in answer.getheaders()}
        kept = {name: value for name, value in found.items() if name not in of_moment}
        return answer.status, kept, answer.read()


def click(token, **more):
    return {"token": token, "event": "clicked", **more}


@pytest.mark.parametrize(
    "headers", [{}, ORIGIN, {"Cookie": "sessionid=x"}, {"Accept": "text/html"}]
)
def test_the_response_is_that_of_the_view(alice, web, headers):
    notification, (one, other) = reached(alice, 2)

    quick = report(web, {"events": [click(one)]}, **headers)
    of_view = report(web, {"events": [click(other)]}, path="/events/", **headers)

    assert quick[0] == 204
    assert quick == of_view
    assert counts(notification) == (2, 2, 0)


@pytest.mark.parametrize(
    ("change", "headers", "status"),
    [
        (lambda body: body, {"Host": "elsewhere.example"}, 400),
        (lambda body: body, {"Content-Type": "text/html"}, 415),
        (lambda body: body, {"Content-Encoding": "gzip"}, 415),
        (lambda body: body[:-1], {}, 400),
        (lambda body: body.replace(b"clicked", b"opened"), {}, 400),
        (lambda body: body.replace(b'"clicked"', b'["clicked"]'), {}, 400),
        (lambda body: body.replace(b'"clicked"', b"{}"), {}, 400),
        (lambda body: body.replace(b'"event"', b'"at": 1, "event"'), {}, 400),
        (lambda body: body.replace(b'{"events"', b'{"x": 1, "events"'), {}, 400),
        (lambda body: body + b" " * 9_000, {}, 413),
        (lambda body: b"", {}, 400),
    ],
)
def test_what_the_view_refuses_is_refused_as_by_the_view(alice, web, change, headers, status):
    notification, (token,) = reached(alice, 1)
    body = change(json.dumps({"events": [click(token)]}).encode())

    quick = report(web, body, **headers)
    of_view = report(web, body, path="/events/", **headers)

    assert quick[0] == status
    assert quick[:2] == of_view[:2]
    assert counts(notification) == (0, 0, 0)


def test_clicks_at_once_are_each_counted_once(alice, web):
    notification, tokens = reached(alice, 60)
    bodies = [{"events": [click(token)]} for token in [*tokens, *tokens]]

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda body: report(web, body)[0], bodies))

    assert set(answers) == {204}
    assert counts(notification) == (60, 60, 0)
    assert sum(HourlyStat.objects.values_list("clicked", flat=True)) == 60


def test_reports_that_arrive_while_others_are_counted_are_counted_together(alice, web):
    notification, tokens = reached(alice, 12)
    with ThreadPoolExecutor(12) as pool:
        with transaction.atomic():
            type(notification).objects.select_for_update().get(pk=notification.pk)
            first = pool.submit(report, web, {"events": [click(tokens[0])]})
            until(lambda: waiting_sessions() == 1)
            others = [pool.submit(report, web, {"events": [click(each)]}) for each in tokens[1:]]
            until(lambda: in_flight_of(web) >= 12)
            assert waiting_sessions() == 1
        assert {each.result()[0] for each in [first, *others]} == {204}
    assert counts(notification) == (12, 12, 0)


def test_a_group_of_large_reports_has_a_bounded_number_of_events(alice, web):
    """Each statement gives its events one time."""
    notification, tokens = reached(alice, AT_ONCE + 5 * MAX_EVENTS)
    bodies = [
        {"events": [click(each) for each in tokens[start : start + MAX_EVENTS]]}
        for start in range(0, len(tokens), MAX_EVENTS)
    ]
    with ThreadPoolExecutor(len(bodies)) as pool:
        with transaction.atomic():
            type(notification).objects.select_for_update().get(pk=notification.pk)
            begun = [pool.submit(report, web, body) for body in bodies]
            until(lambda: in_flight_of(web) >= len(bodies))
        assert {each.result()[0] for each in begun} == {204}

    assert counts(notification) == (len(tokens), len(tokens), 0)
    clicks = Delivery.objects.filter(notification_id=notification.pk)
    assert max(Counter(clicks.values_list("clicked_at", flat=True)).values()) <= AT_ONCE


def in_flight_of(web):
    return sum(each.laddr.port == web for each in psutil.net_connections("tcp") if each.raddr)


def test_a_report_is_answered_while_its_group_cannot_be_counted(alice, web):
    """Django tries again and responds to the error."""
    notification, (token,) = reached(alice, 1)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE notifications_app_eventhour RENAME TO away")
    try:
        assert report(web, {"events": [click(token)]})[0] == 500
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE away RENAME TO notifications_app_eventhour")

    assert report(web, {"events": [click(token)]})[0] == 204
    assert counts(notification) == (1, 1, 0)
