"""Documents and examples of the checkout as pages of the service: /docs/NAME. Uses no data of apps.

The only input is Markdown of the checkout, so the pages describe this version.
"""

from functools import cache
from pathlib import Path
from typing import Final

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify
from drf_spectacular.utils import extend_schema
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rest_framework.request import Request

from pushsvc.common.errors import NotFound
from pushsvc.common.http.drf import ApiView, django_request

START: Final = {"start": "Quick start"}
# In the order of the home page.
GROUPS: Final = {
    "Send": {
        "browser": "Push on your site",
        "recipes": "Recipes for service workers",
        "migrating": "Migrating from another push service",
        "prompts": "Prompts",
        "webpush": "Browsers",
        "fcm": "Android",
        "apns": "iOS",
        "frameworks": "React Native, Capacitor, Expo and Flutter",
        "content": "Content of a notification",
        "templates": "Templates",
        "schedules": "Schedules",
        "automations": "Automations: welcome and follow up",
        "newsfeeds": "Newsfeeds",
        "identity": "People and their devices",
        "direct": "Send to people",
        "segments": "Segments",
        "tags": "Tags",
        "categories": "Categories and preferences",
        "timing": "Timing",
        "caps": "Caps: how often a person is contacted",
        "ab-tests": "A/B tests: which content works better",
        "inbox": "An inbox: what a device missed",
        "webhooks": "Webhooks",
        "events": "Clicks and other events",
        "sends": "Find, pause, stop, edit and correct a send",
        "results": "Results",
        "statistics": "Statistics by hour and day",
        "data": "Export subscribers and results",
        "explain": "Explain: who gets it, and why not",
        "outcomes": "Outcomes of FCM, APNs and web push",
    },
    "Operate": {
        "install": "Install",
        "upgrade": "Upgrades, backups and keys",
        "configuration": "Settings",
        "monitoring": "Monitoring",
        "runbook": "Runbook",
        "operations": "PostgreSQL, Redis and processes",
        "console": "The console",
        "reliability": "Reliability",
        "performance": "Performance",
        "scale": "Scale",
        "privacy": "Privacy",
        "security": "Security",
        "threats": "Threats",
        "limits": "Limits against abuse",
        "changelog": "Changes in each version",
    },
    "Understand": {
        "architecture": "Architecture",
        "delivery": "Delivery",
        "modules": "Modules of the apps",
        "modules-pushsvc": "Modules of the project",
        "states": "States",
        "glossary": "Glossary",
        "decisions": "Decisions",
    },
}
GUIDES: Final = START | {name: title for group in GROUPS.values() for name, title in group.items()}
# {file: (language, what runs it)}
EXAMPLES: Final = {
    "push.py": ("Python", "python3"),
    "push.mjs": ("Node.js", "node"),
    "push.php": ("PHP", "php"),
    "push.go": ("Go", "go run"),
    "push.rb": ("Ruby", "ruby"),
    "push.sh": ("Shell", "sh"),
}
IDENTITY_EXAMPLES: Final = {
    "identity.py": ("Python", "python3"),
    "identity.mjs": ("Node.js", "node"),
    "identity.php": ("PHP", "php"),
    "identity.go": ("Go", "go run"),
    "identity.rb": ("Ruby", "ruby"),
}
_AT_THE_ROOT: Final = {"start": "README", "security": "SECURITY", "changelog": "CHANGELOG"}
_PAGES: Final = {f"{_AT_THE_ROOT.get(name, name)}.md": f"/docs/{name}" for name in GUIDES}


@extend_schema(exclude=True)
class GuideView(ApiView):
    def get(self, request: Request, name: str) -> HttpResponse:
        if name not in GUIDES:
            raise NotFound
        context = {"title": GUIDES[name], "body": _html(name)}
        return render(django_request(request), "guide.html", context)


@extend_schema(exclude=True)
class ExamplesView(ApiView):
    def get(self, request: Request) -> HttpResponse:
        return render(django_request(request), "examples.html", _examples())


@cache
def _examples() -> dict[str, list[dict[str, str]]]:
    return {
        "examples": _programs(EXAMPLES, ". var/demo.env && {} examples/{}"),
        "identity_examples": _programs(IDENTITY_EXAMPLES, "{} examples/{} user-42"),
    }


def _programs(examples: dict[str, tuple[str, str]], command: str) -> list[dict[str, str]]:
    folder = settings.BASE_DIR / "examples"
    return [
        {
            "name": name,
            "language": language,
            "command": command.format(program, name),
            "text": (folder / name).read_text(encoding="utf-8"),
        }
        for name, (language, program) in examples.items()
    ]


def _path(name: str) -> Path:
    root: Path = settings.BASE_DIR
    folder = root if name in _AT_THE_ROOT else root / "docs"
    return folder / f"{_AT_THE_ROOT.get(name, name)}.md"


@cache
def _html(name: str) -> SafeString:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(_path(name).read_text(encoding="utf-8"))
    for position, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", slugify(tokens[position + 1].content))
        for inner in token.children or ():
            _adapt(inner)
    # Not input of users: text of this checkout, from a renderer that escapes HTML.
    rendered: str = markdown.renderer.render(tokens, markdown.options, {})
    return mark_safe(rendered)  # noqa: S308


def _adapt(token: Token) -> None:
    """Points links at the pages of the documents. Links to other files of the repository and
    pictures become text."""
    if token.type == "link_open":
        address = _address(str(token.attrs.pop("href")))
        if address:
            token.attrSet("href", address)
    elif token.type == "image":
        token.type, token.tag = "text", ""


def _address(link: str) -> str | None:
    """None for a file that has no page."""
    if link.startswith(("http:", "https:", "/", "#")):
        return link
    file, mark, heading = link.removeprefix("../").removeprefix("docs/").partition("#")
    if file.startswith("examples/"):
        return "/docs/examples"
    if file == "errors.md":
        return "/docs/errors"  # a list of codes, without the headings of the document
    return f"{_PAGES[file]}{mark}{heading}" if file in _PAGES else None


def guides() -> dict[str, dict[str, str]]:
    """{group: {address: title}} of all guides except the quick start."""
    return {
        group: {f"/docs/{name}": title for name, title in titles.items()}
        for group, titles in GROUPS.items()
    }
