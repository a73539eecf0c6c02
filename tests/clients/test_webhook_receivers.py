"""The receivers of docs/webhooks.md and the clients' functions, against requests of the service.

The libraries are those of Standard Webhooks; PHP has none here. Each receiver listens on the port
that docs/webhooks.md names, so it is replaced.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from bench.ports import own_port
from channels_app import webhooks
from notifications_app.webhooks import turns
from pushsvc_client import verify_webhook
from tests import missing
from tests.clients import generators
from tests.clients.readme import blocks
from tests.factories import make_channel
from tests.pipeline.receivers import running_receiver

PAGE = generators.CHECKOUT / "docs" / "webhooks.md"
CLIENT = generators.CHECKOUT / "clients" / "typescript"
_CLIENT_PROGRAM = """
import { readFileSync } from "node:fs";
import { InvalidWebhook, verifyWebhook } from "CLIENT/index.js";
const { headers, body, secret, other } = JSON.parse(readFileSync(0, "utf8"));
const said = await verifyWebhook(body, headers, secret);
console.log(said.id === headers["webhook-id"], said.type, Object.keys(said.data).join());
console.log((await verifyWebhook(Buffer.from(body), new Headers(headers), secret)).type);
const title = (name) => name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
const titled = Object.entries(headers).map(([name, value]) => [title(name), value]);
console.log((await verifyWebhook(body, Object.fromEntries(titled), secret)).type);
const late = String(Number(headers["webhook-timestamp"]) - 400);
for (const [bytes, given, key] of [
  [body + " ", headers, secret],
  [body, headers, other],
  [body, { ...headers, "webhook-timestamp": late }, secret],
  [body, { ...headers, "webhook-timestamp": "x" }, secret],
  [body, { ...headers, "webhook-signature": "v1,é v2,aa v1," }, secret],
  [body, { ...headers, "webhook-signature": "v1,a v1,aa=" }, secret],
  [body, {}, secret],
]) {
  try {
    await verifyWebhook(bytes, given, key);
    console.log("accepted");
  } catch (error) {
    console.log(error instanceof InvalidWebhook);
  }
}
"""


def python(folder, text):
    (folder / "receiver.py").write_text(text)
    return [sys.executable, "receiver.py"], {}


def node(folder, text):
    generators.require_tools()
    (folder / "receiver.mjs").write_text(text)
    (folder / "node_modules").symlink_to(generators.TOOLS / "node_modules")
    return [str(generators.NODE), "receiver.mjs"], {}


def go(folder, text):
    generators.require_go()
    library = generators.GO_MODULES / "github.com" / "standard-webhooks"
    if not library.exists():
        missing.skip_without("what Go needs, which was installed after the generators of clients,")
    (folder / "main.go").write_text(text)
    for name in ("go.mod", "go.sum"):
        shutil.copy(generators.CHECKOUT / ".ci" / "clients" / name, folder)
    own = {
        "GOCACHE": generators.go_cache(),
        "GOMODCACHE": str(generators.GO_MODULES),
        "GOFLAGS": "-mod=mod",
        "GOPROXY": "off",
    }
    generators.run("go", "build", "-o", "receiver", ".", cwd=folder, **own)
    return ["./receiver"], {}


def php(folder, text):
    if not shutil.which("php"):
        missing.skip_without("PHP")
    (folder / "receiver.php").write_text(text)
    return ["php", "-S", "localhost:9000", "receiver.php"], {}


@contextmanager
def running(command, port, folder, **environment):
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [word.replace("9000", str(port)) for word in command],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _await(port, process)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def _await(port, process):
    for _ in range(600):
        assert process.poll() is None
        try:
            urllib.request.urlopen(f"http://localhost:{port}/", data=b"{}", timeout=5)
        except urllib.error.HTTPError:  # the request has no signature
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the receiver did not start")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "prepare"), [("python", python), ("js", node), ("go", go), ("php", php)]
)
def test_a_receiver_of_the_docs_accepts_what_the_service_sends(
    language, prepare, tmp_path, settings
):
    port = own_port()
    settings.WEBHOOK_TRUSTED_ORIGINS = frozenset({f"http://localhost:{port}"})
    (text,) = blocks(PAGE, language)
    assert "9000" in text or language == "php"
    command, more = prepare(tmp_path, text.replace("9000", str(port)))
    channel = make_channel()
    webhook, secret = webhooks.webhook_create(
        channel=channel, url=f"http://localhost:{port}/", events=["notifications.finished"]
    )
    named = {"channel_id": channel.pk, "webhook_id": webhook.pk}

    with running(command, port, tmp_path, WEBHOOK_SECRET=secret, **more):
        message = webhooks.webhook_test(**named)
        turns.work(seconds=20)
        webhooks.webhook_rotate_secret(**named)
        webhooks.webhook_test(**named)
        turns.work(seconds=20)
        webhooks.webhook_rotate_secret(**named)  # the receiver's secret signs no more
        webhooks.webhook_test(**named)
        turns.work(seconds=20)

    states = webhooks.attempts_of(webhook.pk).order_by("message_id").values_list("state", "answer")
    assert [each[0] for each in states] == ["delivered", "delivered", "waiting"]
    assert states[2][1].startswith("400")
    assert f"{message} webhook.test" in (tmp_path / "log").read_text()


@pytest.mark.django_db
def test_the_clients_verify_what_the_service_sends(tmp_path, settings):
    channel = make_channel()
    with running_receiver() as receiver:
        settings.WEBHOOK_TRUSTED_ORIGINS = frozenset({receiver.origin})
        webhook, secret = webhooks.webhook_create(
            channel=channel, url=receiver.origin, events=["notifications.finished"]
        )
        _, other = webhooks.webhook_create(
            channel=channel, url=receiver.origin, events=["notifications.finished"]
        )
        webhooks.webhook_test(channel_id=channel.pk, webhook_id=webhook.pk)
        turns.work(seconds=20)
    (request,) = receiver.requests

    said = verify_webhook(request.body, request.headers, secret)
    assert (said.id, said.type) == (request.message_id, "webhook.test")
    assert said.data["channel_id"] == str(channel.pk)

    generators.require_tools()
    (tmp_path / "program.mjs").write_text(_CLIENT_PROGRAM.replace("CLIENT", str(CLIENT)))
    given = {"headers": request.headers, "body": request.body.decode()}
    done = subprocess.run(
        [str(generators.NODE), "program.mjs"],
        cwd=tmp_path,
        input=json.dumps(given | {"secret": secret, "other": other}),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split("\n") == [
        "true webhook.test channel_id,webhook_id",
        *["webhook.test"] * 2,
        *["true"] * 7,
        "",
    ], done.stderr
