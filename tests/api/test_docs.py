"""The docs list exactly what the source holds."""

import ast
import re
from importlib import import_module

import pytest
from django.conf import settings

from notifications_app.delivery.registry import TRANSPORTS
from pushsvc.common.errors import PushsvcError
from pushsvc.common.platforms import Platform

PACKAGES = ("pushsvc/common", "channels_app", "subscriptions_app", "notifications_app")
SOURCES = [
    path
    for package in PACKAGES
    for path in (settings.BASE_DIR / package).rglob("*.py")
    if "migrations" not in path.parts
]
# Errors that DRF itself finds.
FRAMEWORK = {"required", "null", "blank"}
EVENT = re.compile(r"[a-z_]+\.[a-z_]+")
LOUD = {"warning", "error", "exception"}
NAMED_LIKE_AN_ERROR = re.compile(r"(not_an?|not_\d+|too|unknown|out_of|given)_[a-z0-9_]+")


def page(name):
    return (settings.BASE_DIR / "docs" / name).read_text(encoding="utf-8")


def listed():
    return re.findall(r"^\| `(\w+)` \| \d+ \| .+ \| .+ \|$", page("errors.md"), re.MULTILINE)


def error_codes():
    for module in (
        "pushsvc.web.application",
        "pushsvc.urls",
        "pushsvc.common.http.handlers",
        "notifications_app.sends.services",
    ):
        import_module(module)
    pending, codes = [PushsvcError], set()
    while pending:
        error = pending.pop()
        codes.add(error.code)
        pending.extend(error.__subclasses__())
    return codes


def field_error_codes():
    """Codes in calls that make errors, and in constants that are spelled like one."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield from _codes_of(node)
            elif isinstance(node, ast.Constant) and NAMED_LIKE_AN_ERROR.fullmatch(str(node.value)):
                yield node.value


def _codes_of(call):
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    position = {"refuse": 0, "_KeyProblem": 0, "FieldError": 1, "invalid": 1}.get(name)
    constants = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
    if position is not None:
        constants += call.args[position : position + 1]
    # "" is the code of a delivered recipient, and SQL is no code
    return [
        node.value
        for node in constants
        if isinstance(node, ast.Constant) and str(node.value).isidentifier()
    ]


def _texts(node):
    """The names of events in the first argument of a call, which may choose one of two."""
    found = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return {each for each in found if EVENT.fullmatch(str(each))}


def logged_events():
    """All texts that are spelled like an event, and the events that are warnings or errors."""
    all_texts, loud = set(), set()
    for package in {*PACKAGES, "pushsvc"}:
        for path in (settings.BASE_DIR / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant):
                    all_texts |= _texts(node)
                elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in LOUD:
                    loud |= _texts(node.args[0]) if node.args else set()
    return all_texts, loud


def test_the_docs_explain_every_event_that_is_a_warning_or_an_error():
    table = page("monitoring.md").partition("\n### Events\n")[2].partition("\n## ")[0]
    documented = {each for each in re.findall(r"`([^`]+)`", table) if EVENT.fullmatch(each)}
    all_texts, loud = logged_events()

    assert loud - documented == set()
    assert documented - all_texts == set()


def test_the_docs_explain_every_code_once_and_no_other():
    assert sorted(listed()) == sorted(error_codes() | set(field_error_codes()) | FRAMEWORK)


def test_the_docs_list_every_variable_that_is_read():
    source = (settings.BASE_DIR / "pushsvc" / "settings.py").read_text(encoding="utf-8")
    procfile = (settings.BASE_DIR / "Procfile").read_text(encoding="utf-8")
    read = set(re.findall(r"ENV\.\w+\(\s*\"([A-Z_]+)\"", source)) | {"PUSHSVC_HOME"}
    read |= set(re.findall(r"\$\{([A-Z_]+)", procfile))

    documented = re.findall(r"^\| `([A-Z_]+)` \|", page("configuration.md"), re.MULTILINE)

    assert sorted(documented) == sorted(read)


@pytest.mark.parametrize(
    ("platform", "heading"), [("android", "FCM"), ("ios", "APNs"), ("web", "Web push")]
)
def test_the_docs_list_every_code_of_an_outcome(platform, heading):
    sections = dict(
        part.split("\n", 1) for part in page("outcomes.md").split("\n## ") if "|---" in part
    )
    rows = sections["Calls without a response"] + sections[heading]

    documented = re.findall(r"^\|(?: [^|]+ \|)? `([a-z_]+)` \|", rows, re.MULTILINE)

    assert sorted(documented) == sorted(TRANSPORTS[Platform(platform)].codes)
