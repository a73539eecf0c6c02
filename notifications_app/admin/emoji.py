"""The emoji that the form for composing offers.

A list of our own, because the pickers that packages offer load a hundred times as much, most of
them from another host. Their names come from Unicode.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

_GROUPS: Final[Mapping[str, str]] = {
    "Often used": "🎉 🔥 ✨ ⭐ ❤️ 👉 ⏰ 🎁 🛒 💥 📣 ✅ 🚀 👀 💡 🙌",
    "Faces and hands": "😀 😃 😊 😍 🥰 😎 🤩 🥳 😂 🤣 😉 🤔 😮 😢 😴 🤗 👍 👏 🙏 👋 💪 👌 🤞 ✌️",
    "Offers and orders": "💸 💰 💳 📦 🚚 🔖 🆓 🆕 💎 👗 👟 👜 📱 💻 📚 🎮",
    "News and time": "📰 📢 🔔 ⚡ 🚨 ⏳ 📅 📍 ❗ ❓ 🏆 🥇 ⚽ 🏀 🎬 🎵",
    "Food": "☕ 🥐 🍞 🍕 🍔 🥗 🍎 🍓 🍰 🍩 🍺 🍷",
    "Seasons and travel": "🌞 🌧️ ⛄ 🌈 🌸 🌻 🍂 🎄 🎃 🐣 ✈️ 🚗 🚆 🏖️ 🏠 🌍",
}
# Unicode's own names for these say less than their picture.
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


@cache
def picker() -> SafeString:
    """The buttons of all emoji. Every form has the same, and they are half of its work."""
    return render_to_string("console/notifications/writing/emoji.html", {"groups": _groups()})


def _groups() -> Sequence[tuple[str, Sequence[tuple[str, str]]]]:
    """Each group's heading, and its emoji with their names."""
    return [(title, [(one, _name(one)) for one in of.split()]) for title, of in _GROUPS.items()]


def _name(emoji: str) -> str:
    return _NAMES.get(emoji) or unicodedata.name(emoji[0]).lower()
