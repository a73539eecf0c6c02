"""The examples of a client's README, to be run."""

import re


def blocks(path, language):
    """The texts of the code blocks in this language."""
    pattern = rf"^```{language}\n(.*?)^```$"
    return re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def filled(text, shop):
    """The text with the shop's own address, channel and key."""
    own = {
        "https://push.example.com": shop.url,
        "<channel id>": shop.channel,
        "<API key>": shop.key,
    }
    for example, value in own.items():
        assert example in text
        text = text.replace(example, value)
    return text
