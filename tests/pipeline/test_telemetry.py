"""Spans and errors of real processes, as a collector and Sentry receive them."""

import urllib.error

import pytest

from pushsvc.common.store import sql
from subscriptions_app.models import Subscription
from tests import factories
from tests.pipeline import support
from tests.pipeline.collector import running_collector
from tests.pipeline.test_correlation import REQUEST, TRACE, running, send

PARENT = "00f067aa0ba902b7"
PRIVATE = "someone@example.com"
DEVICES = 5
# As many as there are steps: a recipient has none of its own.
SPANS = {"POST send-notification", "turn", "plan window", "deliver batch", "flush"}
# The database's message about a row names a person.
REFUSE = f"""
CREATE FUNCTION refuse_private() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '{PRIVATE} is refused'; END $$;
CREATE TRIGGER refuse_private BEFORE UPDATE ON notifications_app_delivery
FOR EACH ROW WHEN (NEW.subscription_id = '{{id}}') EXECUTE FUNCTION refuse_private();
CREATE TRIGGER refuse_private BEFORE INSERT ON notifications_app_notification
FOR EACH ROW WHEN (NEW.body = 'fail') EXECUTE FUNCTION refuse_private();
"""


@pytest.fixture
def refused(sandbox, tampered_channel):
    """Devices of a channel; the database refuses to change the deliveries of one, and to store a
    notification whose text is `fail`."""
    devices = factories.subscribe_browsers(sandbox, tampered_channel, DEVICES)
    Subscription.objects.update(attributes={"email": PRIVATE})
    sql.execute(REFUSE.format(id=devices[0][1].id), {})
    yield devices
    sql.execute("DROP FUNCTION refuse_private CASCADE", {})


@pytest.fixture
def collector():
    with running_collector() as collector:
        yield collector


def test_a_collector_gets_one_trace_and_sentry_gets_errors_without_private_data(
    tmp_path, tampered_channel, refused, collector
):
    chain = {"X-Request-ID": REQUEST, "traceparent": f"00-{TRACE}-{PARENT}-00"}
    workers = ("worker-plan", "worker-web")
    with running(tmp_path, *workers, **collector.environment) as (address, _):
        _, notification_id = send(address, tampered_channel, **chain)
        with pytest.raises(urllib.error.HTTPError, match="500"):
            send(address, tampered_channel, body="fail")
        support.until(lambda: names(own(collector)) >= SPANS)
        support.until(lambda: len(collector.errors) >= 2)

    spans = own(collector)
    (request,) = named(spans, "POST send-notification")
    (window,) = named(spans, "plan window")
    # A slow worker tries the refused row again, in another lease.
    passes = named(spans, "deliver batch")
    (batch,) = [each for each in passes if value_of(each, "pushsvc.lease_number") == 1]
    assert request.parent_span_id.hex() == PARENT
    assert window.parent_span_id == batch.parent_span_id == request.span_id
    for span in (window, batch):
        assert value_of(span, "pushsvc.notification") == notification_id
    assert names(spans) == SPANS
    assert value_of(window, "pushsvc.recipients") == DEVICES > len(named(spans, "flush"))

    by_event = {each["logentry"]["message"]: each for each in collector.errors}
    assert set(by_event) == {"outcome.refused", "request.failed"}
    told = by_event["outcome.refused"]["tags"]
    assert (told["notification"], told["request_id"]) == (notification_id, REQUEST)
    assert told["trace_id"] == TRACE
    (raised,) = by_event["request.failed"]["exception"]["values"][-1:]
    assert raised["type"] == "ProgrammingError"
    assert raised["stacktrace"]["frames"]
    assert by_event["request.failed"]["tags"]["route"] == "send-notification"

    (device, subscription), *_ = refused
    sent = b"".join(collector.bodies)
    for private in (PRIVATE, device.endpoint, subscription.auth, "secret-text", "Key psk_", "psk_"):
        assert private.encode() not in sent, private


def own(collector):
    """The spans of the notification's trace."""
    return [span for span in collector.spans if span.trace_id.hex() == TRACE]


def names(spans):
    return {span.name for span in spans}


def named(spans, name):
    return [span for span in spans if span.name == name]


def value_of(span, name):
    """Of an attribute."""
    (found,) = [each.value for each in span.attributes if each.key == name]
    return getattr(found, found.WhichOneof("value"))
