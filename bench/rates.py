"""Measures how well workers keep to the rate of a send, from 60 to 60,000 recipients a minute.

Each rate has a channel of its own, with as many browsers as make the send take most of a minute, or
ten seconds at the highest rate. The processes, their settings and their time are real.
"""

from typing import Final

from bench.limited import other_channel
from bench.results import Options, Result, ResultRow
from bench.system import System, running_system

_SECONDS: Final = {60: 40, 600: 40, 6_000: 40, 60_000: 10}  # by the rate


def measure(options: Options) -> Result:
    result = Result(
        remarks=["Reached: from the first hand-over to the last outcome, without the first batch."]
    )
    with running_system() as system:
        for rate, seconds in _SECONDS.items():
            channel = other_channel(system)
            channel.subscribe(min(1_000, rate // 6) + rate * seconds // 60)  # a batch is at once
            shares = []
            for _ in range(options.rounds):
                with result.load.round():
                    shares.append(seconds / _seconds_of_send(channel, rate))
            name = f"{rate:,} a minute: reached / asked"
            result.rows.append(ResultRow(name, "", shares, aim="0.95"))
    return result


def _seconds_of_send(channel: System, rate: int) -> float:
    sent = channel.send(rate_per_minute=rate)
    channel.wait_sent(sent)
    taken = channel.database.execute(_TAKEN, [sent]).fetchone()
    if taken is None:
        raise RuntimeError("the notification is gone")
    return float(taken[0])


_TAKEN: Final = """
SELECT extract(epoch FROM finished_at - first_hand_over_at)
FROM notifications_app_notification WHERE id = %s
"""
