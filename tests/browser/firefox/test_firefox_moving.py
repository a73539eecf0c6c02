"""Firefox whose site moves to pushsvc, to another installation of it, and away. Nobody is asked."""

import json
import re
import shutil
import subprocess
import sys
from io import StringIO
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import connection
from py_vapid import Vapid02

from bench.ports import own_port
from local import embedded
from subscriptions_app.people.linking import devices_link
from subscriptions_app.people.services import PersonChange, person_change
from tests import forked, missing
from tests.browser.firefox.service import Owner, Service
from tests.browser.firefox.test_firefox import shown, subscribe
from tests.browser.firefox.test_firefox_neighbours import ENDPOINT, subscribe_elsewhere
from tests.browser.neighbours import HANDLERS
from tests.factories import make_category, make_segment, make_template
from tests.pipeline.processes import environment, kill
from tests.pipeline.support import until

USER, RULE = "user&ä", {"tag": "news"}
PAGE = (forked.CHECKOUT / "docs" / "migrating.md").read_text(encoding="utf-8")


def block(section, language, number=0):
    """A code block of docs/migrating.md."""
    (text,) = re.findall(rf"^##+ {section}$(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return found[number]


# A browser looks for a new worker at a visit, or after a day. It starts when the tabs are closed.
UPDATED = """navigator.serviceWorker.ready.then(async (registration) => {
  await registration.update();
  const made = registration.installing ?? registration.waiting;
  if (made.state !== "installed") await new Promise((done) => { made.onstatechange = done; });
})"""
MOVES = f"(async () => {{ {block('From each service', 'js')} }})()"


@pytest.fixture(scope="module")
def elsewhere(service, push_service, tmp_path_factory):
    """Another installation: (its address, what its processes have in their environment). It has
    its own database, Redis and secrets."""
    folder = tmp_path_factory.mktemp("elsewhere")
    name, port = f"elsewhere_{uuid4().hex}", own_port()
    (folder / "redis").mkdir()
    redis = embedded.start(folder / "redis", postgres=False, durable=False)
    with connection._nodb_cursor() as cursor:
        template = connection.settings_dict["TEST"].get("TEMPLATE")
        cursor.execute(
            f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else "")
        )
    here = environment()
    own = connection.settings_dict["NAME"]
    variables = (
        here
        | redis.environment
        | {
            "DATABASE_URL": here["DATABASE_URL"].replace(f"/{own}", f"/{name}"),
            "SECRET_KEY": "of-another-installation-" + "0123456789" * 4,
            "CREDENTIAL_KEYS": Fernet.generate_key().decode(),
            "PORT": str(port),
            "GRANIAN_HOST": "127.0.0.1",
        }
    )
    manage(variables, "migrate", "--verbosity=0")
    commands = forked.procfile()
    with (folder / "log").open("w+") as log:
        names = ("web", "worker-plan", "worker-web", "beat")
        processes = [forked.start(commands[each], variables, log) for each in names]
        try:
            moved = Service(f"http://127.0.0.1:{port}", push_service)
            until(moved._is_up, seconds=60)
            yield moved, variables
        finally:
            for each in processes:
                kill(each)
            log.seek(0)
            print(log.read())  # noqa: T201 (pytest shows it where a test failed)
            redis.stop()
            with connection._nodb_cursor() as cursor:
                cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def manage(variables, *arguments):
    """What the command prints."""
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(
        command, cwd=forked.CHECKOUT, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def export(owner, folder):
    given = [str(owner.channel.id), str(folder / "export"), "--with-keys"]
    call_command("export_channel", *given, stdout=StringIO())


def fill(channel, subscription):
    """Gives the device a person with a choice, and the channel something of each kind."""
    make_category(channel, "offers", default=True)
    make_segment(channel, RULE)
    make_template(channel, "Shipped")
    devices_link(channel=channel, links={subscription.pk: USER})
    change = PersonChange(choices={"offers": False})
    person_change(channel=channel, external_id=USER, change=change)


def replace_in_site(site, changes):
    for path, (kind, text) in site.files.items():
        for before, after in changes.items():
            text = text.replace(before, after)
        site.files[path] = (kind, text)


def test_a_browser_moves_to_another_installation_without_noticing(
    firefox, alice, elsewhere, tmp_path
):
    for program in ("curl", "jq"):
        if shutil.which(program) is None:
            missing.skip_without(program)
    there, variables = elsewhere
    subscribe(firefox, alice)
    firefox.in_page('push.setAttributes({plan: "pro"})')
    fill(alice.channel, alice.subscription())
    alice.send(title="Before")
    shown(firefox, ("Before", "Fresh bread"))
    firefox.close_notifications()
    before = firefox.in_page(ENDPOINT)
    firefox.open("about:blank")

    export(alice, tmp_path)
    made = json.loads(manage(variables, "create_channel", "Alice's shop", "--json"))
    run_script(tmp_path, there, made, variables)
    moved = Owner(there, Made(made["channel_id"]), made["api_key"], alice.site)

    sent = moved.send(title="From there")
    shown(firefox, ("From there", "Fresh bread"))
    assert moved.outcome(sent) == (1, 1, 0)
    firefox.close_notifications()
    row = exported(moved)
    assert (row["endpoint"], row["external_id"]) == (before, USER)
    path = f"/channel/{moved.channel.id}"
    assert moved.call(f"{path}/person?external_id=user%26%C3%A4")["choices"] == {"offers": False}
    assert [each["rule"] for each in moved.call(f"{path}/segments")] == [RULE]
    assert [each["name"] for each in moved.call(f"{path}/templates")] == ["Shipped"]

    replace_in_site(
        alice.site, {alice.service.url: there.url, str(alice.channel.id): made["channel_id"]}
    )
    firefox.open(alice.site.url)
    firefox.in_page(MOVES)

    after = exported(moved)
    assert after["vapid_public_key"] == made["vapid_public_key"] != row["vapid_public_key"]
    assert after["endpoint"] == firefox.in_page(ENDPOINT) != before
    for name in ("subscription_id", "external_id", "created_at"):
        assert after[name] == row[name]
    assert after["attributes"] == {"plan": "pro"}
    sent = moved.send(title="After")
    shown(firefox, ("After", "Fresh bread"))
    firefox.click_notification()
    until(lambda: moved.read(sent)["clicked_count"] == 1)


@pytest.mark.parametrize("provider", HANDLERS)
def test_a_browser_of_another_service_is_imported_with_its_key_and_shows_messages(
    firefox, alice, tmp_path, provider
):
    kind, line = alice.site.files["/push-sw.js"]
    alice.site.files["/push-sw.js"] = (kind, HANDLERS[provider])
    firefox.open(alice.site.url)
    key = Vapid02()
    key.generate_keys()
    theirs = firefox.in_page(subscribe_elsewhere(key))

    alice.site.files["/push-sw.js"] = (kind, line + HANDLERS[provider])
    firefox.in_page(UPDATED)
    firefox.open("about:blank")
    private = key.private_pem().decode()
    stored = alice.call(f"/channel/{alice.channel.id}/web-push-keys", {"private_key": private})
    (tmp_path / "subscriptions.ndjson").write_text(json.dumps(theirs))
    call_command(
        "import_subscribers",
        str(alice.channel.id),
        str(tmp_path / "subscriptions.ndjson"),
        "--format=webpush_json",
        f"--vapid-public-key={stored['public_key']}",
        stdout=StringIO(),
    )
    imported = alice.subscription()

    alice.send(title="Ours")
    shown(firefox, ("Ours", "Fresh bread"))
    firefox.close_notifications()

    firefox.open(alice.site.url)
    firefox.in_page(MOVES)
    moved = alice.subscription()
    assert (moved.id, moved.vapid_key.retired_at) == (imported.id, None)
    assert theirs["endpoint"] == imported.address != moved.address == firefox.in_page(ENDPOINT)
    sent = alice.send(title="Again")
    shown(firefox, ("Again", "Fresh bread"))
    until(lambda: alice.reports(sent) == (1, 0, 0))


def test_a_browser_of_a_site_that_left_shows_what_a_library_sends(firefox, alice, tmp_path):
    subscribe(firefox, alice)
    export(alice, tmp_path)
    send = block("To your own server: browsers", "python")

    for replaced in (False, True):
        if replaced:
            worker = block("To your own server: browsers", "js", 1)
            alice.site.files["/push-sw.js"] = ("text/javascript", worker)
            firefox.in_page(UPDATED)
        subprocess.run([sys.executable, "-c", send], cwd=tmp_path, check=True)
        shown(firefox, ("Hello", "From our own server."))
        firefox.close_notifications()


class Made:
    """A channel of another installation."""

    def __init__(self, id):
        self.id = id


def run_script(folder, there, made, variables):
    """The script of the page, with a `manage.py` of the other installation."""
    (folder / "manage.py").write_text(
        f'#!/bin/sh\ncd {forked.CHECKOUT} && exec {sys.executable} manage.py "$1" "$2"'
        f' "{folder}/$3" "$4" "$5"\n'
    )
    (folder / "manage.py").chmod(0o755)
    own = {"NEW": there.url, "CHANNEL": made["channel_id"], "KEY": made["api_key"]}
    done = subprocess.run(
        ["/bin/sh", "-euc", block("To another installation of pushsvc", "sh")],
        cwd=folder,
        env=variables | own | {"PATH": f"{folder}:{variables['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def exported(owner):
    """The row of the channel's only subscription."""
    return owner.call(f"/channel/{owner.channel.id}/subscriptions?include=address")
