"""Which settings `make run` chooses for its sandbox, and which it leaves as given."""

import shlex
import socket

import pytest

from local.embedded import Home
from local.supervisor.sandbox import Sandbox

NAMES = (
    "WEBPUSH_TRUSTED_ORIGINS",
    "WEBHOOK_TRUSTED_ORIGINS",
    "FCM_API_BASE",
    "GOOGLE_TOKEN_URI",
    "APNS_SERVER",
    "PROVIDER_CA_FILE",
)


@pytest.fixture(autouse=True)
def _nothing_given(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_FILE", raising=False)


def sandbox_of(home, taken=0):
    return Sandbox.of(Home(home), taken=taken)


def test_every_platform_uses_the_sandbox_by_default(home):
    sandbox = sandbox_of(home)
    assert tuple(sandbox.settings()) == NAMES
    assert list(sandbox.controls) == ["web", "android", "ios"]


@pytest.mark.parametrize(
    ("platform", "names"),
    [
        ("android", ("FCM_API_BASE", "GOOGLE_TOKEN_URI")),
        ("ios", ("APNS_SERVER", "PROVIDER_CA_FILE")),
    ],
)
def test_a_given_part_of_a_platforms_settings_keeps_all_of_them_as_given(
    home, monkeypatch, platform, names
):
    for given in (*names, f"{names[0]}_FILE"):
        monkeypatch.setenv(given, "http://a.test")
        sandbox = sandbox_of(home)
        monkeypatch.delenv(given)
        assert sandbox.controls.keys() == {"web", "android", "ios"} - {platform}
        assert sandbox.settings().keys() == {*NAMES} - {*names}


def test_an_empty_value_counts_as_unset(home, monkeypatch):
    monkeypatch.setenv("APNS_SERVER", "")
    assert "ios" in sandbox_of(home).controls


def test_given_trusted_origins_stay_beside_the_sandboxs(home, monkeypatch):
    monkeypatch.setenv("WEBPUSH_TRUSTED_ORIGINS", "http://a.test, http://b.test,")
    sandbox = sandbox_of(home)
    own = sandbox.controls["web"].public_url
    assert sandbox.settings()["WEBPUSH_TRUSTED_ORIGINS"] == f"http://a.test,http://b.test,{own}"


def test_ports_stay_those_of_the_last_start_unless_they_are_in_use(home):
    before = sandbox_of(home).ports
    assert sandbox_of(home).ports == before
    with socket.create_server(("127.0.0.1", before["fcm"])):
        after = sandbox_of(home).ports
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"fcm"}


def test_the_port_of_the_service_is_not_used(home):
    before = sandbox_of(home).ports
    assert before["apns"] not in sandbox_of(home, taken=before["apns"]).ports.values()


def test_the_command_names_every_port_and_where_data_is_stored(home):
    sandbox = sandbox_of(home.parent / "a home")
    words = shlex.split(sandbox.command)
    options = dict(zip(words[3::2], words[4::2], strict=True))
    assert options == {
        "--host": "127.0.0.1",
        "--port": str(sandbox.ports["web"]),
        "--fcm-port": str(sandbox.ports["fcm"]),
        "--apns-port": str(sandbox.ports["apns"]),
        "--apns-control-port": str(sandbox.ports["apns_control"]),
        "--state-dir": str(sandbox.folder),
        "--ca-file": sandbox.settings()["PROVIDER_CA_FILE"],
    }
