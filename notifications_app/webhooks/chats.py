"""What incoming webhooks of chats take: the text of an alert. Pure.

Slack, Mattermost, Rocket.Chat and Google Chat take `{"text": …}`. Microsoft Teams takes a card
(https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook).
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from channels_app.models import WebhookFormat

_TEST: Final = "This is a test. Alerts about the channel arrive here."
_CARD: Final = "application/vnd.microsoft.card.adaptive"


def body_for(format_: WebhookFormat, message: bytes) -> bytes:
    """The body of a request, made from the message's bytes."""
    match format_:
        case WebhookFormat.STANDARD:
            return message
        case WebhookFormat.SLACK:
            return json.dumps({"text": _escaped(_text(message))}).encode()
        case WebhookFormat.TEAMS:
            return json.dumps(_card(_text(message))).encode()


def _text(message: bytes) -> str:
    data: Mapping[str, Any] = json.loads(message)["data"]
    if "title" not in data:
        return _TEST
    since = f"Since {data['since']}." if data["since"] else ""
    parts = (f"{data['title']} ({data['channel_name']})", since, data["quote"], data["remedy"])
    return "\n".join(part for part in (*parts, data["url"]) if part)


def _escaped(text: str) -> str:
    """Otherwise Slack takes `<!channel>` in a push service's response for a call to everybody
    (https://api.slack.com/reference/surfaces/formatting#escaping)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _card(text: str) -> dict[str, Any]:
    lines = [{"type": "TextBlock", "text": line, "wrap": True} for line in text.split("\n")]
    content = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": lines,
    }
    return {"type": "message", "attachments": [{"contentType": _CARD, "content": content}]}
