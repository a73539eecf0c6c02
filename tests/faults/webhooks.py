"""A webhook of a channel, and what its receiver was told."""

import json
from collections import Counter

from tests.faults.processes import until


def create(channel, receiver, events):
    body = {"url": receiver.origin, "events": events}
    made = channel._call("POST", f"/channel/{channel.id}/webhooks", body)
    assert made.status == 201, made


def wait_until_sent(channel):
    """Waits until each fact is in a message, and each message is delivered."""
    until(lambda: _is_all_sent(channel), "all messages arrive")


def told(channel, events):
    """The facts in the channel's messages, by kind. No fact is in two messages, or twice in one."""
    found = {kind: Counter() for kind in events}
    for _, body in _messages(channel):
        said = json.loads(bytes(body))
        (facts,) = (each for each in said["data"].values() if isinstance(each, list))
        for fact in facts:
            ids = [fact[name] for name in ("notification_id", "subscription_id") if name in fact]
            found[said["type"]]["".join(ids)] += 1
    assert [fact for facts in found.values() for fact, count in facts.items() if count != 1] == []
    return found


def assert_arrived(channel, receiver):
    """The receiver got each message of the channel, and nothing else of it; repeated requests have
    the same bytes."""
    stored = {f"msg_{id_.hex}": bytes(body) for id_, body in _messages(channel)}
    arrived = {(each.message_id, each.body) for each in receiver.requests}
    assert {each for each in arrived if each[0] in stored} == set(stored.items())


def _is_all_sent(channel):
    """What a killed worker held is free at once, instead of after a minute."""
    parameters = {"channel": channel.id}
    channel.system.rows(_PASS_WAITS, parameters)
    return channel.system.value(_IS_ALL_SENT, parameters)


def _messages(channel):
    return channel.system.rows(
        "SELECT id, body FROM channels_app_webhookmessage WHERE channel_id = %s", [channel.id]
    )


_PASS_WAITS = """
UPDATE channels_app_webhookattempt attempt SET due_at = now(),
  lease_until = CASE WHEN lease_until < now() + interval '55 s' THEN now() ELSE lease_until END
FROM channels_app_webhook hook
WHERE hook.channel_id = %(channel)s AND webhook_id = hook.id AND attempt.state = 'waiting'
"""
_IS_ALL_SENT = """
SELECT NOT EXISTS (SELECT FROM channels_app_feed WHERE channel_id = %(channel)s) AND NOT EXISTS (
  SELECT FROM channels_app_webhookattempt attempt
  JOIN channels_app_webhook hook ON hook.id = attempt.webhook_id
  WHERE hook.channel_id = %(channel)s AND attempt.state <> 'delivered')
"""
