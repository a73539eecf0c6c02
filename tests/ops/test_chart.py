"""deploy/kubernetes: the Helm chart. `make chart` installs Helm and the checker of manifests, and
runs these tests with them."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib

import jsonschema
import pytest
import yaml
from cryptography.fernet import Fernet
from django.test import Client

from tests import missing
from tests.forked import procfile
from tests.ops.helpers import CHECKOUT

CHART = CHECKOUT / "deploy" / "kubernetes"
CONFIGURATION = (CHECKOUT / "docs" / "configuration.md").read_text()
SETTINGS = set(re.findall(r"^\| `([A-Z_]+)` \|", CONFIGURATION, re.M))
SECRETS = set(re.findall(r"^\| `([A-Z_]+)` \|[^|]*\| \*Secret\.\*", CONFIGURATION, re.M))
OF_THE_CHART = {"ALLOWED_HOSTS", "PORT", "WEB_CONCURRENCY", "WORKER_CONCURRENCY"}
CONTAINERFILE = (CHECKOUT / "deploy" / "container" / "Containerfile").read_text()
OLDEST, NEWEST = "1.27.0", "1.34.0"
SHOWN = {"helm": "Helm", "manifests": "the checker of manifests"}
EVERYTHING = {
    "settings": {
        "SUBSCRIPTIONS_PER_CHANNEL": 5_000_000,
        "OTEL_TRACES_SAMPLER_ARG": 0.1,
        "REDIS_TLS_VERIFY": "off",
    },
    "secrets": {"METRICS_TOKEN": {"name": "monitoring", "key": "token"}},
    "image": {"tag": "2", "pullSecrets": ["registry"]},
    "autoscaling": {"kind": "keda", "authentication": "prometheus"},
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "push-tls"},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {}}]},
    "podAnnotations": {"example.com/a": "1"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "priorityClassName": "high",
    "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca", "readOnly": True}],
}
CASES = {
    "example": {},
    "everything": EVERYTHING,
    "hpa": {"autoscaling": {"kind": "hpa"}},
    "no phones": {"processes": {"worker-android": {"enabled": False}}},
}


def read(name):
    return yaml.safe_load((CHART / name).read_text())


def merged(values, more):
    """As Helm merges values."""
    both = values | more
    for name in values.keys() & more.keys():
        if isinstance(values[name], dict) and isinstance(more[name], dict):
            both[name] = merged(values[name], more[name])
    return both


def faults(**more):
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = merged(merged(read("values.yaml"), read("example.yaml")), more)
    return [each.message for each in jsonschema.Draft7Validator(schema).iter_errors(values)]


def program(name):
    path = f"{CHECKOUT / '.venv' / 'chart'}:{os.environ['PATH']}"
    found = shutil.which(name, path=path)
    if found is None:
        missing.skip_without(SHOWN[name], missing.CHART)
    return found


def helm(command, tmp_path, more, **options):
    (tmp_path / "more.yaml").write_text(json.dumps(more))
    files = ("--values", str(CHART / "example.yaml"), "--values", str(tmp_path / "more.yaml"))
    words = [program("helm"), *command, str(CHART), *files]
    return subprocess.run(words, capture_output=True, text=True, check=False, **options)


def rendered(tmp_path, more, version=NEWEST):
    done = helm(("template", "pushsvc", "--kube-version", version), tmp_path, more)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def manifests(tmp_path, more, kind):
    everything = [each for each in yaml.safe_load_all(rendered(tmp_path, more)) if each]
    return {
        each["metadata"]["labels"].get("app.kubernetes.io/component"): each
        for each in everything
        if each["kind"] == kind
    }


def pods(tmp_path, more):
    """The specifications of the pods by process, also of the job."""
    found = manifests(tmp_path, more, "Deployment") | manifests(tmp_path, more, "Job")
    return {name: each["spec"]["template"]["spec"] for name, each in found.items()}


def environment(pod):
    (container,) = pod["containers"]
    return {each["name"]: each["value"] for each in container["env"]}


def test_the_chart_has_the_version_of_the_service():
    version = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["version"]

    assert read("Chart.yaml")["appVersion"] == version


def test_every_process_of_the_procfile_has_values():
    values = read("values.yaml")

    assert {*values["processes"], "release"} == set(procfile())
    assert {name for name, each in values["processes"].items() if not each["enabled"]} == set()
    assert values["processes"]["beat"]["replicas"] == 1


def test_every_setting_that_is_named_exists():
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]
    refused = set(schema["settings"]["propertyNames"]["not"]["enum"])

    assert set(schema["secrets"]["propertyNames"]["enum"]) == SECRETS
    assert refused == SECRETS | OF_THE_CHART
    assert OF_THE_CHART <= SETTINGS
    assert set(read("values.yaml")["secrets"]) <= SECRETS
    assert {*read("values.yaml")["settings"], *read("example.yaml")["settings"]} <= SETTINGS


def test_the_example_is_what_the_schema_requires():
    assert faults() == []
    for more in CASES.values():
        assert faults(**more) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"hosts": []},
        {"hosts": ["https://push.example.com"]},
        {"hosts": ["*.example.com"]},
        {"image": {"repository": ""}},
        {"settings": {"SECRET_KEY": "x"}},
        {"settings": {"ALLOWED_HOSTS": "x"}},
        {"settings": {"REDIS_TLS_VERIFY": False}},
        {"secrets": {"LOG_FORMAT": {"name": "pushsvc"}}},
        {"processes": {"worker-mail": {"enabled": True}}},
        {"processes": {"beat": {"concurrency": 2}}},
        {"processes": {"worker-web": {"replicas": 0}}},
        {"networkPolicy": {"enabled": True}},
        {"autoscaling": {"kind": "cpu"}},
    ],
)
def test_the_schema_refuses_values_that_cannot_work(wrong):
    assert len(faults(**wrong)) == 1


@pytest.mark.django_db
def test_every_metric_that_scales_workers_exists():
    scrape = Client().get("/metrics").content.decode()
    named = set(
        re.findall(r"\bmetric: (pushsvc_\w+)", (CHART / "templates/_helpers.tpl").read_text())
    )

    assert len(named) == 4
    assert named <= set(re.findall(r"^# TYPE (\w+) gauge", scrape, re.M))


@pytest.mark.parametrize("case", CASES)
def test_helm_accepts_the_chart(case, tmp_path):
    for version in (OLDEST, NEWEST):
        command = ("lint", "--strict", "--kube-version", version)
        done = helm(command, tmp_path, CASES[case])
        assert done.returncode == 0, done.stdout + done.stderr
        rendered(tmp_path, CASES[case], version)


@pytest.mark.parametrize("case", CASES)
def test_manifests_fit_the_types_of_the_api(case, tmp_path):
    checker = program("manifests")
    text = rendered(tmp_path, CASES[case])

    done = subprocess.run([checker], input=text, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    counted = sum(int(line.split()[0]) for line in done.stdout.splitlines())
    assert counted == len([each for each in yaml.safe_load_all(text) if each])


def test_helm_refuses_what_cannot_work(tmp_path):
    for more, reason in (
        ({"serviceMonitor": {"enabled": True}}, "serviceMonitor needs secrets.METRICS_TOKEN"),
        (
            {"autoscaling": {"kind": "hpa"}, "processes": {"worker-web": {"replicas": 11}}},
            "replicas is above maxReplicas",
        ),
        ({"settings": {"SECRET_KEY": "x"}}, "SECRET_KEY"),
    ):
        done = helm(("template", "pushsvc", "--kube-version", NEWEST), tmp_path, more)
        assert done.returncode != 0
        assert reason in done.stderr


@pytest.mark.parametrize("case", CASES)
def test_every_process_runs_without_rights(case, tmp_path):
    off = {name for name, each in CASES[case].get("processes", {}).items() if not each["enabled"]}
    found = pods(tmp_path, CASES[case])
    user = int(re.search(r"useradd --uid (\d+)", CONTAINERFILE).group(1))

    assert set(found) == set(procfile()) - off
    for name, pod in found.items():
        (container,) = pod["containers"]
        assert container["args"] == [name]
        assert not pod["automountServiceAccountToken"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["runAsUser"] == user
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        names = {each.removesuffix("_FILE") for each in environment(pod) if each not in SETTINGS}
        assert names <= SECRETS
    asked = [found["web"]["containers"][0][f"{each}Probe"] for each in ("liveness", "startup")]
    assert [each["httpGet"]["path"] for each in asked] == ["/healthz", "/readyz"]


def test_a_process_accepts_the_environment_of_its_container(tmp_path):
    pod = pods(tmp_path, EVERYTHING)["web"]
    secrets = {
        "DATABASE_URL": "postgresql://pushsvc:x@db/pushsvc",
        "REDIS_URL": "redis://redis/0",
        "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQR",
        "CREDENTIAL_KEYS": Fernet.generate_key().decode(),
        "METRICS_TOKEN": "token",
    }
    (volume,) = (each["projected"] for each in pod["volumes"] if "projected" in each)
    mounted = {item["path"] for each in volume["sources"] for item in each["secret"]["items"]}
    assert mounted == set(secrets)
    for name, text in secrets.items():
        (tmp_path / name).write_text(f"{text}\n")
    given = {
        name: value.replace("/run/secrets/pushsvc", str(tmp_path))
        for name, value in environment(pod).items()
    }

    code = (
        "import django, json; django.setup(); from django.conf import settings as s;"
        "from channels_app.checks import require_working_settings; require_working_settings();"
        "print(json.dumps([s.ALLOWED_HOSTS, s.PUBLIC_BASE_URL, s.SUBSCRIPTIONS_PER_CHANNEL]))"
    )
    kept = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "pushsvc.settings"}
    words = [sys.executable, "-c", code]
    done = subprocess.run(
        words, cwd=CHECKOUT, env=kept | given, capture_output=True, text=True, check=False
    )

    hosts = ["push.example.com", "pushsvc.default.svc"]
    assert done.stderr == ""
    assert json.loads(done.stdout) == [hosts, "https://push.example.com", 5_000_000]


@pytest.mark.parametrize(
    ("kind", "made"), [("keda", "ScaledObject"), ("hpa", "HorizontalPodAutoscaler")]
)
def test_workers_are_scaled_by_their_own_work(kind, made, tmp_path):
    more = {"autoscaling": {"kind": kind}}
    found = {name: json.dumps(each) for name, each in manifests(tmp_path, more, made).items()}
    deployments = manifests(tmp_path, more, "Deployment")

    assert set(found) == {name for name in procfile() if name.startswith("worker-")}
    assert {name for name, each in deployments.items() if "replicas" not in each["spec"]} == set(
        found
    )
    for name, text in found.items():
        named = set(re.findall(r"pushsvc_\w+", text))
        platform = name.removeprefix("worker-")
        if platform in ("plan", "hooks"):
            about = {"plan": "notification_start", "hooks": "webhook"}[platform]
            assert named == {f"pushsvc_{about}_lateness_seconds"}
        else:
            assert named == {"pushsvc_due_recipients", "pushsvc_batch_lateness_seconds"}
            assert re.search(rf"platform\W+{platform}\b", text)
