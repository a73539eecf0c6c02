"""A flood of sign-ins to the Procfile's web process, and who is served meanwhile.

Passwords whose check never ends stand for a machine on which a check takes long.
"""

from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import pytest
from auditlog.models import LogEntry
from axes.models import AccessAttempt
from django.conf import settings as django_settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User

from channels_app.sign_in.passwords import set_password_path
from pushsvc.common.store.redis_client import redis_client
from tests.admin.browsing import Browser
from tests.admin.support import PASSWORD
from tests.api.support import owner_of
from tests.factories import make_channel
from tests.limits import lengthen_windows
from tests.pipeline.processes import running_web
from tests.pipeline.support import until

FLOOD = 16
LIMIT = django_settings.SIGN_INS_PER_MINUTE
FOR_EVER = f"pbkdf2_sha256$2000000000${'s' * 22}$aGFzaA=="
PATIENCE = 120


@pytest.fixture(autouse=True)
def _quick_passwords():
    """Replaces the directory's fixture: the web process knows only the real hash."""


@pytest.fixture
def pool():
    """Ends after the web process: the sign-ins that still hash are answered when it ends."""
    with ThreadPoolExecutor(FLOOD) as pool:
        yield pool


@pytest.fixture
def web(transactional_db, tmp_path, pool):
    """A browser at an address behind the one proxy of a running web process."""
    redis_client().flushdb()
    with running_web(tmp_path / "web.log", TRUSTED_PROXIES="1") as address:
        yield lambda client, **headers: Browser(address, **{"X-Forwarded-For": client} | headers)


@pytest.fixture
def api(web):
    """The status of an API request."""
    owner = owner_of(make_channel())
    browser = web("192.0.2.200", Authorization=f"Key {owner.key}")
    return lambda: browser.get(f"/channel/{owner.channel.pk}")[0]


@pytest.fixture
def slow(transactional_db):
    return make_users("slow", FLOOD, FOR_EVER)


@pytest.fixture
def somebody(transactional_db):
    return make_users("somebody", 2, make_password(PASSWORD))


def make_users(name, count, password):
    users = [User(username=f"{name}-{n}", password=password, is_staff=True) for n in range(count)]
    return User.objects.bulk_create(users)


def attempts(pool, web, client, names):
    """Signs in under each name at once, all from one address, whose attempts stay counted."""
    begun = [pool.submit(_status, web(client), name) for name in names]
    until(lambda: redis_client().exists(f"limit:sign-ins:{client}"), PATIENCE)
    lengthen_windows()
    return begun


def _status(browser, name):
    """The status; checks that 429 and 503 say when to try again."""
    try:
        status, headers, text = browser.sign_in(name, "guess")
    except OSError:
        return "cut"
    if status in {429, 503}:
        assert int(headers["Retry-After"]) > 0
        assert "Try again in" in text
        assert "was not checked" in text
    return status


def first(futures, count):
    """The answers of the first so many to end."""
    done, waiting = set(), set(futures)
    while len(done) < count:
        ended, waiting = wait(waiting, PATIENCE, FIRST_COMPLETED)
        assert ended, f"{len(done)} of {count} were answered"
        done |= ended
    return Counter(future.result() for future in done)


def test_a_flood_delays_neither_the_api_nor_another_address(web, pool, api, slow, somebody):
    flood = attempts(pool, web, "192.0.2.1", [user.username for user in slow])
    assert [api() for _ in range(100)] == [200] * 100
    assert first(flood, FLOOD - 1) == {429: FLOOD - LIMIT, 503: LIMIT - 1}

    person = web("192.0.2.2")
    assert person.sign_in("somebody-0")[0] == 302
    assert person.is_signed_in()
    assert [api() for _ in range(100)] == [200] * 100
    assert [future.done() for future in flood].count(
        False
    ) == 1  # the hashes have not ended meanwhile

    more = attempts(pool, web, "192.0.2.1", ["slow-0", "nobody", "somebody-1"])
    assert first(more, 3) == {429: 3}
    assert not AccessAttempt.objects.exists()  # no password of the flood was judged
    signed_in = LogEntry.objects.get(additional_data__note="Signed in.")
    assert (signed_in.actor, signed_in.remote_addr) == (somebody[0], "192.0.2.2")


def test_every_request_that_hashes_a_password_takes_a_place(web, pool, api, slow, somebody):
    inside, invited = web("192.0.2.10"), web("192.0.2.11")
    assert inside.sign_in("somebody-0")[0] == 302
    form = invited.get(set_password_path(user=somebody[1]))[1]["Location"]
    passwords = dict(User.objects.values_list("username", "password"))
    attempts(pool, web, "192.0.2.1", ["slow-0"])
    attempts(pool, web, "192.0.2.2", ["slow-1"])
    take_all_places(web)

    new = {"password1": "another-long-battery", "password2": "another-long-battery"}
    changed = {"oldpassword": PASSWORD} | new
    asked = [
        *attempts(pool, web, "192.0.2.12", ["somebody-1"]),
        *attempts(pool, web, "192.0.2.13", ["nobody"]),
        pool.submit(inside.post, "/admin/password_change/", **changed),
        pool.submit(invited.post, form, **new),
    ]
    assert [api() for _ in range(100)] == [200] * 100
    answers = [future.result(PATIENCE) for future in asked]

    assert answers[:2] == [503, 503]
    assert [answer[0] for answer in answers[2:]] == [503, 503]
    assert dict(User.objects.values_list("username", "password")) == passwords
    assert inside.is_signed_in()


def take_all_places(web):
    """Returns once the endless hashes hold all places."""
    for number in range(1, 250):
        if web(f"198.51.100.{number}").sign_in("nobody-yet", "guess")[0] == 503:
            return
    raise AssertionError("places are left")


def test_lock_outs_count_exactly_the_passwords_that_were_judged(web, pool, somebody):
    names = [f"nobody-{n}" for n in range(FLOOD)]
    flood = attempts(pool, web, "192.0.2.1", names)
    answers = dict(zip(names, [future.result(PATIENCE) for future in flood], strict=True))
    counts = Counter(answers.values())
    judged = {(name, "192.0.2.1", 1) for name, status in answers.items() if status == 200}

    assert (counts[429], counts[200] + counts[503]) == (FLOOD - LIMIT, LIMIT)
    assert judged
    fields = ("username", "ip_address", "failures_since_start")
    assert set(AccessAttempt.objects.values_list(*fields)) == judged

    person = web("192.0.2.2")
    said = [person.sign_in("somebody-0", "guess")]
    lengthen_windows()
    said += [person.sign_in("somebody-0", "guess") for _ in range(1, LIMIT)]
    assert [status for status, _, _ in said] == [200] * 4 + [429] * (LIMIT - 4)
    assert all("Too many failed attempts" in text for _, _, text in said[4:])
    assert "from your address" in person.sign_in("somebody-0")[2]
    assert AccessAttempt.objects.get(username="somebody-0").failures_since_start == 5
    assert web("192.0.2.3").sign_in("somebody-0")[0] == 302
