"""prompt.mjs in Firefox, with the lines of docs/prompts.md."""

import re
from pathlib import Path

from channels_app.services import channel_set_prompt
from tests.pipeline.support import until

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "prompts.md"
PAGE = """<!doctype html><html lang="de"><meta charset="utf-8"><title>Alice</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self' {service};
  connect-src {service}; worker-src 'self'">
<script type="module" src="/notifications.js"></script></html>"""


def test_a_visitor_accepts_the_prompt_of_the_guide(firefox, alice):
    accept(firefox, alice, "addPrompt")


def test_a_visitor_accepts_the_prompt_that_the_console_describes(firefox, alice):
    when = {"afterPages": 1, "afterSeconds": 0, "againAfterDays": 30, "maxRefusals": 3}
    texts = {"de": {"title": "Brot von heute"}}
    options = {"kind": "slide-in", "scheme": "auto", "texts": texts, **when}
    channel_set_prompt(channel_id=alice.channel.pk, is_on=True, options=options)
    accept(firefox, alice, "addConsolePrompt", said="Brot von heute")


def accept(firefox, alice, call, said="Ja, bitte"):
    """A visitor accepts on a page with the guide's lines for this function, and is asked once."""
    blocks = re.findall(r"```js\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    text = next(each for each in blocks if f"import {{ {call} }}" in each)
    text = text.replace("https://push.example.com", alice.service.url)
    text = text.replace("00000000-0000-0000-0000-000000000000", str(alice.channel.id))
    alice.site.files["/shop"] = ("text/html", PAGE.format(service=alice.service.url))
    alice.site.files["/notifications.js"] = ("text/javascript", text)
    firefox.open(f"{alice.site.url}shop")
    until(lambda: said in words(firefox))

    firefox.click_inside("pushsvc-prompt", ".allow")

    until(lambda: alice.subscriber_count() == 1)
    until(lambda: "sind eingeschaltet" in words(firefox))
    firefox.open(f"{alice.site.url}shop")
    assert firefox.script("return document.querySelector('pushsvc-prompt') === null;")


def words(firefox):
    return firefox.script(
        """const prompt = document.querySelector("pushsvc-prompt");
        return prompt ? prompt.shadowRoot.textContent : "";"""
    )
