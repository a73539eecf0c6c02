"""The emoji that the form for composing offers.

A list of our own, because the pickers that packages offer load a hundred times as much, most of
them from another host. Their names come from Unicode.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final

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


def groups() -> Sequence[tuple[str, Sequence[tuple[str, str]]]]:
    """Each group's heading, and its emoji with their names."""
    return [(title, [(one, _name(one)) for one in of.split()]) for title, of in _GROUPS.items()]


def _name(emoji: str) -> str:
    return _NAMES.get(emoji) or unicodedata.name(emoji[0]).lower()
