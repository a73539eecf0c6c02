"""What others read of deploy/: systemd's units, Prometheus's rules, Grafana's dashboard."""

import json
import re
import shutil
import subprocess

import pytest
import yaml
from django.test import Client

from pushsvc.common.findings import Kind
from tests import missing
from tests.forked import procfile
from tests.ops.helpers import CHECKOUT

DEPLOY = CHECKOUT / "deploy"
UNITS = DEPLOY / "systemd"
RULES = DEPLOY / "prometheus" / "alerts.yaml"
INSTALLED = "/opt/pushsvc"
OF_A_SHELL = re.compile(r"\$\{(\w+):-[^}]*\}")
PROCESSES = {
    "release": "pushsvc-release.service",
    "web": "pushsvc-web.service",
    "worker-plan": "pushsvc-worker-plan.service",
    "worker-web": "pushsvc-worker@.service",
    "worker-android": "pushsvc-worker@.service",
    "worker-ios": "pushsvc-worker@.service",
    "worker-hooks": "pushsvc-worker@.service",
    "beat": "pushsvc-beat.service",
}


def program(name):
    found = shutil.which(name)
    if found is None:
        missing.skip_without(name)
    return found


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def started(unit, instance):
    """What a unit starts, in the words of the Procfile."""
    text = (UNITS / unit).read_text().replace("%i", instance)
    command = re.search(r"^ExecStart=(.*)$", text, re.M).group(1)
    return command.removeprefix(f"{INSTALLED}/.venv/bin/")


def alerts():
    return yaml.safe_load(RULES.read_text())["groups"][0]["rules"]


@pytest.mark.parametrize("process", PROCESSES)
def test_a_unit_starts_what_the_procfile_starts(process):
    command = OF_A_SHELL.sub(r"${\1}", procfile()[process])

    assert started(PROCESSES[process], process.removeprefix("worker-")) == command


@pytest.mark.parametrize("process", PROCESSES)
def test_a_unit_sets_what_the_procfile_defaults_to(process):
    text = (UNITS / PROCESSES[process]).read_text()
    defaults = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", procfile()[process]))
    # A proxy on the same machine is in front of systemd's web process.
    defaults |= {"GRANIAN_HOST": "127.0.0.1"} if "GRANIAN_HOST" in defaults else {}

    found = re.search(r"^Environment=(.*)$", text, re.M)
    assert dict(re.findall(r"(\w+)=(\S+)", found.group(1)) if found else []) == defaults


def test_every_process_of_the_procfile_has_a_unit():
    assert set(PROCESSES) == set(procfile())
    services = {each.name for each in UNITS.iterdir()} - {"pushsvc.target"}
    assert services == set(PROCESSES.values())


def test_systemd_accepts_the_units(tmp_path):
    systemd = program("systemd-analyze")
    for unit in UNITS.iterdir():
        text = unit.read_text().replace(INSTALLED, str(CHECKOUT))
        (tmp_path / unit.name).write_text(text)

    run(systemd, "verify", "--man=no", *map(str, sorted(tmp_path.iterdir())))
    for unit in sorted(tmp_path.glob("*.service")):
        # 0 is no exposure, 100 is all of it.
        run(systemd, "security", "--offline=true", "--threshold=20", str(unit))


def test_the_alerting_rules_fire_when_they_should(tmp_path):
    promtool = program("promtool")
    given = (CHECKOUT / "tests" / "ops" / "alerts_test.yaml").read_text()
    (tmp_path / "test.yaml").write_text(given.replace("{{rules}}", str(RULES)))

    run(promtool, "check", "rules", str(RULES))
    run(promtool, "test", "rules", str(tmp_path / "test.yaml"))
    tested = yaml.safe_load(given)["tests"][-1]["promql_expr_test"][0]["exp_samples"]
    fired = {re.search(r'"(\w+)"', sample["labels"]).group(1) for sample in tested}
    assert fired == {rule["alert"] for rule in alerts()}


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["prometheus/alerts.yaml", "grafana/dashboard.json"])
def test_every_metric_that_is_named_exists(path):
    scrape = Client().get("/metrics").content.decode()
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)", scrape, re.M))
    exist = set(types) | {
        f"{name}_{part}"
        for name, kind in types.items()
        if kind == "histogram"
        for part in ("bucket", "sum", "count")
    }

    named = set(re.findall(r"\bpushsvc_\w+", (DEPLOY / path).read_text()))
    assert len(named) > 4
    assert named <= exist


def test_every_alert_leads_to_its_place_in_the_runbook():
    page = Client().get("/docs/runbook").content.decode()
    places = set(re.findall(r'<h\d id="([^"]+)"', page))

    for alert in alerts():
        address, _, place = alert["annotations"]["runbook_url"].partition("#")
        assert address == "https://push.example.com/docs/runbook"
        found = {kind.section for kind in Kind} if place == "{{ $labels.section }}" else {place}
        assert found <= places


def test_the_dashboard_is_what_grafana_imports():
    panels = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())["panels"]

    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        assert panel["type"] == "row" or all(each["expr"] for each in panel["targets"])
