"""The languages in which a form has texts: their tabs, and who reads them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.utils.translation import get_language_info, gettext

from notifications_app.admin.compose.form import ComposeForm
from notifications_app.admin.compose.sections import Section, languages_of
from pushsvc.common.languages import canonical_language, lookup_key, lookup_order
from subscriptions_app.audiences.languages import language_shares

_LEAST_OFFERED: Final = 0.005  # half a percent, which is shown as 1 %


@dataclass(frozen=True, slots=True)
class LanguageTab:
    """`share`: the share of the channel's devices that get these texts, as text; "" if the channel
    has no devices."""

    section: Section
    name: str
    share: str
    is_opened: bool


def languages_context(
    channel_id: UUID, form: ComposeForm, sections: Sequence[Section], *, opened: str = ""
) -> Mapping[str, Any]:
    """The context of the tabs of these sections; the tab of the language `opened` is shown first.
    `others_share`: the share of devices that get the common texts. Shares are those of the channel,
    until a check returns those of the audience."""
    shares = language_shares(channel_id)
    tags = languages_of(form)
    found = shown_shares(tags, shares)
    return {
        "language_tabs": [
            LanguageTab(
                each, language_name(each.label), found.get(each.label, ""), each.label == opened
            )
            for each in sections
        ],
        "others_share": found.get("", ""),
        "languages_offered": [
            (
                tag,
                gettext("%(language_name)s, %(percent)s of the devices")
                % {"language_name": language_name(tag), "percent": _percent(share)},
            )
            for tag, share in shares.items()
            if share >= _LEAST_OFFERED and canonical_language(tag) and not text_found(tag, tags)
        ],
    }


def shown_shares(tags: Sequence[str], shares: Mapping[str, float]) -> dict[str, str]:
    """The share of devices that get the texts of each tag, as text; "" for the common texts. Empty
    without devices."""
    return {tag: _percent(share) for tag, share in _by_text(tags, shares).items()}


def untranslated(tags: Sequence[str], shares: Mapping[str, float]) -> list[str]:
    """The languages of the audience that get the common texts, with their shares, for people."""
    return [
        f"{language_name(language)} ({_percent(share)})"
        for language, share in shares.items()
        if language and share >= _LEAST_OFFERED and not text_found(language, tags)
    ]


def _by_text(tags: Sequence[str], shares: Mapping[str, float]) -> dict[str, float]:
    if not shares:
        return {}
    found: defaultdict[str, float] = defaultdict(float, dict.fromkeys(("", *tags), 0.0))
    for language, share in shares.items():
        found[text_found(language, tags)] += share
    return dict(found)


def text_found(language: str, tags: Sequence[str]) -> str:
    """The tag whose texts a device of the language gets; "" for the common texts."""
    known = {lookup_key(tag): tag for tag in tags}
    return next((known[each] for each in lookup_order(language) if each in known), "")


def language_name(tag: str) -> str:
    """The English name of the language, or the tag if Django has none."""
    try:
        return str(get_language_info(tag.lower())["name"])
    except KeyError:
        return tag


def _percent(share: float) -> str:
    return gettext("under 1 %") if 0 < share < _LEAST_OFFERED else f"{share:.0%}".replace("%", " %")
