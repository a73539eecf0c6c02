"""One notification is followed through the logs of all processes, by each of its ids."""

import json
import logging
import urllib.request
from contextlib import contextmanager
from functools import partial

from notifications_app.models import Batch
from notifications_app.pipeline import plan_queue
from tests import factories
from tests.pipeline import support
from tests.pipeline.processes import running_web

REQUEST = "proxy-7f3a.0001"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
# In the order in which they happen.
EVENTS = [
    "notification.accepted",
    "notifications.started",
    "windows.planned",
    "batches.begun",
    "notification.ended",
    "outcomes.recorded",
]


def send(address, channel, body="secret-text", **headers):
    request = urllib.request.Request(
        f"{address}/send-notification",
        json.dumps({"body": body}).encode(),
        {
            "Authorization": f"Key {factories.make_key(channel)}",
            "Content-Type": "application/json",
            "Host": "localhost",
            **headers,
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers, json.load(answer)["notification_id"]


@contextmanager
def running(tmp_path, *names, **environment):
    """The address of the web process, and a function that reads the lines of all processes."""
    log = tmp_path / "processes.log"

    def lines():
        whole = log.read_text().rpartition("\n")[0]
        # What granian and Celery print when they start is no JSON.
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    environment = {"TRUSTED_PROXIES": "1", **environment}
    with running_web(log, *names, **environment) as address:
        yield address, lines


def about(lines, name, value):
    """The events whose field has this value, in the order of their time."""
    found = [line for line in lines if line["fields"].get(name) == value]
    return [line["event"] for line in sorted(found, key=lambda line: line["time"])]


def test_a_notification_is_found_in_all_logs_by_its_ids(tmp_path, sandbox, channel):
    # One device: the answers of two may be recorded apart, before and after the notification's end.
    ((device, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    with running(tmp_path, "worker-plan", "worker-web") as (address, lines):
        answer, notification_id = send(
            address,
            channel,
            **{"X-Request-ID": REQUEST, "traceparent": f"00-{TRACE}-00f067aa0ba902b7-00"},
        )
        own = partial(about, name="notification", value=notification_id)
        support.until(lambda: len(own(lines())) == len(EVENTS))
        written = lines()

    assert answer["X-Request-ID"] == REQUEST
    assert own(written) == EVENTS
    for name, value in (("request_id", REQUEST), ("trace_id", TRACE)):
        assert set(about(written, name, value)) == set(EVENTS) - {"notifications.started"}
    of_batch = ["batches.begun", "notification.ended", "outcomes.recorded"]
    assert about(written, "batch", Batch.objects.get().id) == of_batch
    # The wakeups carried it too: from the web process to the planner, and on to the worker.
    woken = {line["logger"] for line in written if line["fields"].get("woken_by") == REQUEST}
    assert woken >= {"notifications_app.pipeline.planning", "notifications_app.pipeline.dispatch"}
    assert len(device.receipts) == 1
    for private in ("secret-text", device.endpoint, "http://", "subscription"):
        assert private not in json.dumps(written), private


def test_lines_count_outcomes_and_their_codes(sandbox, channel, caplog):
    (gone, _), *_ = factories.subscribe_browsers(sandbox, channel, 2)
    gone.behave("gone")

    with caplog.at_level(logging.INFO):
        support.send(channel)

    lines = [vars(line) for line in support.logged(caplog, "outcomes.recorded")]
    for name in ("delivered", "bounced"):
        assert sum(line.get(name, 0) for line in lines) == 1
    assert [line["codes"] for line in lines if line["codes"]] == [{"endpoint_gone": 1}]


def test_a_line_names_at_most_a_hundred_notifications(channel, caplog):
    for _ in range(101):
        factories.make_notification(channel)

    with caplog.at_level(logging.INFO):
        plan_queue.start_due(limit=101)

    lines = [vars(line) for line in support.logged(caplog, "notifications.started")]
    assert [len(line.get("notifications", "1")) for line in lines] == [100, 1]
