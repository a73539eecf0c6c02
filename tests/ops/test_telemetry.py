"""Traces and error reports are off by default. `test_worker_loads.py` shows that nothing of them is
loaded then."""

import os
import subprocess
import sys

import pytest

from tests.ops.helpers import CHECKOUT
from tests.plugin import ENVIRONMENT

ON = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": ("http://127.0.0.1:9", "opentelemetry.sdk"),
    "SENTRY_DSN": ("http://key@127.0.0.1:9/1", "sentry_sdk"),
}
START = """
import sys
sys.modules.update(dict.fromkeys({missing}))
import django
django.setup()
"""


def run(program, **environment):
    """A process with these settings, in the service's environment."""
    settings = {"DJANGO_SETTINGS_MODULE": "pushsvc.settings", **environment}
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=CHECKOUT,
        env={**os.environ, **ENVIRONMENT, **settings},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def start(missing=(), **environment):
    """The same, without these packages."""
    return run(START.format(missing=list(missing)), **environment)


@pytest.mark.parametrize("name", ON)
def test_a_setting_whose_package_is_missing_says_so(name):
    value, package = ON[name]

    refused = start([package], **{name: value})

    assert refused.returncode == 1
    last = refused.stderr.splitlines()[-1]
    assert last.startswith("django.core.exceptions.ImproperlyConfigured: ")
    assert f"{name} is set, but {package} is not installed" in last
    assert value not in refused.stderr


@pytest.mark.parametrize("name", ON)
def test_a_setting_whose_package_is_there_is_accepted(name):
    value, _ = ON[name]
    assert start(**{name: value}).returncode == 0


def test_without_the_settings_the_packages_are_not_needed():
    assert start([package for _, package in ON.values()]).returncode == 0


RATIO = """
import sys
sys.argv = ["{program}", "web"]
import django
django.setup()
from pushsvc.common.telemetry import spans
from pushsvc.common.correlation import Correlation
marked = Correlation(None, "00-{trace}-00f067aa0ba902b7-01")
print(spans.begin("request", marked, is_request=True).correlation.traceparent)
"""


@pytest.mark.parametrize(
    ("program", "trace", "is_recorded"),
    [
        ("/app/.venv/bin/granian", "f" * 32, False),  # whatever its sender says
        ("/app/.venv/bin/granian", "1".zfill(32), True),
        ("/app/pushsvc/worker.py", "f" * 32, True),  # as the web process decided
    ],
)
def test_the_ratio_alone_decides_which_requests_are_recorded(program, trace, is_recorded):
    shown = run(
        RATIO.format(program=program, trace=trace),
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
        OTEL_TRACES_SAMPLER_ARG="0.5",
        OTEL_EXPORTER_OTLP_TIMEOUT="1",
    )

    _, trace_id, _, flags = shown.stdout.strip().split("-")
    assert (trace_id, flags) == (trace, "01" if is_recorded else "00")


ENDING = """
import os, socket, threading
import django
silent = socket.create_server(("127.0.0.1", 0))
os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
django.setup()
from pushsvc.common.telemetry import spans
from pushsvc.common.correlation import Correlation
spans.begin("request", Correlation(), is_request=True).end()
threading.Timer(25, os._exit, [3]).start()
spans.shut_down()
os._exit(0)
"""


def test_a_collector_that_does_not_respond_does_not_keep_a_process_that_ends():
    """OpenTelemetry itself would wait for half a minute, which is all that a process has."""
    assert run(ENDING, OTEL_EXPORTER_OTLP_TIMEOUT="60").returncode == 0
