"""What incoming webhooks of chats take: the text of an alert. Pure.

Slack, Mattermost, Rocket.Chat and Google Chat take `{"text": …}`. Microsoft Teams takes a card
(https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook).
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from channels_app.feeds import EventKind
from channels_app.models import WebhookFormat

# Characters of a line. All of them are below the least limit of a text, the 4,096 of Google Chat.
_MOST: Final = 700
_TEST: Final = "This is a test. Alerts about the channel arrive here."
_CARD: Final = "application/vnd.microsoft.card.adaptive"
_UNSEEN: Final = "\u200b"  # a space without width


class NotForChats(ValueError):
    """Only alerts and tests are for people."""


class _Alert(NamedTuple):
    """`lines`: plain texts, each of one line."""

    lines: list[str]
    url: str


def body_for(format_: WebhookFormat, message: bytes) -> bytes:
    """The body of a request, made from the message's bytes. Raises NotForChats."""
    match format_:
        case WebhookFormat.STANDARD:
            return message
        case WebhookFormat.SLACK:
            return json.dumps({"text": _text(_alert(message))}).encode()
        case WebhookFormat.TEAMS:
            return json.dumps(_card(_alert(message))).encode()


def _alert(message: bytes) -> _Alert:
    said = json.loads(message)
    data: Mapping[str, Any] = said["data"]
    match said["type"]:
        case EventKind.TEST:
            return _Alert([_TEST], "")
        case EventKind.ALERT:
            since = f"Since {data['since']}." if data["since"] else ""
            title = f"{data['title']} ({data['channel_name']})"
            lines = map(_line, (title, since, data["quote"] or "", data["remedy"]))
            return _Alert([line for line in lines if line], data["url"] or "")
        case _:
            raise NotForChats


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST else f"{line[: _MOST - 1]}…"


def _text(alert: _Alert) -> str:
    lines = [_harmless(line) for line in alert.lines]
    return "\n".join([*lines, _escaped(alert.url)] if alert.url else lines)


def _harmless(line: str) -> str:
    """A push service's response calls nobody, and is no link with another text: `@all` and `[…](…)`
    mean something to Mattermost and Rocket.Chat."""
    return _escaped(line).replace("@", f"@{_UNSEEN}").replace("](", f"]{_UNSEEN}(")


def _escaped(text: str) -> str:
    """Otherwise Slack takes `<!channel>` for a call to everybody
    (https://api.slack.com/reference/surfaces/formatting#escaping)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _card(alert: _Alert) -> dict[str, Any]:
    """In text runs, which unlike text blocks have no Markdown. A card shows no address as a link,
    so it has a button."""
    content: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": line}]}
            for line in alert.lines
        ],
    }
    if alert.url:
        action = {"type": "Action.OpenUrl", "title": "Open the dashboard", "url": alert.url}
        content["actions"] = [action]
    return {"type": "message", "attachments": [{"contentType": _CARD, "content": content}]}
