"""A project's calls a minute, shared by all processes, with a slow start."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

import pytest

from notifications_app.pipeline import quota as quotas
from notifications_app.pipeline.quota import Grant, Quota
from pushsvc.common.store.redis_client import redis_client

FCM = Quota("fcm", 600_000)


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    """Redis's clock stands still: on a slow machine a bucket would fill meanwhile."""
    seconds, microseconds = redis_client().time()
    now = f"{{{seconds}, {microseconds}}}"
    script = quotas._TAKE
    text = script.body.replace("redis.call('TIME')", now)
    monkeypatch.setattr(quotas, "_TAKE", replace(script, body=text))


@pytest.fixture
def project():
    return f"demo-{uuid4()}"


def pass_seconds(quota, project, seconds):
    """Makes the last call as much earlier."""
    redis_client().hincrbyfloat(quota._key(project), "at", -seconds)


def ramp_of(quota, project):
    return float(redis_client().hget(quota._key(project), "ramp"))


def use(quota, project, seconds, wanted=10**6):
    """Takes everything that is granted once a second; what was granted each time."""
    granted = []
    for _ in range(seconds):
        pass_seconds(quota, project, 1)
        granted.append(quota.take(project, wanted).granted)
    return granted


def test_a_small_send_is_granted_at_once(project):
    assert FCM.take(project, 1_000) == Grant(1_000, 0.0)


def test_an_idle_project_starts_with_a_tenth_of_its_rate(project):
    grant = FCM.take(project, 5_000)
    assert grant.granted == 1_000
    assert 0 < grant.wait_seconds <= 1.0


def test_the_rate_grows_to_its_full_value_within_a_minute(project):
    FCM.take(project, 10**6)
    granted = use(FCM, project, 70)
    assert granted == pytest.approx(sorted(granted), rel=0.01)
    assert 1_000 <= granted[0] <= 1_200
    assert granted[29] == pytest.approx(5_500, rel=0.05)
    assert granted[50] < 10_000
    assert granted[65:] == pytest.approx([10_000] * 5, rel=0.01)


def test_a_minute_of_full_use_grants_the_quota(project):
    FCM.take(project, 10**6)
    use(FCM, project, 65)
    assert sum(use(FCM, project, 60)) == pytest.approx(600_000, rel=0.01)


def test_a_project_that_was_idle_starts_slowly_again(project):
    FCM.take(project, 10**6)
    use(FCM, project, 65)
    pass_seconds(FCM, project, 30)
    assert 5_000 < FCM.take(project, 10**6).granted < 6_000
    pass_seconds(FCM, project, 60)
    assert FCM.take(project, 10**6).granted == 1_000


def test_a_pause_between_two_batches_does_not_count_as_idle(project):
    FCM.take(project, 1)
    pass_seconds(FCM, project, 4)
    FCM.take(project, 1)
    assert ramp_of(FCM, project) == pytest.approx(4 / 60, rel=0.1)


def test_unused_calls_are_kept_for_only_a_second(project):
    FCM.take(project, 10**6)
    pass_seconds(FCM, project, 4)
    assert FCM.take(project, 10**6).granted == pytest.approx(1_600, rel=0.2)


def test_the_wait_lasts_until_the_missing_calls_are_available(project):
    quota = Quota("slow", 600, ramp_seconds=0.001)
    quota.take(project, 10**6)
    use(quota, project, 1)
    grant = quota.take(project, 4)
    assert grant.granted < 4
    assert 0 < grant.wait_seconds <= 0.4
    FCM.take(project, 900)
    assert FCM.take(project, 200).wait_seconds <= 0.15


def test_a_wait_lasts_at_most_a_second(project):
    quota = Quota("tiny", 6)
    quota.take(project, 1)
    assert quota.take(project, 1) == Grant(0, 1.0)


def test_a_small_quota_grants_one_call_at_a_time(project):
    quota = Quota("tiny", 6)
    assert quota.take(project, 5).granted == 1
    assert quota.take(project, 5).granted == 0
    assert use(quota, project, 120, wanted=5).count(1) >= 6


def test_each_project_and_service_has_its_own_bucket(project):
    FCM.take(project, 10**6)
    assert FCM.take(f"{project}-2", 1_000).granted == 1_000
    assert Quota("other", 600_000).take(project, 1_000).granted == 1_000


def test_all_workers_share_one_bucket(project):
    quota = Quota("shared", 60_000)
    begin = threading.Barrier(8)

    def take(_):
        begin.wait()
        return quota.take(project, 50).granted

    with ThreadPoolExecutor(8) as workers:
        granted = list(workers.map(take, range(8)))
    assert 100 <= sum(granted) < 300


def test_an_unused_project_leaves_no_key(project):
    FCM.take(project, 1)
    assert 0 < redis_client().ttl(FCM._key(project)) <= 600


def test_everything_is_granted_while_redis_is_unreachable(project, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert FCM.take(project, 10**6) == Grant(10**6, 0.0)


def test_everything_is_granted_if_redis_cannot_run_the_script(project, caplog):
    redis_client().set(FCM._key(project), "not a bucket", ex=60)
    with caplog.at_level(logging.ERROR):
        assert FCM.take(project, 10**6) == Grant(10**6, 0.0)
    assert [record.message for record in caplog.records] == ["quota.failed"]
    assert caplog.records[0].exc_info is None
