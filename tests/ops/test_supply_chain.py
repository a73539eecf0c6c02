"""Installed packages are pinned, hashed, free of addresses, and audited."""

import json
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from bench.ports import own_port
from tests import missing
from tests.ops.helpers import CHECKOUT

FILES = sorted((CHECKOUT / "requirements").iterdir())
PINNED = [file for file in FILES if file.suffix == ".txt"]
AUDIT = CHECKOUT / ".venv" / "audit" / "bin" / "python"
audited = pytest.mark.skipif(not AUDIT.exists(), reason=missing.reason("pip-audit"))


def requirements(file):
    """Each with all of its lines in one, without comments."""
    text = file.read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]


def names(file):
    return {line.partition("==")[0] for line in requirements(CHECKOUT / "requirements" / file)}


@pytest.mark.parametrize("file", PINNED, ids=lambda file: file.name)
def test_every_requirement_is_one_version_with_its_hashes(file):
    pinned = re.compile(
        r"[a-z0-9-]+(\[[a-z,]+\])?==[^\s=*]+( ; [^-]+)?( +--hash=sha256:[0-9a-f]{64})+"
    )
    assert [line for line in requirements(file) if not pinned.fullmatch(line)] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_requirement_names_an_index(file):
    assert re.findall(r"index-url|find-links|trusted-host|://", file.read_text()) == []


def test_the_audits_tools_are_not_installed_with_the_service():
    tools = {"pip-audit", "pip-licenses", "cyclonedx-bom"}
    assert tools <= names("audit.txt")
    for file in ("base.txt", "run.txt", "dev.txt"):
        assert not tools & names(file)


@contextmanager
def advisories(vulnerable):
    """The address of an OSV service that knows one vulnerability of each of these packages."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            package = asked["package"]
            found = [advisory(package)] if package["name"] in vulnerable else []
            body = json.dumps({"vulns": found} if found else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
        server.shutdown()


def advisory(package):
    ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "999.1"}]}]
    return {
        "id": "PYSEC-2026-1",
        "aliases": ["CVE-2026-0001"],
        "summary": "Anybody can sign in",
        "details": "Anybody can sign in",
        "affected": [{"package": package, "ranges": ranges}],
    }


def audit(url):
    options = ["--vulnerability-service", "osv", "--osv-url", url]
    return subprocess.run(
        [AUDIT, CHECKOUT / ".ci" / "audit.py", *options],
        capture_output=True,
        text=True,
        check=False,
    )


@audited
def test_a_known_vulnerability_fails_the_audit_and_is_named():
    with advisories({"django"}) as url:
        done = audit(url)
    assert done.returncode == 1, done
    found = r"VULNERABLE django [\d.]+: PYSEC-2026-1, CVE-2026-0001; fixed in 999\.1"
    assert re.search(found, done.stdout)
    assert "1 with a known vulnerability" in done.stdout


@audited
def test_an_audit_that_finds_nothing_passes():
    with advisories(set()) as url:
        done = audit(url)
    assert done.returncode == 0, done
    assert done.stdout.count("looked up, 0 with a known vulnerability") == 3


@audited
def test_an_audit_without_advisories_passes_and_says_so():
    done = audit(f"http://127.0.0.1:{own_port()}/v1/query")
    assert done.returncode == 0, done
    assert done.stdout.count("the advisories cannot be reached, nothing was looked up") == 3
    assert "known vulnerability" not in done.stdout


def uses(checkout):
    return subprocess.run(
        [sys.executable, checkout / ".ci" / "installed.py"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_requirement_of_production_is_imported_or_has_a_reason():
    done = uses(CHECKOUT)

    assert done.returncode == 0, done
    assert "\nhpack: imported by notifications_app.delivery.apns." in done.stdout
    assert "\nvine: required by amqp, celery, kombu\n" in done.stdout


def test_a_requirement_that_nothing_imports_fails_the_audit(tmp_path):
    apps = ("pushsvc", "channels_app", "subscriptions_app", "notifications_app")
    for folder in (".ci", "requirements", *apps):
        (tmp_path / folder).mkdir()
    shutil.copy(CHECKOUT / ".ci" / "installed.py", tmp_path / ".ci")
    shutil.copy(CHECKOUT / "requirements" / "base.txt", tmp_path / "requirements")
    shutil.copy(CHECKOUT / "manage.py", tmp_path)
    (tmp_path / "pushsvc" / "lists.py").write_text("from django.db import models\n")

    done = uses(tmp_path)

    assert done.returncode == 1, done
    assert "audit: hpack must either be imported" in done.stdout
    assert "audit: django must" not in done.stdout
