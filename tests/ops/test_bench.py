"""The bench: its sinks count what is sent, a peer must send everything, and a figure runs whole."""

import json
import shutil
import subprocess
import sys
import uuid
from dataclasses import replace

import pytest

from bench import filling
from bench.__main__ import write
from bench.peers import Peer
from bench.sink import find_nginx, running_sink
from bench.work import BODY, TITLE, make_work
from notifications_app.content.tracking import make_token
from notifications_app.content.values import Content
from notifications_app.delivery.types import Message
from notifications_app.delivery.webpush.transport import payload
from pushsvc.common.store import sql
from tests import missing
from tests.ops.helpers import CHECKOUT, environment

NGINX = pytest.param(
    find_nginx(),
    id="nginx",
    marks=pytest.mark.skipif(find_nginx() is None, reason=missing.reason("nginx")),
)

# It says that nothing failed, whatever it sent.
LIAR = "input('ready\\n'); print('failed 0', flush=True); input()"


@pytest.fixture(params=[NGINX, pytest.param(None, id="own")])
def sink(request):
    with running_sink(request.param) as running:
        yield running


def post(sink, protocol, *paths):
    """The status of each answer, over one connection."""
    apns_id = str(uuid.uuid4())
    asked = [f"{sink.origin}{path}" for path in paths]
    done = subprocess.run(
        ["curl", "--silent", f"--http{protocol}", "--cacert", sink.authority, "--data", "x" * 300]
        + ["--header", f"apns-id: {apns_id}", "--write-out", "%{http_version} %{http_code}\n"]
        + [part for url in asked for part in ("--output", "/dev/null", url)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("protocol", ["1.1", "2"])
def test_a_sink_counts_messages_and_nothing_else(sink, protocol):
    with sink.expecting(4):
        answers = post(
            sink, protocol, "/push/a", "/push/b", "/3/device/c", "/v1/projects/d/messages:send"
        )
        grants = post(sink, protocol, "/token")
    assert answers == [f"{protocol} 201"] * 2 + [f"{protocol} 200"] * 2
    assert grants == [f"{protocol} 200"]


def test_a_message_more_than_expected_is_an_error(sink):
    with (
        pytest.raises(RuntimeError, match="the sink got 2 messages of 1"),
        sink.expecting(1),
    ):
        post(sink, "1.1", "/push/a", "/push/b")


def test_a_peer_that_sends_less_than_it_should_is_an_error(sink, tmp_path):
    peer = Peer("liar", "liar", lambda: [sys.executable, "-c", LIAR], "", "", "")
    work = make_work(tmp_path, sink, 1)
    with pytest.raises(RuntimeError, match="the sink got 0 messages of 50"):
        peer.spend(work, replace(sink, patience=0.1), 50, 10)


def test_pushsvc_and_the_peers_send_a_browser_as_many_bytes(sink, tmp_path):
    work = make_work(tmp_path, sink, 1)
    content = Content(title=TITLE, body=BODY, ttl=3_600)
    token = make_token(uuid.uuid4(), uuid.uuid4())
    own = payload(Message(uuid.uuid4(), content, expires_at=0.0), token)
    assert json.loads(own).keys() == json.loads(work.content["payload"]).keys()
    assert len(own) == len(work.content["payload"].encode()) == 343


INDEXES = """
SELECT indexdef FROM pg_indexes WHERE tablename = 'subscriptions_app_subscription'
UNION SELECT pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = 'subscriptions_app_subscription'::regclass
ORDER BY 1
"""


def test_tables_that_were_filled_in_bulk_have_their_indexes_and_checks_again(transactional_db):
    before = sql.rows(INDEXES, {})
    with filling.in_bulk("subscriptions_app_subscription"):
        filled = sql.rows(INDEXES, {})
        filling.channel_with(20, platforms=["web"])
    assert sql.rows(INDEXES, {}) == before
    assert len([row for row in filled if "INDEX" in row[0]]) == 1
    assert sql.rows("SHOW session_replication_role", {}) == [("origin",)]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The file that a run without toolchains wrote, section by section: not in their order."""
    home = tmp_path_factory.mktemp("bench")
    file = home / "results.md"
    counts = ["--messages", "50", "--recorded", "50", "--requests", "2", "--rounds", "1"]
    subprocess.run(
        [sys.executable, "-m", "bench", "rows", "web", "requests", *counts, "--file", str(file)],
        cwd=CHECKOUT,
        env=environment(home) | {"PATH": "/nowhere"},
        check=True,
    )
    return file


def test_a_figure_runs_from_its_rows_to_its_table(results):
    written = results.read_text()
    assert "| pushsvc, one worker-web process |" in written
    assert "webpush-go was skipped: go is not installed." in written
    assert "Other processes had" in written


def test_a_figure_takes_the_place_of_its_section(results, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")  # the head names the toolchains
    file = tmp_path / "results.md"
    shutil.copy(results, file)
    write(file, "A recipient in PostgreSQL", "## A recipient in PostgreSQL\n\nFor each of 60.\n")
    head, *sections = results.read_text().split("\n## ")
    new_head, *new_sections = file.read_text().split("\n## ")
    assert [section.partition("\n")[0] for section in sections] == [
        "Web push, beside libraries that only send",
        "Requests, beside a view with one INSERT",
        "A recipient in PostgreSQL",
    ]
    assert "For each of 50 recipients." in sections[2]
    assert (new_head, new_sections[:2]) == (head, sections[:2])
    assert new_sections[2:] == ["A recipient in PostgreSQL\n\nFor each of 60.\n"]
