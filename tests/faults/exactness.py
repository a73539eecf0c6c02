"""The only judge of the suite: compares the database with what the sandboxes received."""

import json
from collections import Counter, defaultdict
from uuid import UUID

from tests.faults.processes import PLATFORMS, until
from tests.faults.system import most_repeats

WAITING, DELIVERED, BOUNCED = 0, 1, 2
ENDED = ("sent", "failed", "cancelled")


def wait_ended(channel, notification_ids, *, seconds=90):
    """Waits until these notifications have ended, and their plans are done."""
    ids = list(notification_ids)

    def have_ended():
        open_ = channel.system.value(
            "SELECT count(*) FROM notifications_app_notification WHERE id = ANY(%s)"
            " AND (status <> ALL(%s) OR EXISTS ("
            "   SELECT FROM notifications_app_plan plan"
            "   WHERE plan.notification_id = notifications_app_notification.id"
            "     AND plan.status <> 'done'))",
            [ids, list(ENDED)],
        )
        return open_ == 0

    try:
        until(have_ended, "the notifications ended", seconds=seconds)
    except AssertionError:
        raise AssertionError(f"not ended: {stuck(channel)}") from None


def stuck(channel):
    """The notifications, plans and batches that are not done, for a person to read."""
    return [
        [tuple(map(str, row)) for row in channel.system.rows(question, [channel.id])]
        for question in _STUCK
    ]


_STUCK = (
    "SELECT id, status, now() FROM notifications_app_notification"
    " WHERE channel_id = %s AND status IN ('pending', 'processing')",
    "SELECT notification_id, platform, status, lease_number, cursor, recipient_count, lease_until,"
    " halted_at FROM notifications_app_plan WHERE channel_id = %s AND status <> 'done'",
    "SELECT platform, push_service, status, count(*), sum(recipient_count), max(lease_number),"
    " max(lease_losses), min(due_at) - now(), max(lease_until)"
    " FROM notifications_app_batch WHERE channel_id = %s AND status <> 'done' GROUP BY 1, 2, 3",
)


def assert_exact(channel, notification_ids, *, zombies=False):
    """Waits until the notifications have ended. Then every sum agrees with the rows, every row has
    its outcome, and the sandboxes received what the rows say.

    A recipient may get a message more than once only if its call was in flight or its outcome
    unwritten when a worker was killed, and only once more for each kill (`system.unclean_ends`). No
    recipient gets a message after its outcome was written, except from a worker that was paused in
    the middle of the call (`zombies`). A cut connection is no excuse: the sandboxes cut it only
    after their answers have arrived. An answer that its sender left without reading proves that the
    push service has the message, and allows another attempt.
    """
    ids = list(notification_ids)
    wait_ended(channel, ids)
    _assert_sums(channel)
    answers = _answers(channel)
    for notification_id in ids:
        _assert_counts_of(channel, notification_id)
        _assert_received(channel, notification_id, answers[notification_id], zombies)
    assert channel.system.logged("counts.corrected") == []


def outcomes(channel, notification_id):
    """{subscription id: (status, code, attempts, when it was written in Unix seconds)}"""
    rows = channel.system.rows(
        "SELECT subscription_id, status, code, attempts, extract(epoch FROM finished_at)"
        " FROM notifications_app_delivery WHERE notification_id = %s",
        [notification_id],
    )
    return {row[0]: (row[1], row[2], row[3], float(row[4] or 0)) for row in rows}


def called_again(channel, notification_id):
    """The ids of recipients who were called and will be called again; None while a first call is
    not over."""
    waiting = {
        id_: row for id_, row in outcomes(channel, notification_id).items() if row[0] == WAITING
    }
    return waiting.keys() if all(attempts for _, _, attempts, _ in waiting.values()) else None


def codes(channel, notification_id):
    """How many recipients ended with each code; "" is delivered."""
    return Counter(code for _, code, _, _ in outcomes(channel, notification_id).values())


def got(channel):
    """{notification id: {subscription id: times of its complete 2xx answers, those that were left
    unread only if there is no other}}, and an empty one for a notification that nobody got"""
    received = defaultdict(dict)
    for notification_id, of_each in _answers(channel).items():
        for subscription_id, receipts in of_each.items():
            received[notification_id][subscription_id] = _times(_read(receipts) or receipts[-1:])
    return received


def unread(channel, notification_id):
    """How many complete 2xx answers were left unread, by platform."""
    return _unread(channel, _answers(channel)[notification_id])


def _unread(channel, answers):
    return Counter(
        channel.platform_of[subscription_id]
        for subscription_id, receipts in answers.items()
        for receipt in receipts
        if receipt.unread
    )


def _answers(channel):
    """{notification id: {subscription id: receipts with a complete 2xx answer}}"""
    received = defaultdict(lambda: defaultdict(list))
    for subscription_id, device in channel.devices.items():
        for receipt in list(device.receipts):
            if receipt.accepted:
                received[notification_of(receipt)][subscription_id].append(receipt)
    return received


def _read(receipts):
    return [receipt for receipt in receipts if not receipt.unread]


def _times(receipts):
    return [receipt.at for receipt in receipts]


def notification_of(receipt):
    """The id in the message of any sandbox."""
    if hasattr(receipt, "plaintext"):
        return UUID(json.loads(receipt.plaintext)["notification_id"])
    if hasattr(receipt, "payload"):
        return UUID(json.loads(receipt.payload)["notification_id"])
    return UUID(receipt.message["data"]["notification_id"])


def text_of(receipt):
    """The body of the message, from any sandbox."""
    if hasattr(receipt, "plaintext"):
        return json.loads(receipt.plaintext)["body"]
    if hasattr(receipt, "payload"):
        return json.loads(receipt.payload)["aps"]["alert"]["body"]
    return receipt.message["notification"]["body"]


def stored(channel):
    """The ids of all notifications."""
    rows = channel.system.rows(
        "SELECT id FROM notifications_app_notification WHERE channel_id = %s", [channel.id]
    )
    return {row[0] for row in rows}


def active(channel):
    """The ids of active subscriptions."""
    rows = channel.system.rows(
        "SELECT id FROM subscriptions_app_subscription"
        " WHERE channel_id = %s AND expired_at IS NULL",
        [channel.id],
    )
    return {row[0] for row in rows}


def _assert_counts_of(channel, notification_id):
    """Notification = batches = plans = deliveries, and no work is left."""
    rows = Counter(status for status, *_ in outcomes(channel, notification_id).values())
    assert rows[WAITING] == 0
    expected = (rows.total(), rows[DELIVERED], rows[BOUNCED])
    shown = channel.read(notification_id)
    counts = tuple(shown[f"{name}_count"] for name in ("recipient", "delivered", "bounced"))
    assert counts == expected
    assert shown["status"] in ENDED
    assert not rows or shown["status"] != "cancelled"
    batches = channel.system.rows(
        "SELECT coalesce(sum(recipient_count), 0), coalesce(sum(delivered_count), 0),"
        " coalesce(sum(bounced_count), 0), count(*) FILTER (WHERE status <> 'done')"
        " FROM notifications_app_batch WHERE notification_id = %s",
        [notification_id],
    )
    assert batches == [(*expected, 0)]
    plans = channel.system.rows(
        "SELECT sum(recipient_count), count(*) FILTER (WHERE status <> 'done')"
        " FROM notifications_app_plan WHERE notification_id = %s",
        [notification_id],
    )
    assert plans == [(rows.total(), 0)]


def _assert_sums(channel):
    """The sums over the channel's notifications: totals and hourly rows; and those of its
    subscriptions."""
    recipients, delivered, bounced, sent = channel.system.rows(
        "SELECT coalesce(sum(recipient_count), 0)::int, coalesce(sum(delivered_count), 0)::int,"
        " coalesce(sum(bounced_count), 0)::int, count(*) FILTER (WHERE status = 'sent')"
        " FROM notifications_app_notification WHERE channel_id = %s",
        [channel.id],
    )[0]
    statistics = channel.statistics()
    totals = statistics["notification_stats"]
    assert totals["total_notifications_sent"] == sent
    assert totals["total_recipients"] == recipients
    assert totals["total_delivered"] == delivered
    assert totals["total_bounced"] == bounced
    assert statistics["subscriber_count"] == len(active(channel))
    days = channel.days()
    for name in ("recipients", "delivered", "bounced", "clicked"):
        assert sum(each[name] for each in days["outcomes"]) == totals[f"total_{name}"]
    assert sum(each["sent"] for each in days["notifications"]) == sent


def _assert_received(channel, notification_id, answers, zombies):
    rows = outcomes(channel, notification_id)
    repeats = Counter()
    for subscription_id, platform in channel.platform_of.items():
        received = answers[subscription_id]
        read = _times(_read(received))
        status, _, _, written_at = rows.get(subscription_id, (None, "", 0, 0.0))
        mode = channel.devices[subscription_id].behaviour.mode
        case = (platform, mode, _times(received), read, written_at)
        assert status is not None or not received, f"sent to somebody who was no recipient: {case}"
        wanted = 1 if status == DELIVERED else 0
        assert len(received) >= wanted, f"delivered, they say, but it never came: {case}"
        repeats[platform] += max(0, len(read) - wanted)
        assert len(read) <= wanted + _kills(channel, platform), f"got it too often: {case}"
        late = [at for at in read if at > written_at]
        assert zombies or not late, f"got it after its outcome was written: {case}"
    for platform in PLATFORMS:
        assert repeats[platform] <= most_repeats(_kills(channel, platform))
    if repeats.total():
        print(f"sent once more: {dict(repeats)}")  # noqa: T201 (a figure for who reads the run)
    if left := _unread(channel, answers):
        print(f"answers left unread: {dict(left)}")  # noqa: T201 (the same)


def _kills(channel, platform):
    return channel.system.unclean_ends.count(f"worker-{platform}")
