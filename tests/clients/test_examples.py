"""The programs of examples/ do what they say, each in its language."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import missing
from tests.clients.generators import go_cache
from tests.clients.webhooks import BODY, SECRET, signed

CHECKOUT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = CHECKOUT / "examples"
NODE = CHECKOUT / ".venv" / "node" / "bin"  # where make lint installs it
RUN = {
    "push.py": ("python3",),
    "push.mjs": ("node",),
    "push.php": ("php",),
    "push.go": ("go", "run"),
    "push.rb": ("ruby",),
    "push.sh": ("sh",),
}
NEEDS = {"push.sh": "curl"}
SAID = r"""subscribed [-0-9a-f]{36}
sent [-0-9a-f]{36}
result sent: 1 of 1
refused 400 validation_error body
"""


def found(program):
    return shutil.which(program, path=f"{os.environ['PATH']}:{NODE}")


@pytest.mark.parametrize("name", RUN)
def test_an_example_subscribes_sends_waits_and_shows_an_error(name, shop, tmp_path):
    program, *options = RUN[name]
    for needed in filter(None, (program, NEEDS.get(name))):
        if found(needed) is None:
            missing.skip_without(needed)

    own = {"GOCACHE": go_cache()} if program == "go" else {}

    done = subprocess.run(
        [found(program), *options, str(EXAMPLES / name)],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **own, **shop.environment()},
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr
    assert re.fullmatch(SAID, done.stdout), done.stdout + done.stderr


def test_the_list_of_examples_is_complete():
    assert {path.name for path in EXAMPLES.glob("push.*")} == set(RUN)
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"{name}`" in listed for name in RUN)


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": None},
        {"webhook-timestamp": None},
        {"webhook-timestamp": "x"},
        {"webhook-signature": None},
        {"webhook-signature": "v1,é"},
    ],
    ids=str,
)
def test_the_webhook_receiver_refuses_what_is_not_signed(changed, monkeypatch):
    for name in ("PUSHSVC_URL", "PUSHSVC_CHANNEL", "PUSHSVC_KEY"):
        monkeypatch.setenv(name, "unused")
    program, _, _ = (EXAMPLES / "webhook.py").read_text().partition("\nsignal.signal(")
    example = {}
    exec(program, example)  # noqa: S102 - the example, without its server
    headers = signed(SECRET)
    given = {name: value for name, value in (headers | changed).items() if value is not None}

    assert example["is_signed"](headers, BODY, SECRET)
    assert not example["is_signed"](given, BODY, SECRET)
