"""Placeholders that the forms offer, and the preview of personal texts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import Any, Final

from django.http import QueryDict
from django.utils.translation import gettext

from channels_app.models import Channel
from notifications_app.admin.compose.form import ComposeForm, parsed_vars
from notifications_app.content.placeholders import DEVICE_NAMES, NotATemplate, parsed
from notifications_app.content.values import Content, SendRequest
from notifications_app.delivery.messages import Messages
from notifications_app.device_values import spoken_by
from notifications_app.sends.checks import ANY_ID, with_defaults
from notifications_app.sends.dry_run import audience_rule
from notifications_app.sends.sampling import sampled_devices, sampled_values
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from subscriptions_app.models import Subscription

_SHOWN: Final = 10  # subscribers to preview as
JUDGED: Final = 200  # devices of each platform that are checked for missing values
_TOLERATED: Final = 0.01  # share of them that may lack a value
_MOST_CHARACTERS: Final = 40  # of an external id, in the list of subscribers


def personal_context(attributes: Iterable[str], form: ComposeForm) -> Mapping[str, Any]:
    """The context of console/notifications/writing/personal.html. `placeholders`: name and text of
    each placeholder that a click inserts."""
    sent_vars = parsed_vars(form)
    of_send = [f"vars.{name}" for name in sent_vars] if isinstance(sent_vars, dict) else []
    names = dict.fromkeys([*attributes, *sorted(DEVICE_NAMES)])
    offered = [(name, written) for name in names if (written := _written(name))]
    return {"placeholders": [*((name, f"{{{{ {name} }}}}") for name in of_send), *offered]}


def _written(name: str) -> str:
    """The placeholder of an attribute or of a device's own value; "" if the name cannot be
    written."""
    quotes = (each for each in "\"'" if each not in name)
    spellings = [name, *(f"attributes[{quote}{name}{quote}]" for quote in quotes)]
    texts = (f"{{{{ {each} }}}}" for each in spellings)
    return next((text for text in texts if _means(text, name)), "")


def _means(text: str, name: str) -> bool:
    try:
        template = parsed(text)
    except NotATemplate:
        return False
    found = [each for each in template.placeholders if each.name == name]
    return len(found) == len(template.parts) == 1


def chosen_content(content: Content, post: QueryDict) -> Content:
    """The content of the variant that the preview shows, the first for a form that names none."""
    numbers = [str(number) for number in range(len(content.variants))]
    chosen = post.get("preview_variant", "")
    return content.of_variant(numbers.index(chosen) if chosen in numbers else 0)


def personal_preview(
    channel: Channel, request: SendRequest, post: QueryDict
) -> Mapping[str, Any] | None:
    """As JSON: some subscribers of the audience, the texts of the chosen variant for the chosen
    subscriber or the first, and missing values. None if the content is not personal."""
    if not request.content.personalize:
        return None
    request = with_defaults(channel, request)
    rule = audience_rule(channel.pk, request)
    by_platform = sampled_devices(channel.pk, request, rule, request.target_platforms, limit=JUDGED)
    mixed = chain.from_iterable(zip_longest(*by_platform.values()))
    shown = list(islice(filter(None, mixed), _SHOWN))
    chosen = post.get("preview_as", "")
    one = next((each for each in shown if str(each.pk) == chosen), shown[0] if shown else None)
    return {
        "subscribers": [{"id": str(each.pk), "words": device_words(each)} for each in shown],
        "chosen": str(one.pk) if one else "",
        "texts": _texts(chosen_content(request.content, post), request, one) if one else {},
        "lacking": _lacking(request, by_platform),
    }


def device_words(device: Subscription) -> str:
    person = device.person.external_id if device.person else f"…{str(device.pk)[-6:]}"
    named = person if len(person) <= _MOST_CHARACTERS else f"{person[: _MOST_CHARACTERS - 1]}…"
    parts = (named, PLATFORM_NAMES[Platform(device.platform)], device.language)
    return ", ".join(filter(None, parts))


def _texts(
    content: Content, request: SendRequest, device: Subscription
) -> dict[str, dict[str, Any]]:
    """The texts on each platform for a device with the same values."""
    values, language = sampled_values(request, device), spoken_by(device)
    return {
        platform: _shown(_messages(content, platform).filled(language, values).whole)
        for platform in Platform
    }


def _shown(content: Content) -> dict[str, Any]:
    return {
        **{name: getattr(content, name) for name in ("title", "body", "url", "icon", "image")},
        "subtitle": content.ios.get("subtitle", ""),
        "buttons": [each["title"] for each in content.actions],
    }


def _lacking(
    request: SendRequest, by_platform: Mapping[Platform, Sequence[Subscription]]
) -> list[str]:
    """Texts about the placeholders for which more than _TOLERATED of the devices have no value."""
    missing: Counter[str] = Counter()
    for platform, devices in by_platform.items():
        versions = [_messages(content, platform) for _, content in request.content.versions]
        for each in devices:
            language, values = spoken_by(each), sampled_values(request, each)
            missing.update({path for own in versions for path in own.missing(language, values)})
    total = sum(map(len, by_platform.values()))
    return [
        gettext("%(value)s of the sampled devices have no value for %(path)s. It has no default.")
        % {"value": f"{count / total:.0%}", "path": path}
        for path, count in missing.most_common()
        if count > total * _TOLERATED
    ]


def _messages(content: Content, platform: Platform) -> Messages:
    return Messages(ANY_ID, content, platform, expires_at=0.0)
