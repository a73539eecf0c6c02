"""The JavaScript of docs/frameworks.md runs against the service, on stand-ins for its vendors."""

import json
import os
import re
import secrets
import shutil
import subprocess
from pathlib import Path

import pytest

from pushsvc.common.store.redis_client import redis_client
from subscriptions_app.models import Subscription
from tests import missing
from tests.api.events import counts, reached
from tests.api.people import new_key, token
from tests.api.support import owner_of
from tests.clients.generators import CHECKOUT
from tests.clients.test_examples import found
from tests.factories import make_channel
from tests.pipeline.processes import running_web

PROGRAMS = Path(__file__).resolve().parent / "frameworks"
MODULES = re.compile(r'from "(@?[a-z][^"]*)"|^import "([a-z][^"]*)"', re.MULTILINE)
FRAMEWORKS = ["react-native", "capacitor", "expo"]
FCM = "cdEf_-0123456789abcdef"


def new_address(platform):
    if platform == "ios":
        return secrets.token_hex(32)
    return f"{secrets.token_hex(11)}:{secrets.token_hex(70)}"


@pytest.fixture(scope="module")
def service(transactional_db, tmp_path_factory):
    redis_client().flushdb()
    with running_web(tmp_path_factory.mktemp("service") / "log") as address:
        yield address


@pytest.fixture
def owner(transactional_db):
    return owner_of(make_channel(ios_enabled=True, android_enabled=True))


def samples():
    """{file: its text} of the guide."""
    text = (CHECKOUT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    return dict(re.findall(r"```js\n// (\S+)\n(.*?)```", text, re.DOTALL))


@pytest.fixture
def phone(service, owner, tmp_path):
    """A phone with the apps of the guide. Runs one, and returns the lines that it prints."""
    if found("node") is None:
        missing.skip_without("node")
    for path in PROGRAMS.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    for name, text in samples().items():
        text = text.replace("https://push.example.com", service)
        text = text.replace("00000000-0000-0000-0000-000000000000", str(owner.channel.id))
        (tmp_path / name).write_text(text)
        for module in {one or other for one, other in MODULES.findall(text)}:
            folder = tmp_path / "node_modules" / module
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_text('{"type": "module", "exports": "./index.js"}')
            vendors = (tmp_path / "vendors.mjs").as_uri()
            lines = f'export * from "{vendors}"; export {{ default }} from "{vendors}";'
            (folder / "index.js").write_text(lines)

    def run(program, **environment):
        done = subprocess.run(
            [found("node"), program],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "STORE": str(tmp_path / "store"), **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout.splitlines()

    return run


def rows_of(owner):
    return list(Subscription.objects.filter(channel=owner.channel))


@pytest.mark.parametrize("platform", ["ios", "android"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_app_registers_and_follows_a_changed_address(phone, owner, framework, platform):
    first, second = new_address(platform), new_address(platform)
    app = {"FRAMEWORK": framework, "PLATFORM": platform}

    phone("app.mjs", ADDRESS=first, **app)
    [row] = rows_of(owner)
    assert (row.platform, row.address) == (platform, first)

    if framework == "react-native" and platform == "ios":  # it tells nobody of a new APNs token
        phone("app.mjs", ADDRESS=second, **app)
    else:
        phone("app.mjs", ADDRESS=first, DO="renew", ARGUMENT=second, **app)
    [moved] = rows_of(owner)
    assert (moved.pk, moved.address) == (row.pk, second)


# On iOS, React Native Firebase passes only Firebase's messages to JavaScript.
TAPS = [(each, "android") for each in FRAMEWORKS] + [("capacitor", "ios"), ("expo", "ios")]


@pytest.mark.parametrize(("framework", "platform"), TAPS)
def test_a_tap_is_counted_and_opens_the_link(phone, owner, framework, platform):
    notification, [tracking] = reached(owner, 1)
    data = {"token": tracking, "url": "shop://orders/17"}
    app = {"FRAMEWORK": framework, "PLATFORM": platform, "ADDRESS": new_address(platform)}

    said = phone("app.mjs", DO="tap", ARGUMENT=json.dumps(data), **app)

    assert said == ["opened shop://orders/17"]
    assert counts(notification) == (1, 1, 0)


TEXTS = {"title": "Shipped", "body": "It left."}


@pytest.mark.parametrize("is_data_only", [False, True])
def test_a_message_to_an_open_react_native_app_is_shown_and_counted(phone, owner, is_data_only):
    notification, [tracking] = reached(owner, 1)
    data = {"token": tracking, "url": "shop://orders/17"}
    message = {"data": data | TEXTS} if is_data_only else {"data": data, "notification": TEXTS}
    app = {"FRAMEWORK": "react-native", "PLATFORM": "android", "ADDRESS": new_address("android")}

    said = phone("app.mjs", DO="receive", ARGUMENT=json.dumps(message), **app)

    assert said == ["shown Shipped It left. shop://orders/17"]
    assert counts(notification) == (1, 0, 0)


def called(phone, *calls):
    return phone("calls.mjs", DO=json.dumps(calls))


def test_an_fcm_token_of_an_ios_app_is_refused(phone, owner):
    [said] = called(phone, ("register", "ios", new_address("android")))
    assert said.startswith("400 ")
    assert json.loads(said[4:])["errors"][0]["code"] == "not_a_token"


def test_expos_own_token_is_refused(phone, owner):
    expo = "ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]"
    said = called(phone, ("register", "ios", expo), ("register", "android", expo))
    assert all("not_a_token" in each for each in said)


def test_a_firebase_installation_id_is_an_address(phone, owner):
    assert called(phone, ("register", "android", FCM)) == ["ok"]
    assert rows_of(owner)[0].address == FCM


def test_a_device_that_unsubscribed_stays_so_until_it_subscribes_again(phone, owner):
    register = ("register", "ios", new_address("ios"))
    assert called(phone, register, ("unsubscribe",), register) == ["ok"] * 3
    [row] = rows_of(owner)
    assert row.expired_code == "unsubscribed"

    assert called(phone, ("resubscribe",), register) == ["ok"] * 2

    [again] = rows_of(owner)
    assert (again.pk, again.expired_at) == (row.pk, None)


def test_a_user_signs_in_and_out_and_tags_change(phone, owner):
    proof = {"external_id": "user-42", "identity_token": token(owner, new_key(owner))}
    change = {"add_tags": ["team-7"], "attributes": {"plan": "gold"}}
    register = ("register", "android", new_address("android"))

    assert called(phone, (*register, proof | change)) == ["ok"]

    [row] = rows_of(owner)
    assert row.person.external_id == "user-42"
    assert [each.tag for each in row.tags.all()] == ["team-7"]
    assert row.attributes == {"plan": "gold"}
    assert called(phone, (*register, {"external_id": None})) == ["ok"]
    assert rows_of(owner)[0].person is None
