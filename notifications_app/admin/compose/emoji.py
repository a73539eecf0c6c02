"""The emoji that the form for composing offers.

Its own list, because pickers from packages load a hundred times as much, most of them from another
host. The names come from Unicode.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_noop as noop

_GROUPS: Final[Mapping[str, str]] = {
    noop("Often used"): "🎉 🔥 ✨ ⭐ ❤️ 👉 ⏰ 🎁 🛒 💥 📣 ✅ 🚀 👀 💡 🙌",
    noop(
        "Faces and hands"
    ): "😀 😃 😊 😍 🥰 😎 🤩 🥳 😂 🤣 😉 🤔 😮 😢 😴 🤗 👍 👏 🙏 👋 💪 👌 🤞 ✌️",
    noop("Offers and orders"): "💸 💰 💳 📦 🚚 🔖 🆓 🆕 💎 👗 👟 👜 📱 💻 📚 🎮",
    noop("News and time"): "📰 📢 🔔 ⚡ 🚨 ⏳ 📅 📍 ❗ ❓ 🏆 🥇 ⚽ 🏀 🎬 🎵",
    noop("Food"): "☕ 🥐 🍞 🍕 🍔 🥗 🍎 🍓 🍰 🍩 🍺 🍷",
    noop("Seasons and travel"): "🌞 🌧️ ⛄ 🌈 🌸 🌻 🍂 🎄 🎃 🐣 ✈️ 🚗 🚆 🏖️ 🏠 🌍",
}
# Emoji whose names in Unicode do not describe the picture well.
_NAMES: Final[Mapping[str, str]] = {
    "❤️": "red heart",
    "👉": "pointing right",
    "🤩": "star-struck face",
    "💥": "explosion",
    "✅": "check mark",
    "🙌": "raised hands",
    "🆓": "free",
    "🆕": "new",
    "⚡": "lightning",
    "❗": "exclamation mark",
    "❓": "question mark",
    "☕": "coffee",
    "🌧️": "rain",
    "🏖️": "beach",
    "🌍": "globe",
}


def picker() -> SafeString:
    """The buttons of all emoji. Cached, because every form has the same, and rendering them takes
    half of its time."""
    return _picker(get_language())


@cache
def _picker(_language: str) -> SafeString:
    return render_to_string("console/notifications/writing/emoji.html", {"groups": _groups()})


def _groups() -> Sequence[tuple[str, Sequence[tuple[str, str]]]]:
    """The heading of each group, and its emoji with their names."""
    return [
        (gettext(title), [(one, _name(one)) for one in of.split()]) for title, of in _GROUPS.items()
    ]


def _name(emoji: str) -> str:
    return _NAMES.get(emoji) or unicodedata.name(emoji[0]).lower()
