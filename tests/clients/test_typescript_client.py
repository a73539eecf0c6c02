"""clients/typescript against the running service, and its retries against a server that fails."""

import json
import re
import shutil

import pytest

from tests import openapi
from tests.api.credentials import GOOGLE
from tests.clients import generators
from tests.clients.failing import BUSY, CHANNEL, SENT, answering
from tests.clients.readme import blocks, filled

PACKAGE = generators.CHECKOUT / "clients" / "typescript"
SAID = r"""subscribed [-0-9a-f]{36} 87
result sent: 1 of 1
before 0 1
target reached 404 not_found true
refused 400 segment_not_found true
paused true 409 not_running true
winner 409 no_test true
pending Even later 2999-01-01T00:00:00.000Z
now cancelled
inbox It works\. 1
zone Europe/Berlin
days 1
channel 1 fcm_service_account
content Deals Sent
lists 103 101 100
schedules Digest false 0
automations Welcome false 0
newsfeeds News false null
web push keys true false
webhooks 1 true webhook.test 0
people 1 1 1 1
exported pro true
tags news:de
segments 1 \[ 'Pro' \] Pro
erased true
imported 5002 10006
request 0
dates no error but "scheduled_at is an invalid Date"
undefined
"""
MISTAKES = """
import { Client } from "pushsvc-client";
const key = "psk_x";
const url = "https://push.example.com";
for (const use of [
  () => new Client("push.example.com", { channel: "CHANNEL", key }),
  () => new Client("localhost:8000", { channel: "CHANNEL", key }),
  () => new Client(url, { channel: "My shop", key }),
  () => new Client(url, { channel: "CHANNEL", key }).listNotifications({ status: ["sent"] }).next(),
]) {
  try {
    await use();
  } catch (error) {
    console.log(error.name, error.message);
  }
}
"""
EMPTY = """
import { Client } from "pushsvc-client";
const push = new Client("http://127.0.0.1:1", { channel: "CHANNEL", key: "psk_x", retries: 0 });
let count = 0;
for await (const _ of push.listNotifications({ limit: 0 })) count += 1;
console.log(count);
"""
IN_FLIGHT = (409, {"code": "idempotency_key_in_flight"}, {"Retry-After": "0"})
MOVED = (308, None, {"Location": "https://push.example.com/"})
CUT = (202, {"notification_id": "one"}, {"Content-Length": "1000"})  # the connection ends earlier
REFUSED = (400, {"code": "validation_error"}, {})


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project that has installed the package from its tarball."""
    generators.require_tools()
    project = tmp_path_factory.mktemp("project")
    (project / "package.json").write_text('{"type": "module"}')
    generators.run("npm", "pack", "--silent", PACKAGE, cwd=project)
    (tarball,) = project.glob("*.tgz")
    options = ["--offline", "--no-audit", "--no-fund"]
    generators.run("npm", "install", *options, tarball, cwd=project)
    return project


def test_every_operation_of_the_document_works(project, shop):
    generators.compile_typescript(project, "typescript_client.ts")
    google = {"GOOGLE": json.dumps(GOOGLE)}

    said = generators.run(
        generators.NODE, "typescript_client.js", cwd=project, **shop.environment(), **google
    )

    assert re.fullmatch(SAID, said), said
    text = (generators.PROGRAMS / "typescript_client.ts").read_text()
    paths = openapi.document()["paths"].values()
    names = [each["operationId"] for operations in paths for each in operations.values()]
    assert [name for name in names if f"push.{camel(name)}(" not in text] == []


def camel(name):
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def test_the_examples_of_the_readme_run(project, shop):
    shop.subscribe()
    shop.enable_android()
    program = filled("\n".join(blocks(PACKAGE / "README.md", "ts")), shop)
    (project / "readme.ts").write_text(program)
    generators.run("tsc", *generators.TSC_OPTIONS, "readme.ts", cwd=project)

    said = generators.run(generators.NODE, "readme.js", cwd=project)

    assert said.splitlines() == [
        "sent 1 of 1",
        "true We open at ten.",
        "bread",
        "1 new",
        "line 3 not_a_token",
        "web []",
        "android [ 'bread' ]",
        "400 validation_error",
        "body too_long Must be at most 255 characters long.",
        "target_platforms.0 not_a_choice Must be one of: web, android, ios, all.",
        "true",
        "0 people",
    ]


def test_a_mistake_in_the_options_is_an_error_at_once(project):
    (project / "mistakes.js").write_text(MISTAKES.replace("CHANNEL", CHANNEL))

    said = generators.run(generators.NODE, "mistakes.js", cwd=project)

    assert said.splitlines() == [
        'TypeError "push.example.com" is no address: write it as https://push.example.com',
        'TypeError "localhost:8000" is no address: write it as https://push.example.com',
        'TypeError "My shop" is no channel id: it is a UUID, and the console shows it',
        'TypeError status: give one value, not ["sent"]',
    ]


def test_a_list_of_at_most_no_entries_is_empty(project):
    (project / "empty.js").write_text(EMPTY.replace("CHANNEL", CHANNEL))

    assert generators.run(generators.NODE, "empty.js", cwd=project) == "0\n"


def test_the_package_has_a_version_of_its_own(project):
    version = json.loads((PACKAGE / "package.json").read_text())["version"]
    show = 'import { VERSION } from "pushsvc-client"; console.log(VERSION);'

    said = generators.run(generators.NODE, "--input-type=module", "-e", show, cwd=project)

    assert said.strip() == version


def retried(project, *answers, retries=4, call="sendNotification", options="{}"):
    """What the program says, and the headers of its requests."""
    shutil.copy(generators.PROGRAMS / "retries.js", project)
    with answering(*answers) as (url, requests):
        said = generators.run(
            generators.NODE,
            "retries.js",
            cwd=project,
            URL=url,
            RETRIES=str(retries),
            CALL=call,
            OPTIONS=options,
            CHANNEL=CHANNEL,
        )
    return said.splitlines(), requests


@pytest.mark.parametrize(
    "answer", [BUSY, IN_FLIGHT, None, CUT], ids=["busy", "in flight", "none", "cut off"]
)
def test_a_send_is_repeated_with_the_same_idempotency_key(project, answer):
    said, requests = retried(project, answer, answer, SENT)

    assert said[-1] == "one"
    assert len(requests) == 3
    assert len({each["Idempotency-Key"] for each in requests}) == 1


def test_a_retry_waits_for_as_long_as_the_response_says(project):
    told = (429, {"code": "rate_limited"}, {"Retry-After": "7"})

    said, _ = retried(project, told, SENT)

    assert "pause 7000" in said
    assert said[-1] == "one"


def test_a_call_is_not_retried_if_the_service_asks_for_a_long_wait(project):
    told = (429, {"code": "rate_limited"}, {"Retry-After": "86400"})

    said, requests = retried(project, told)

    assert (said[-1], len(requests)) == ("Refused rate_limited", 1)


@pytest.mark.parametrize(("status", "count"), [(429, 2), (503, 1)])
def test_a_creation_is_retried_only_if_nothing_was_done(project, status, count):
    told = (status, {"code": "some_code"}, {"Retry-After": "0"})

    _, requests = retried(project, told, (201, {}, {}), call="createSegment")

    assert len(requests) == count


def test_a_send_without_an_idempotency_key_is_not_repeated_if_it_may_have_been_done(project):
    said, requests = retried(project, BUSY, options='{"idempotencyKey": ""}')

    assert said[-1] == "Refused busy"
    assert [each["Idempotency-Key"] for each in requests] == [None]


@pytest.mark.parametrize(
    ("answers", "retries", "raised"),
    [
        ([REFUSED], 4, "Refused validation_error"),
        ([BUSY, BUSY], 1, "Refused busy"),
        ([None, None], 1, "Unreachable "),
        ([MOVED], 4, "Refused "),
        ([CUT, CUT], 1, "Unreachable "),
    ],
    ids=["for good", "too often", "no answer", "moved by a proxy", "cut off"],
)
def test_what_does_not_help_is_an_error(project, answers, retries, raised):
    said, requests = retried(project, *answers, retries=retries)

    assert said[-1] == raised
    assert len(requests) == len(answers)


def test_its_types_are_those_of_the_document(workshop):
    generators.require_tools()

    folder = workshop.kept(generators.client_types)

    for name in ("schema.d.ts", "calls.d.ts", "operations.d.ts", "index.d.ts"):
        made, kept = (folder / name).read_text(), (PACKAGE / name).read_text()
        assert made == kept, f"{name} is old: run make openapi"
