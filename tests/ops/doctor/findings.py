"""What `manage.py doctor` found, as its JSON shows it, and the reports of processes for it."""

import json
from io import StringIO

from django.core.management import call_command

from pushsvc.common import worker
from pushsvc.common.store import metric_reports
from pushsvc.common.store.redis_client import redis_client
from pushsvc.ops.doctor import database

# The test server trades safety on power loss for speed.
OF_THE_TEST_SERVER = {f"The setting {name} is off" for name in database._MUST_BE_ON}


def report(*arguments):
    """Its findings, and its exit status."""
    output = StringIO()
    try:
        call_command("doctor", "--json", *arguments, stdout=output)
    except SystemExit as ended:
        return json.loads(output.getvalue())["findings"], ended.code
    return json.loads(output.getvalue())["findings"], 0


def errors(*arguments):
    """{title: remedy} of every error and warning, except the test server's own settings."""
    found, _ = report(*arguments)
    return {
        each["title"]: each["remedy"]
        for each in found
        if each["severity"] in {"warning", "error"} and each["title"] not in OF_THE_TEST_SERVER
    }


def the_error(*arguments):
    """Title and remedy of the only one."""
    (error,) = errors(*arguments).items()
    return error


def report_all():
    """As many processes as everything_lives announces, of this machine, and no other."""
    redis_client().delete(metric_reports._PROCESSES, worker._CLOCKS)
    for kind in ("web", "worker", "worker"):
        metric_reports.Reporter(kind, take=dict).report()
