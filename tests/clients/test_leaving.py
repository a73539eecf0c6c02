"""The programs of docs/migrating.md that send to the exported devices, without pushsvc."""

import json
import os
import re
import ssl
import subprocess
import sys
from io import StringIO

import pytest
from django.core.management import call_command

from channels_app.selectors import current_vapid_key
from channels_app.services import vapid_key_rotate
from sandbox import running_sandbox
from sandbox.apns.devices import DEFAULT_TOPIC
from sandbox.certificate import server_chain
from tests.api.support import owner_of
from tests.clients import generators
from tests.factories import make_channel, subscribe_androids, subscribe_iphones

pytestmark = pytest.mark.django_db
MESSAGE = {"title": "Hello", "body": "From our own server.", "url": "https://www.example.com/"}
PROJECT = "demo-app"


@pytest.fixture
def owner(db):
    return owner_of(make_channel(android_enabled=True, ios_enabled=True))


@pytest.fixture
def authority(tmp_path):
    """The file of an authority that no program knows by itself."""
    return tmp_path / "authority.pem"


@pytest.fixture
def push_service(tmp_path, authority, settings):
    """With TLS, because `web-push` sends to no other."""
    chain, pem = server_chain("127.0.0.1")
    (tmp_path / "chain.pem").write_bytes(chain)
    authority.write_text(pem)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "chain.pem")
    with running_sandbox(ssl_context=tls) as running:
        settings.WEBPUSH_TRUSTED_ORIGINS = frozenset({running.origin})
        yield running


def sample(section, language, number=0):
    """A program of the page."""
    page = (generators.CHECKOUT / "docs" / "migrating.md").read_text(encoding="utf-8")
    (text,) = re.findall(rf"^### {section}$(.*?)(?=^###? |\Z)", page, re.MULTILINE | re.DOTALL)
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[number]


def export(owner, folder):
    given = [str(owner.channel.pk), str(folder / "export"), "--with-keys"]
    call_command("export_channel", *given, stdout=StringIO())


def python(text, folder, **environment):
    """What the program prints."""
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def node(text, folder, **environment):
    generators.require_tools()
    (folder / "send.mjs").write_text(text)
    (folder / "node_modules").symlink_to(generators.TOOLS / "node_modules")
    return generators.run(generators.NODE, "send.mjs", cwd=folder, **environment)


@pytest.mark.parametrize(
    ("language", "run", "trusts"),
    [("js", node, "NODE_EXTRA_CA_CERTS"), ("python", python, "REQUESTS_CA_BUNDLE")],
)
def test_a_library_reaches_the_exported_browsers_with_the_exported_keys(
    owner, push_service, authority, tmp_path, language, run, trusts
):
    old, current = current_vapid_key(owner.channel), vapid_key_rotate(channel=owner.channel)
    keys = [old.public_key, current.public_key, old.public_key]
    devices = [push_service.subscribe(key) for key in keys]
    for device, key in zip(devices, keys, strict=True):
        owner.subscribe(device.subscription | {"vapid_public_key": key})
    push_service.delete(devices[2])
    export(owner, tmp_path)

    text = sample("To your own server: browsers", language)
    printed = run(text, tmp_path, **{trusts: str(authority)})

    for device in devices[:2]:
        assert [json.loads(each.plaintext) for each in device.receipts] == [MESSAGE]
    assert printed == f"unsubscribed {devices[2].endpoint}\n"


def test_a_program_reaches_the_exported_android_phones(owner, fcm, tmp_path):
    by_token = [device for device, _ in subscribe_androids(fcm, owner.channel, 2, PROJECT)]
    ((by_fid, _),) = subscribe_androids(fcm, owner.channel, 1, PROJECT, by_fid=True)
    fcm.unregister(by_token[1])
    export(owner, tmp_path)
    account = fcm.service_account(PROJECT) | {"token_uri": fcm.token_uri}
    (tmp_path / "service-account.json").write_text(json.dumps(account))
    text = sample("To your own server: phones", "python")

    printed = python(text.replace("https://fcm.googleapis.com", fcm.origin), tmp_path)

    for device in (by_token[0], by_fid):
        assert [each.message["notification"]["title"] for each in device.receipts] == ["Hello"]
    assert printed == f"uninstalled {by_token[1].token}\n"


def test_a_program_reaches_the_exported_iphones(owner, apns, tmp_path):
    (there, _), (gone, _) = subscribe_iphones(apns, owner.channel, 2)
    gone.behave("unregistered")
    export(owner, tmp_path)
    key = apns.key()
    (tmp_path / "AuthKey.p8").write_text(key.private_key)
    text = sample("To your own server: phones", "python", 1)
    own = {
        "https://api.push.apple.com": f"https://{apns.server}",
        "ABCDE12345": key.team_id,
        "FGHIJ67890": key.key_id,
        "com.example.shop": DEFAULT_TOPIC,
    }
    for name, value in own.items():
        assert name in text
        text = text.replace(name, value)

    printed = python(text, tmp_path, SSL_CERT_FILE=str(apns.ca_file))

    (receipt,) = there.receipts
    assert json.loads(receipt.payload)["aps"]["alert"]["title"] == "Hello"
    assert printed == f"uninstalled {gone.token}\n"
