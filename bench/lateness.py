"""How much later than its `scheduled_at` a notification reaches the push service, on an idle
system."""

import argparse
import time
from datetime import UTC, datetime

from bench.system import report, running_system, timestamp

_FIRST_SECONDS = 5.0
_STEP_SECONDS = 1.37  # no multiple of the tick's second, so that every phase of it is met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sends", type=int, default=30)
    sends = parser.parse_args().sends
    with running_system() as system:
        first = time.time() + _FIRST_SECONDS
        due: dict[str, float] = {}
        for number in range(sends):
            moment = datetime.fromtimestamp(first + number * _STEP_SECONDS, UTC)
            text = moment.isoformat(timespec="milliseconds")
            due[system.send(scheduled_at=text)] = timestamp(text)
        time.sleep(max(0.0, max(due.values()) - time.time()))
        for notification_id in due:
            system.wait_sent(notification_id)
        receipts = system.receipts()
    late = [receipts[notification_id] - moment for notification_id, moment in due.items()]
    report("receipt after scheduled_at", late)


if __name__ == "__main__":
    main()
