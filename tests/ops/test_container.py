"""deploy/container: what compose.yaml starts, and how a container chooses its process."""

import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml

from tests.forked import procfile
from tests.ops.helpers import CHECKOUT

CONTAINER = CHECKOUT / "deploy" / "container"


def composed():
    return yaml.safe_load((CONTAINER / "compose.yaml").read_text())["services"]


def given():
    """The names that .env.example gives."""
    return set(re.findall(r"^([A-Z_]+)=", (CONTAINER / ".env.example").read_text(), re.M))


def test_compose_starts_every_process_of_the_procfile():
    ours = {name: each for name, each in composed().items() if each["image"] == "pushsvc"}

    assert set(ours) == set(procfile())
    for name, service in ours.items():
        assert service["command"] == [name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]


def test_what_compose_asks_for_is_in_the_example_of_its_environment():
    text = (CONTAINER / "compose.yaml").read_text()

    assert set(re.findall(r"\$\{([A-Z_]+)", text)) <= given()


def test_every_setting_of_the_example_exists():
    settings = (CHECKOUT / "docs" / "configuration.md").read_text()

    for name in given() - {"POSTGRES_PASSWORD", "CERTIFICATES", "WITH"}:
        assert f"`{name}`" in settings


def test_the_image_is_built_from_files_that_the_build_can_see():
    text = (CONTAINER / "Containerfile").read_text()
    named = set(re.findall(r"requirements/\S+\.txt", text))
    offered = re.findall(r"--build-arg WITH=(\w+)", text)
    assert offered == ["telemetry", "images"]
    seen = (CHECKOUT / ".dockerignore").read_text().splitlines()

    programs = {
        text for each in composed().values() for text in each.get("healthcheck", {}).get("test", [])
    }
    programs = {each for each in programs if each.startswith("deploy/")} | {
        "deploy/container/start"
    }
    assert len(programs) == 2

    for file in named | programs | {f"requirements/{each}.txt" for each in offered}:
        assert f"!{file}" in seen


def test_every_optional_package_can_be_added_to_the_image_and_is_documented():
    offered = set(re.findall(r"--build-arg WITH=(\w+)", (CONTAINER / "Containerfile").read_text()))
    required = re.findall(
        r'of="(\w+)", for_setting', (CHECKOUT / "pushsvc/settings.py").read_text()
    )
    guide = (CHECKOUT / "docs" / "install.md").read_text()

    assert set(required) == offered
    assert set(re.findall(r"--build-arg WITH=(\w+)`", guide)) == offered
    builds = [each["build"]["args"] for each in composed().values() if "build" in each]
    assert builds
    assert all(each == {"WITH": "${WITH:-base}"} for each in builds)


def test_the_image_has_the_check_that_compose_gives_web():
    text = (CONTAINER / "Containerfile").read_text()
    command = re.search(r"^HEALTHCHECK .*CMD (\[.+\])$", text, re.M).group(1)

    assert ["CMD", *json.loads(command)] == composed()["web"]["healthcheck"]["test"]


class _Web(BaseHTTPRequestHandler):
    """Answers as the web process does: only to a host that is allowed."""

    def do_GET(self):
        is_ours = (self.path, self.headers["Host"]) == ("/healthz", "push.example.com")
        self.send_response(200 if is_ours else 400)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def running(*words):
    """The id of a process that has these words in its command, and does nothing."""
    command = [sys.executable, "-c", "input()", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        yield process.pid
        process.stdin.close()


def checked(*words, **environment):
    """How the check ends in a container whose first process has this command."""
    inherited = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with running(*words) as first:
        return subprocess.run(
            [CONTAINER / "healthy", str(first)],
            env=inherited | environment,
            capture_output=True,
            check=False,
        ).returncode


def test_the_check_of_a_container_asks_its_web_process():
    web = shlex.split(procfile()["web"])
    with HTTPServer(("127.0.0.1", 0), _Web) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        port = str(server.server_port)
        assert checked(*web, PORT=port, ALLOWED_HOSTS="push.example.com,localhost") == 0
        assert checked(*web, PORT=port, ALLOWED_HOSTS=".push.example.com") == 0
        assert checked(*web, PORT=port, ALLOWED_HOSTS="localhost") == 1
        server.shutdown()
    assert checked(*web, PORT=port, ALLOWED_HOSTS="push.example.com") == 1
    behind_init = ("--", "deploy/container/start", "web")
    assert checked(*behind_init, PORT=port, ALLOWED_HOSTS="push.example.com") == 1


@pytest.mark.parametrize("name", sorted(set(procfile()) - {"web"}))
def test_the_check_of_a_container_without_a_web_process_passes(name):
    assert checked(*shlex.split(procfile()[name]), PORT="1") == 0
    assert checked("--", "deploy/container/start", name, PORT="1") == 0


def test_the_trial_of_the_image_says_what_the_machine_lacks():
    done = subprocess.run(
        [sys.executable, CONTAINER / "try"],
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    lack = "podman is not installed" if os.geteuid() == 0 else "it needs root"
    assert done.stderr == f"make container cannot run here: {lack}\n"


def chosen(folder, *arguments):
    """What the container's start runs, in a folder with the Procfile given."""
    (folder / "Procfile").write_text("web: echo web ${PORT:-8000} $0\nworker-web: echo worker\n")
    done = subprocess.run(
        [CONTAINER / "start", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_a_container_starts_the_named_process(tmp_path):
    assert chosen(tmp_path, "web") == "web 8000 sh\n"
    assert chosen(tmp_path, "worker-web") == "worker\n"


def test_a_container_runs_another_command_as_it_is_given(tmp_path):
    assert chosen(tmp_path, "echo", "web:", "a  b", "$PORT") == "web: a  b $PORT\n"
