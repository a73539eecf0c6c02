"""The message as devices of the audience get it, by language, and what is missing in it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from json import dumps
from typing import Final

from django.utils.translation import gettext, ngettext

from channels_app.models import Channel
from notifications_app.admin.compose.languages import (
    language_name,
    shown_shares,
    text_found,
    untranslated,
)
from notifications_app.admin.compose.personal import device_words
from notifications_app.admin.compose.sections import Section
from notifications_app.content.values import Content, SendRequest
from notifications_app.delivery.messages import Messages, Unsendable
from notifications_app.device_values import spoken_by
from notifications_app.sends.checks import ANY_ID, with_defaults
from notifications_app.sends.dry_run import DryRun
from notifications_app.sends.sampling import sampled_languages, sampled_values
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from subscriptions_app.models import Subscription

_VISIBLE: Final = ("title", "body", "url", "icon", "image")


@dataclass(frozen=True, slots=True)
class Shown:
    """A message on platforms that show the same. `device`: words about the device with whose values
    it is filled; "" if it needs none, or if no sampled device has the language."""

    platforms: Sequence[tuple[str, str]]
    content: Content
    subtitle: str
    device: str = ""
    lacks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class InLanguage:
    """What devices of a language get. `tag` is "" for the common texts. `share`: of the audience,
    as text. `missing`: texts for people about translations and values."""

    tag: str
    name: str
    share: str
    shown: Sequence[Shown]
    missing: Sequence[str]


def in_variants(
    channel: Channel, request: SendRequest, found: DryRun, sections: Sequence[Section]
) -> list[tuple[str, str, list[InLanguage]]]:
    """What devices get of each variant, after its name and its share of them as text; "" if the
    send has no variants. `found`: the dry run of the send; `sections`: the form's languages."""
    request = with_defaults(channel, request)
    tags = [each.label for each in sections]
    shares = audience_shares(channel, request, found) if tags else {}
    variants = request.content.variants
    names = [each["name"] for each in variants] or [""]
    whole = sum(each["weight"] for each in variants)
    parts = [f"{each['weight'] / whole:.0%}".replace("%", " %") for each in variants] or [""]
    versions = (replace(request, content=content) for _, content in request.content.versions)
    languages = [_in_languages(each, found, sections, shares) for each in versions]
    return list(zip(names, parts, languages, strict=True))


def _in_languages(
    request: SendRequest,
    found: DryRun,
    sections: Sequence[Section],
    shares: Mapping[str, float],
) -> list[InLanguage]:
    """What devices get, first those without a translation."""
    tags = [each.label for each in sections]
    devices: defaultdict[str, list[Subscription]] = defaultdict(list)
    for own in found.sampled.values():
        for device in own:
            devices[text_found(spoken_by(device), tags)].append(device)
    missing = {each.label: _missing_texts(each) for each in sections}
    if others := untranslated(tags, shares) if tags else []:
        missing[""] = [gettext("No translation for %(join)s.") % {"join": ", ".join(others)}]
    shown_as = shown_shares(tags, shares)
    rendered = {tag: _Rendered(request, tag, devices[tag]) for tag in ("", *tags)}
    return [
        InLanguage(
            tag=tag,
            name=language_name(tag) if tag else gettext("All others") if tags else "",
            share=shown_as.get(tag, ""),
            shown=list(each.shown()),
            missing=[*missing.get(tag, ()), *each.missing_values()],
        )
        for tag, each in rendered.items()
    ]


def audience_shares(channel: Channel, request: SendRequest, found: DryRun) -> Mapping[str, float]:
    """The shares of languages among the devices that the send is for. `found`: its dry run."""
    rule = found.segment.rule if found.segment else request.rule
    sizes = {platform: each.audience.size for platform, each in found.platforms.items()}
    return sampled_languages(channel.pk, request, rule, sizes)


def _missing_texts(section: Section) -> list[str]:
    names = [each.label for each in section.inputs if each.is_missing]
    if not names:
        return []
    return [
        gettext("No translation of %(join)s: the common text is sent.") % {"join": ", ".join(names)}
    ]


@dataclass(frozen=True, slots=True)
class _Filled:
    """A sampled device, the placeholders that it has no value for, and what it gets."""

    device: Subscription
    lacks: Sequence[str]
    content: Content | None  # None: nothing


class _Rendered:
    """What sampled devices get that get the texts of one language."""

    def __init__(self, request: SendRequest, tag: str, devices: Sequence[Subscription]) -> None:
        self._tag, self._is_personal = tag, request.content.personalize
        self._messages = {
            platform: Messages(ANY_ID, request.content, platform, expires_at=0.0)
            for platform in request.target_platforms
        }
        self._filled = [self._fill(request, each) for each in devices]

    def shown(self) -> Iterator[Shown]:
        """For platforms with the same texts, a device that has all values and one that does not. If
        none is known, the texts as they are written."""
        for platforms in self._alike():
            own = [each for each in self._filled if each.device.platform in platforms]
            complete = [each for each in own if each.content and not each.lacks][:1]
            lacking = [each for each in own if each.content and each.lacks][:1]
            for each in [*complete, *lacking]:
                yield _shown(platforms, each.content or self._written(platforms[0]), each)
            if not complete and not lacking:
                yield _shown(platforms, self._written(platforms[0]))

    def missing_values(self) -> list[str]:
        """Texts for people about values that sampled devices do not have."""
        total = len(self._filled)
        if self._is_personal and not total:
            return [gettext("No sampled device has this language.")] if self._tag else []
        lacks = Counter(path for each in self._filled for path in set(each.lacks))
        nothing = sum(each.content is None for each in self._filled)
        texts = [
            ngettext(
                "%(count)s of %(total)s sampled devices has no value for %(path)s, which has no "
                "default.",
                "%(count)s of %(total)s sampled devices have no value for %(path)s, which has no "
                "default.",
                count,
            )
            % {"count": count, "total": total, "path": path}
            for path, count in lacks.most_common()
        ]
        if nothing:
            words = ngettext(
                "%(count)s of %(total)s sampled devices gets nothing.",
                "%(count)s of %(total)s sampled devices get nothing.",
                nothing,
            )
            texts.append(words % {"count": nothing, "total": total})
        return texts

    def _fill(self, request: SendRequest, device: Subscription) -> _Filled:
        messages = self._messages[Platform(device.platform)]
        language, values = spoken_by(device), sampled_values(request, device)
        message = messages.for_recipient(language, values)
        content = None if isinstance(message, Unsendable) else message.whole
        return _Filled(device, messages.missing(language, values), content)

    def _written(self, platform: Platform) -> Content:
        return self._messages[platform].of(self._tag).content

    def _alike(self) -> list[list[Platform]]:
        """The platforms, those with the same texts together."""
        found: defaultdict[str, list[Platform]] = defaultdict(list)
        for platform in self._messages:
            content = self._written(platform)
            texts = [getattr(content, name) for name in _VISIBLE]
            buttons = [each["title"] for each in content.actions]
            found[dumps([*texts, buttons, _subtitle([platform], content)])].append(platform)
        return list(found.values())


def _shown(platforms: Sequence[Platform], content: Content, filled: _Filled | None = None) -> Shown:
    return Shown(
        platforms=[(each, PLATFORM_NAMES[each]) for each in platforms],
        content=content,
        subtitle=_subtitle(platforms, content),
        device=device_words(filled.device) if filled else "",
        lacks=filled.lacks if filled else (),
    )


def _subtitle(platforms: Sequence[Platform], content: Content) -> str:
    return str(content.ios.get("subtitle") or "") if Platform.IOS in platforms else ""
