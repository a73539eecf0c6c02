"""How many threads of a web process each kind of request may hold, and what is still answered.

Over real sockets, with requests that wait for a lock of the database.
"""

import asyncio
import json
import re
import select
import selectors
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Event

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client

from channels_app import keys
from pushsvc.web.bulkhead import (
    ADDRESS_IN_HEALTH,
    ADDRESS_IN_QUARTER,
    DOWNLOADS,
    IN_FLIGHT,
    OF_KEY_IN_DOWNLOADS,
    QUARTER,
    QUARTERS,
    THREADS,
    Bulkhead,
    Busy,
)
from tests.api.sockets import sent_in_pieces
from tests.api.support import owner_of
from tests.api.test_connections import post
from tests.api.test_web_process import ask
from tests.factories import add_subscription, browser, make_channel, make_sent_notification
from tests.pipeline.processes import running_web
from tests.pipeline.support import until, waiting_sessions

FULL = sum(QUARTER)  # a quarter of the threads, and as many that wait


@pytest.fixture
def owner(transactional_db):
    return owner_of(make_channel())


@contextmanager
def locked(table):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


def opened_by_several(opened, data, count=FULL):
    """So many connections, from as few addresses as their shares allow."""
    share = ADDRESS_IN_QUARTER.waiting
    counts = [min(share, count - begun) for begun in range(0, count, share)]
    addresses = (f"127.0.0.{number}" for number in range(2, 200))
    made = [opened(each, data, address=next(addresses)) for each in counts]
    return [connection for each in made for connection in each]


def get(path, header):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n".encode()


def assert_serves(port, owner):
    """A browser subscribes and its owner sends."""
    assert post(port, "/subscribe", browser(), f"X-Channel-ID: {owner.channel.id}") == 201
    assert post(port, "/send-notification", {"body": "x"}, f"Authorization: Key {owner.key}") == 202


def status_and_headers(connection):
    with connection.makefile("rb") as file:
        status = int(file.readline().split()[1])
        lines = iter(file.readline, b"\r\n")
        return status, dict(line.decode().strip().lower().split(": ", 1) for line in lines)


def statuses(connections):
    return {status_and_headers(each)[0] for each in connections}


def test_hanging_pages_of_the_console_hold_a_quarter_of_the_threads(web, opened, owner):
    page = get("/admin/", "Cookie: sessionid=" + "a" * 32)
    with locked("django_session"):
        held = opened_by_several(opened, page)
        until(lambda: waiting_sessions() == QUARTER.threads, seconds=60)

        assert_serves(web, owner)
        assert waiting_sessions() == QUARTER.threads
        (refused,) = opened(1, page)
        status, headers = status_and_headers(refused)
        assert (status, headers["retry-after"]) == (503, "1")
        assert headers["content-type"].startswith("text/html")
        assert "content-security-policy" in headers
    assert statuses(held) == {302}


def test_hanging_reads_hold_a_quarter_of_the_threads(web, opened, owner):
    listed = get(f"/channel/{owner.channel.id}/segments", f"Authorization: Key {owner.key}")
    with locked("subscriptions_app_segment"):
        held = opened_by_several(opened, listed)
        until(lambda: waiting_sessions() == QUARTER.threads, seconds=60)

        assert_serves(web, owner)
        assert waiting_sessions() == QUARTER.threads
        status, problem = ask(web, listed.decode())
        assert (status, problem["code"]) == (503, "busy")
    assert statuses(held) == {200}


def test_hanging_exports_leave_their_threads_to_reads_and_one_to_other_keys(web, opened, owner):
    notification = make_sent_notification(owner.channel)
    exported = get(f"/channel/{owner.channel.id}/subscriptions", f"Authorization: Key {owner.key}")
    other = owner_of(owner.channel)
    with locked("subscriptions_app_subscription"):
        made = opened(sum(OF_KEY_IN_DOWNLOADS) + 1, exported)
        until(lambda: waiting_sessions() == OF_KEY_IN_DOWNLOADS.threads, seconds=60)
        (refused,) = first_answered(made)
        assert statuses([refused]) == {503}
        held = [each for each in made if each is not refused]
        held += opened(1, exported.replace(owner.key.encode(), other.key.encode()))
        until(lambda: waiting_sessions() == DOWNLOADS.threads, seconds=60)
        read = get(f"/notification/{notification.pk}", f"Authorization: Key {owner.key}")
        assert ask(web, read.decode())[0] == 200
    assert statuses(held) == {200}


def test_invented_keys_take_no_place_of_an_export(web, opened, owner):
    exported = get(f"/channel/{owner.channel.id}/subscriptions", f"Authorization: Key {owner.key}")
    invented = [
        exported.replace(owner.key.encode(), keys.generate()[0].encode())
        for _ in range(sum(DOWNLOADS))
    ]
    with locked("channels_app_apikey"):
        held = [each for made in invented for each in opened(1, made)]
        until(lambda: waiting_sessions() > DOWNLOADS.threads, seconds=60)
        (mine,) = opened(1, exported)
        assert select.select([mine], [], [], 1)[0] == []  # it is not refused
    assert status_and_headers(mine)[0] == 200
    assert statuses(held) <= {401, 429}


def test_hanging_images_leave_their_threads_to_reads(web, opened, owner):
    notification = make_sent_notification(owner.channel)
    with locked("notifications_app_image"):
        held = opened_by_several(opened, get(f"/images/{'0' * 32}.png", "Accept: image/png"))
        until(lambda: waiting_sessions() == QUARTER.threads, seconds=60)
        read = get(f"/notification/{notification.pk}", f"Authorization: Key {owner.key}")
        assert ask(web, read.decode())[0] == 200
        assert_serves(web, owner)
    assert statuses(held) == {404}


def test_a_head_of_an_export_reads_no_rows(opened, owner):
    """The rows name the browser's VAPID key."""
    add_subscription(owner.channel)
    exported = get(f"/channel/{owner.channel.id}/subscriptions", f"Authorization: Key {owner.key}")
    with locked("channels_app_vapidkey"):
        asked = opened(1, exported.replace(b"GET", b"HEAD"))
        assert statuses(asked) == {200}


def test_one_address_leaves_a_thread_and_places_to_others(web, opened, owner):
    listed = get(f"/channel/{owner.channel.id}/segments", f"Authorization: Key {owner.key}")
    share = ADDRESS_IN_QUARTER
    with locked("subscriptions_app_segment"):
        held = opened(share.threads, listed)
        until(lambda: waiting_sessions() == share.threads, seconds=60)
        held += opened(share.waiting + 1, listed)
        (refused,) = first_answered(held)
        assert statuses([refused]) == {503}
        assert waiting_sessions() == share.threads

        held += opened(1, listed, address="127.0.0.2")
        until(lambda: waiting_sessions() == QUARTER.threads, seconds=60)
    held.remove(refused)
    assert statuses(held) == {200}


def test_hanging_exports_leave_the_console_its_threads(web, opened, owner):
    notification = make_sent_notification(owner.channel)
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    signed_in = f"Cookie: sessionid={client.cookies['sessionid'].value}"
    export = get(f"/admin/notifications_app/notification/{notification.pk}/log.csv", signed_in)
    with locked("auditlog_logentry"):
        held = opened_by_several(opened, export, 2 * ADDRESS_IN_QUARTER.waiting)
        until(lambda: waiting_sessions() == QUARTER.threads, seconds=60)

        assert_serves(web, owner)
        assert statuses(opened(1, get("/admin/", signed_in))) == {200}
        assert waiting_sessions() == QUARTER.threads
    assert statuses(held) == {200}


def first_answered(connections):
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(60)]


def subscribe_of(owner):
    body = json.dumps(browser())
    return (
        f"POST /subscribe HTTP/1.1\r\nHost: localhost\r\nX-Channel-ID: {owner.channel.id}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def test_health_is_told_while_all_threads_hang(web, opened, owner):
    with locked("subscriptions_app_subscription"):
        held = [one for _ in range(THREADS) for one in opened(1, subscribe_of(owner))]
        until(lambda: waiting_sessions() == THREADS, seconds=60)

        for path in ("/healthz", "/readyz/"):
            assert statuses(opened(1, get(path, "X: 1"))) == {200}
        assert waiting_sessions() == THREADS
    assert statuses(held) == {201}


def test_one_address_leaves_places_for_the_health_checks_of_others():
    async def flood(path, pool):
        queue, is_over = Bulkhead(pool).queue("GET", path), Event()
        flooding = [
            asyncio.ensure_future(queue.run(is_over.wait, "127.0.0.2"))
            for _ in range(sum(ADDRESS_IN_HEALTH))
        ]
        await asyncio.sleep(0)  # so that all of them wait
        try:
            with pytest.raises(Busy):
                queue.require_room("127.0.0.2")
            queue.require_room("127.0.0.3")
        finally:
            is_over.set()
            await asyncio.gather(*flooding)

    with ThreadPoolExecutor(1) as pool:
        for path in ("/healthz", "/readyz/"):
            asyncio.run(flood(path, pool))


def test_a_request_that_waits_too_long_for_a_thread_is_refused(owner, tmp_path):
    with running_web(tmp_path / "log", WEB_WAIT_SECONDS="1") as address, ExitStack() as stack:
        port = int(address.rpartition(":")[2])

        def subscribing():
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
            one.sendall(subscribe_of(owner))
            return one

        with locked("subscriptions_app_subscription"):
            held = [subscribing() for _ in range(THREADS)]
            until(lambda: waiting_sessions() == THREADS, seconds=60)
            status, headers = status_and_headers(subscribing())
            assert (status, headers["retry-after"]) == (503, "1")
        assert statuses(held) == {201}


def test_an_address_has_a_limited_number_of_requests_in_flight(web, opened, owner):
    subscribe = subscribe_of(owner)
    with locked("subscriptions_app_subscription"):
        held = opened(IN_FLIGHT + 1, subscribe)
        (refused,) = first_answered(held)
        assert statuses([refused]) == {503}
        head, body = subscribe.split(b"\r\n\r\n")
        head = re.sub(rb"Length: \d+", b"Length: 60000", head)
        long = head + b"\r\n\r\n" + body.ljust(60_000)
        assert statuses([sent_in_pieces(one, long, 4) for one in opened(1)]) == {503}
        # Not earlier, because a silent connection is closed after a few seconds.
        elsewhere = socket.create_connection(("127.0.0.1", web), 60, ("127.0.0.2", 0))
        elsewhere.sendall(get("/healthz", "X: 1"))
    with elsewhere:
        assert statuses([elsewhere]) == {200}
    held.remove(refused)
    assert statuses(held) <= {200, 201, 429}


@pytest.mark.parametrize(
    ("method", "path", "quarter"),
    [
        ("GET", "/admin/notifications_app/notification/1/log.csv", 0),
        ("GET", "/admin/subscriptions_app/subscription/export/1", 0),
        ("GET", "/admin/notifications_app/notification/export/notifications.csv", 0),
        ("GET", "/admin/a" + "/export" * 4_000 + "/x\n", 0),
        ("GET", "/images/019aa2f05a3e7c119f3a3f0c6d1f7b52.png", 0),
        ("POST", "/admin/subscriptions_app/subscription/export/1", 1),
        ("GET", "/admin", 1),
        ("GET", "/admin/x\ny", 1),
        ("POST", "/admin/login/", 1),
        ("GET", "/administration", None),
        ("GET", "/notifications/1", 2),
        ("HEAD", "/channel", 2),
        ("GET", "/channel/1/platforms", 2),
        ("GET", "/notification/1/details", 2),
        ("GET", "/metrics", 2),
        ("PUT", "/channel/1/providers", None),
        ("POST", "/subscribe", None),
        ("GET", "/", None),
        ("GET", "*", None),
        ("GET", "", None),
    ],
)
def test_each_path_belongs_to_its_quarter_of_the_threads(method, path, quarter):
    found = [number for number, fits in enumerate(QUARTERS.values()) if fits(method, path)]
    assert (found[0] if found else None) == quarter
