"""What requests without a key leave in the database, in Redis, at the broker and in the logs.

Every route of the URL configuration is asked, with valid and with invalid requests. docs/limits.md
states what each may cost at most.
"""

import http.client
import json
import re
from urllib.parse import urlencode, urlsplit

import pytest
from django.contrib.staticfiles.finders import get_finders
from django.db import connection
from django.urls import get_resolver
from django_celery_beat.models import PeriodicTask

from pushsvc.celery import app
from pushsvc.common.store import sql
from pushsvc.common.store.redis_client import redis_client
from tests.admin.console.test_scope import patterns
from tests.admin.support import make_house, make_root
from tests.api.support import accepted, owner_of
from tests.factories import browser, make_channel, subscribe_browsers
from tests.isolation.operations import ALL
from tests.pipeline.processes import running_web
from tests.pipeline.support import end_time, is_sent, until

# Tables in which a request without a key may make a row, with the bound that docs/limits.md names.
ROWS = {
    "subscriptions_app_subscription",  # those of a channel
    "channels_app_channelcounter",  # shards of a channel
    "channels_app_channelhour",  # shards of a channel's hour
    "channels_app_prompthour",  # shards of a channel's hour, for each kind of prompt
    "axes_accessattempt",  # kept for minutes
}
# Keys without an expiry; there are as many as queues, worker processes and open breakers, and two
# for metrics.
FIXED_KEYS = re.compile(
    r"pushsvc:workers:\w+|pushsvc:clocks|pushsvc:breaker:(open|probes)|pushsvc:metrics:(sums|processes)"
    r"|_kombu\.binding[\w.]*|unacked\w*|tick|plan|web"
)
OPEN_BREAKERS = "pushsvc:breaker:open"
MOST_LIMITS = 13  # keys for one address
MOST_LOGGED = 500  # bytes for one request
MOST_ANSWERED = 448 * 1024  # bytes: /openapi.json is the longest, and grows with the API
LONGEST_FILE = 4 * 1024 * 1024
ID = "0192f0c1-0000-7000-8000-00000000dead"
TOKEN = "A" * 64
CSRF = "b" * 32  # anybody may make one up, for cookie and form alike
COOKIES = f"sessionid={'a' * 32}; csrftoken={CSRF}; messages={'c' * 500}"
FORM = "application/x-www-form-urlencoded"


def api_paths():
    yield from ("/" + re.sub(r"<[^>]+>", ID, each.route) for each in ALL)
    yield from (f"/c/{TOKEN}", "/nowhere", "/static/nothing.js", "/admin/login/")
    yield f"/{'x' * 6_000}?{'y' * 6_000}"


def console_paths():
    for pattern in patterns(get_resolver().url_patterns):
        route = getattr(pattern.pattern, "_route", None)
        if pattern.name is not None and route is not None:
            yield f"/admin/{re.sub(r'<[^>]+>', ID, route)}"


def bodies():
    """(Content-Type, body)"""
    yield "application/json", json.dumps(browser())
    yield "application/json", json.dumps(browser(f"https://push.example.com/{'x' * 900}"))
    yield "application/json", json.dumps({"events": [{"token": TOKEN, "event": "clicked"}]})
    yield "application/json", json.dumps({"kind": "bell", "event": "shown"})
    yield "application/json", "[" * 30_000
    yield "text/plain", "\x00"
    guess = {"login": "nobody\n" * 20, "password": "guess", "csrfmiddlewaretoken": CSRF}
    yield FORM, urlencode(guess | {"x": "y" * 9_000})


def headers_of(channel):
    yield {}
    yield {"X-Channel-ID": channel, "Authorization": "Key " + "x" * 3_000}
    yield {"X-Channel-ID": channel, "Host": "elsewhere.example"}
    yield {"Cookie": COOKIES}


def requests(channel):
    """(method, path, headers, body)"""
    for path in dict.fromkeys(api_paths()):
        yield from (("GET", path, headers, None) for headers in headers_of(channel))
        for content_type, body in bodies():
            headers = {"Content-Type": content_type, "X-Channel-ID": channel, "Cookie": COOKIES}
            yield "POST", path, headers, body
        yield from ((method, path, {}, "{}") for method in ("PUT", "DELETE", "OPTIONS", "PATCH"))
    form = {"Content-Type": FORM, "Cookie": COOKIES}
    for path in dict.fromkeys(console_paths()):
        yield "GET", path, {"Cookie": COOKIES}, None
        yield "POST", path, form, urlencode({"csrfmiddlewaretoken": CSRF, "do": "add"})


def ask(address, method, path, headers, body):
    """The status, and how many bytes were answered."""
    asking = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    try:
        asking.request(method, path, body, {"Host": "localhost", **headers})
        answer = asking.getresponse()
        return answer.status, len(answer.read())
    except http.client.HTTPException:  # a malformed request line gets no answer
        return 0, 0
    finally:
        asking.close()


def rows():
    tables = connection.introspection.table_names()
    return {table: sql.rows(f'SELECT count(*) FROM "{table}"', {})[0][0] for table in tables}  # noqa: S608 - a table of ours


def beat_has_its_rows():
    schedule = app.conf.beat_schedule
    return PeriodicTask.objects.filter(name__in=schedule).count() == len(schedule)


@pytest.fixture
def channel(transactional_db):
    make_house("Alice")
    make_root()
    return make_channel()


def test_a_request_without_a_key_leaves_no_more_than_its_bound(channel, sandbox, tmp_path):
    for device, _ in subscribe_browsers(sandbox, channel, 25):
        device.behave("error", status=503)
    log = tmp_path / "service.log"
    with running_web(log, "worker-plan", "worker-web", "beat") as address:
        sent = accepted(owner_of(channel), {"body": "for breakers and queues"})
        redis = redis_client()
        until(lambda: redis.exists(OPEN_BREAKERS), seconds=120)
        end_time(sent)
        until(lambda: is_sent(sent), seconds=120)
        until(beat_has_its_rows, seconds=120)
        before, logged = rows(), log.stat().st_size
        asked = list(requests(str(channel.pk)))

        for request in asked:
            status, size = ask(address, *request)
            assert status < 500, request[:3]
            assert size < MOST_ANSWERED, request[:3]

        grown = {table for table, count in rows().items() if count > before[table]}
        assert {"subscriptions_app_subscription", "axes_accessattempt"} <= grown <= ROWS
        assert len(redis.keys("limit:*")) <= MOST_LIMITS
        endless = [key for key in redis.keys("*") if redis.ttl(key) == -1]
        assert OPEN_BREAKERS in endless
        assert [key for key in endless if not FIXED_KEYS.fullmatch(key)] == []
        assert log.stat().st_size - logged <= len(asked) * MOST_LOGGED


def test_every_served_file_is_within_its_bound():
    files = [storage.size(path) for finder in get_finders() for path, storage in finder.list(None)]
    assert 0 < max(files) <= LONGEST_FILE
