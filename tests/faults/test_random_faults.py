"""Random faults, one after another, while notifications are sent, an automation and a newsfeed send
by themselves, and a webhook is told of them."""

import os
import signal
import time
from itertools import cycle

from pushsvc.common.ids import uuid7
from tests.faults import automations, broker, database, variants, webhooks
from tests.faults.exactness import DELIVERED, assert_exact, outcomes, wait_ended
from tests.faults.newsfeeds import Feed
from tests.faults.processes import EVERYTHING, HOOKS, PLATFORMS, until
from tests.faults.support import audience, await_part, many, requests, wait_at_random
from tests.zones import write_zones

PERSONAL = {"body": "{{ platform }}, {{ name | default: 'you' }}", "personalize": True}
RATES = [1_200, 30_000, 600_000]  # recipients a minute


def kill_a_worker(system):
    platform = system.random.choice(PLATFORMS)
    system.kill(f"worker-{platform}")
    system.end_leases(platform)


def kill_the_planner(system):
    system.kill("worker-plan")
    system.end_plan_leases()


def kill_the_worker_of_webhooks(system):
    system.kill(HOOKS)


def kill_the_web_server(system):
    system.kill("web")


def double_beat(system):
    system.start("beat")
    until(system.do_beats_tick, "both tick")
    wait_at_random(system, 2.0)
    system.alive("beat")[0].send_signal(signal.SIGKILL)


def deploy(system):
    system.replace(system.random.choice(EVERYTHING))


def pause_a_worker(system):
    """For less time than a call may take, so that nothing is lost."""
    name = system.random.choice(EVERYTHING[1:])
    system.pause(name)
    wait_at_random(system, 3.0)
    system.wake(name)


def silence_the_broker(system):
    broker.silence(system, system.random.uniform(0.5, 3.0))


def slow_down_the_broker(system):
    broker.slow_down(system, system.random.uniform(0.5, 3.0))


def hold_a_lock(system):
    database.lock(system, system.random.uniform(0.5, 4.0))


FAULTS = [
    kill_a_worker,
    kill_the_planner,
    kill_the_worker_of_webhooks,
    kill_the_web_server,
    double_beat,
    deploy,
    pause_a_worker,
    broker.empty,
    broker.kill,
    silence_the_broker,
    slow_down_the_broker,
    database.restart,
    database.crash,
    database.cut,
    hold_a_lock,
]


ROUNDS = 50 if os.environ.get("FAULTS_LONG") else 3  # with a channel, whose sums are exact then


def test_random_faults_leave_every_sum_exact(system, receiver, site):
    end = time.monotonic() + 60 * int(os.environ.get("FAULTS_MINUTES", "0"))
    answers = cycle([204, 204, 500])
    receiver.answer = lambda _: next(answers)
    break_at_random(system, system.channel(), receiver, site)
    while time.monotonic() < end:
        # What this channel's devices received would fill the memory within the hour.
        for sandbox in vars(system.sandboxes).values():
            sandbox.reset()
        receiver.requests.clear()
        system.begin_log()
        break_at_random(system, system.channel(), receiver, site)


def by_local_time(system, channel):
    """The fields of a send that reaches half of the devices in a second and half of them in five.
    Makes time zones for it, which no process knows yet. The minute before is quiet, so a recipient
    that moves from one zone to the other can have to wait."""
    now, name = int(time.time()), uuid7().hex
    zones = {f"{name}a": now + 1, f"{name}b": now + 5}
    local_at = write_zones(system.home / "zones", **zones)
    system.rows(_MOVE, {"zones": list(zones), "channel": channel.id, "share": 1})
    return {"local_at": local_at, "quiet_hours": {"from": "08:59", "to": local_at[-5:]}}


def move_some(system, channel):
    """A tenth of the devices changes its time zone to that of another."""
    zones = system.value(_ZONES, {"channel": channel.id})
    system.rows(_MOVE, {"zones": zones, "channel": channel.id, "share": 0.1})


_ZONES = """
SELECT array_agg(DISTINCT timezone) FROM subscriptions_app_subscription
WHERE channel_id = %(channel)s
"""
_MOVE = """
UPDATE subscriptions_app_subscription
SET timezone = (%(zones)s::text[])[1 + floor(random() * cardinality(%(zones)s::text[]))::int],
    timezone_changed_at = now()
WHERE channel_id = %(channel)s AND random() <= %(share)s
"""


def assert_contacted(channel):
    """Contacts are the recipients of sends that did not ignore caps: who was left out has none, and
    nor has a window that was rolled back."""
    assert channel.system.rows(_CONTACTED, {"channel": channel.id}) == []
    assert channel.system.value(_LEFT_OUT, {"channel": channel.id}) == 0


_CONTACTED = """
SELECT * FROM (
  SELECT key, unnest(sends) AS send, 1 AS place
  FROM notifications_app_contact WHERE channel_id = %(channel)s
) AS contact FULL JOIN (
  SELECT subscription_id AS key, notification_id AS send, 1 AS place
  FROM notifications_app_delivery
  WHERE notification_id IN (SELECT id FROM notifications_app_notification
                            WHERE channel_id = %(channel)s AND caps <> '[]')
) AS recipient USING (key, send)
WHERE contact.place IS NULL OR recipient.place IS NULL
"""
_LEFT_OUT = """
SELECT count(*) FROM (
  SELECT sum(plan.recipient_count + capped_count) AS audience FROM notifications_app_plan plan
  JOIN notifications_app_notification notification ON notification.id = notification_id
  WHERE plan.channel_id = %(channel)s AND caps <> '[]' GROUP BY notification_id) AS counted
WHERE audience <> (SELECT count(*) FROM subscriptions_app_subscription
                   WHERE channel_id = %(channel)s AND expired_at IS NULL)
"""


def correct(system, channel, notification):
    """Corrects a notification that has ended, while something breaks. Returns the correction."""
    before = requests(channel)
    own = channel.send(*PLATFORMS, replaces=str(notification), cap="ignore")
    await_part(channel, system.random.uniform(0.0, 0.5), since=before)
    break_something(system, channel)
    assert_exact(channel, [own])
    reached = {id_ for id_, row in outcomes(channel, notification).items() if row[0] == DELIVERED}
    assert outcomes(channel, own).keys() == reached
    return own


def sent_by_themselves(channel, feed, tagged):
    """Waits until the newsfeed and the automation have sent everything: each entry once, and one
    message to each tagged device. Returns the notifications."""
    of_feed, of_automation = feed.wait_until_sent(), automations.wait_until_fired(channel)
    wait_ended(channel, [*of_feed, *of_automation])
    got = [id_ for each in of_automation for id_ in outcomes(channel, each)]
    assert sorted(got) == sorted(tagged)
    return [*of_feed, *of_automation]


def break_something(system, channel):
    fault = system.random.choice(FAULTS)
    print(f"after {requests(channel)} requests: {fault.__name__}", flush=True)  # noqa: T201 (said)
    fault(system)
    until(system.is_whole, "the service is up again, and beat ticks")
    if not system.alive(HOOKS):
        system.start(HOOKS)


def break_at_random(system, channel, receiver, site):
    audience(channel, many(200))
    channel.cap((10, 1))
    webhooks.create(channel, receiver, ["notifications.finished"])
    automations.create(channel)
    feed = Feed(channel, site)
    untagged = system.random.sample(sorted(channel.devices), len(channel.devices))
    share = len(untagged) // ROUNDS
    sent = []

    def assert_all_exact():
        variants.decide(channel)
        own = sent_by_themselves(channel, feed, untagged[: len(sent) * share])
        assert_exact(channel, [*sent, *own])
        return own

    for number in range(ROUNDS):
        before = requests(channel)
        content = {"cap": "ignore"} if number % 3 else PERSONAL | variants.SPLIT
        if number % 3 == 1:
            content |= {"rate_per_minute": system.random.choice(RATES)} | variants.TESTED
        if number % 3 == 2:
            content |= by_local_time(system, channel)
        sent.append(channel.send(*PLATFORMS, **content))
        feed.publish()
        automations.tag(channel, untagged[number * share : len(sent) * share])
        move_some(system, channel)
        await_part(channel, system.random.uniform(0.0, 0.5), since=before)
        break_something(system, channel)
        if len(sent) % 10 == 0:
            assert_all_exact()
    own = assert_all_exact()
    assert_contacted(channel)
    for number, notification in enumerate(sent):
        if number % 3 != 2:
            variants.assert_split(channel, notification)
    all_ = {*sent, *own, correct(system, channel, system.random.choice(sent))}
    webhooks.wait_until_sent(channel)
    told = webhooks.told(channel, ["notifications.finished"])
    assert set(told["notifications.finished"]) == {str(each) for each in all_}
    webhooks.assert_arrived(channel, receiver)
