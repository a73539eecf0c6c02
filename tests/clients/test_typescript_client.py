"""clients/typescript against the running service, and its retries against a server that fails."""

import re
import shutil

import pytest

from tests.clients import generators
from tests.clients.failing import BUSY, SENT, answering

PACKAGE = generators.CHECKOUT / "clients" / "typescript"
SAID = r"""subscribed [-0-9a-f]{36}
sent ([-0-9a-f]{36})
result sent: 1 of 1
refused 400 segment_not_found
paused true not_running
cancelled 1 0
true null
"""
IN_FLIGHT = (409, {"code": "idempotency_key_in_flight"}, {"Retry-After": "0"})
REFUSED = (400, {"code": "validation_error"}, {})


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project that has installed the package by its path, and what it needs from there too."""
    generators.require_tools()
    project = tmp_path_factory.mktemp("project")
    (project / "package.json").write_text('{"type": "module"}')
    package = shutil.copytree(PACKAGE, project / "package")
    needed = generators.TOOLS / "node_modules"
    paths = [package, needed / "openapi-fetch", needed / "openapi-typescript-helpers"]
    options = ["--install-links", "--offline", "--no-audit", "--no-fund"]
    generators.run("npm", "install", *options, *paths, cwd=project)
    return project


def test_it_does_all_that_it_offers(project, shop):
    generators.compile_typescript(project, "typescript_client.ts")

    said = generators.run(
        generators.NODE, "typescript_client.js", cwd=project, **shop.environment()
    )

    assert re.fullmatch(SAID, said), said


def retried(project, *answers, retries=4):
    """What the program says, and the headers of its requests."""
    shutil.copy(generators.PROGRAMS / "retries.js", project)
    with answering(*answers) as (url, requests):
        said = generators.run(
            generators.NODE, "retries.js", cwd=project, URL=url, RETRIES=str(retries)
        )
    return said.splitlines(), requests


@pytest.mark.parametrize("answer", [BUSY, IN_FLIGHT, None], ids=["busy", "in flight", "none"])
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


@pytest.mark.parametrize(
    ("answers", "retries", "raised"),
    [
        ([REFUSED], 4, "Refused validation_error"),
        ([BUSY, BUSY], 1, "Refused busy"),
        ([None, None], 1, "Unreachable "),
    ],
    ids=["for good", "too often", "no answer"],
)
def test_what_does_not_help_is_an_error(project, answers, retries, raised):
    said, requests = retried(project, *answers, retries=retries)

    assert said[-1] == raised
    assert len(requests) == len(answers)


def test_its_types_are_those_of_the_document(workshop):
    generators.require_tools()

    folder = workshop.kept(generators.client_types)

    for name in ("schema.d.ts", "index.d.ts"):
        made, kept = (folder / name).read_text(), (PACKAGE / name).read_text()
        assert made == kept, f"{name} is old: run make openapi"
