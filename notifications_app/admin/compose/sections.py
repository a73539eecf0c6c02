"""The inputs for buttons, languages and platforms' own fields, as templates show them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from django.utils.translation import gettext

from notifications_app.admin.compose.extras import SIMPLE, variant_numbers
from notifications_app.admin.compose.form import ComposeForm
from notifications_app.content.fields import (
    ACTION,
    ANDROID,
    IOS,
    LINKS,
    MAX_ACTIONS,
    MAX_VARIANTS,
    OBJECTS,
    TRANSLATION,
    VARIANT,
    WEB,
    Field,
    Table,
    Type,
)
from notifications_app.content.values import CONTENT
from pushsvc.common.languages import lookup_key, lookup_order
from pushsvc.common.links import LinkKind
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.texts import later

_TABLES: Final = {Platform.WEB: WEB, Platform.ANDROID: ANDROID, Platform.IOS: IOS}
_EXAMPLES: Final = {
    LinkKind.WEB: "https://",
    LinkKind.SITE: later("https:// or /path"),
    LinkKind.APP: later("https:// or myshop://"),
}
_YES_OR_NO: Final = (("on", later("yes")), ("off", later("no")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One value, by its path in the API's body. Inputs of several sections have the same `label`,
    so screen readers also read `section`.

    `example`: the beginning of a URL, "" for other values. `choices`: (value, label) if there are
    only a few values. `is_none`: whether the text is removed; None if it cannot be removed.
    `common`: the common text of a translation. `errors`: of a field that is no part of another.
    """

    path: str
    label: str
    section: str
    help: str
    value: str
    example: str
    is_long: bool
    choices: Sequence[tuple[str, str]]
    is_none: bool | None
    common: str = ""
    is_missing: bool = False
    errors: Sequence[str] = ()

    @property
    def shown(self) -> str:
        """The value as text for people."""
        return dict(self.choices).get(self.value, self.value) or "none"


@dataclass(frozen=True, slots=True)
class Section:
    """Inputs under one heading. Errors have the same `name`."""

    name: str
    label: str
    inputs: Sequence[Input]

    @property
    def is_filled(self) -> bool:
        return any(each.value or each.is_none or each.errors for each in self.inputs)

    @property
    def missing(self) -> int:
        """How many texts have no translation."""
        return sum(each.is_missing for each in self.inputs)


def sections_of(
    form: ComposeForm, errors: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Mapping[str, Any]:
    """All sections of the form. `others`: fields of the form without an input, which stay as they
    are. `errors`: texts by field."""
    platforms = platforms_of(form)
    simple = simple_of(form, errors)
    buttons = [
        _section(
            form, f"actions.{index}", gettext("button %(value)s") % {"value": index + 1}, ACTION
        )
        for index in range(MAX_ACTIONS)
    ]
    languages = [_language(form, tag) for tag in languages_of(form)]
    variants = _variants(form)
    shown = {
        name
        for section in (*platforms, simple, *buttons, *languages, *variants)
        for each in section.inputs
        for name in (each.path, f"{each.path}.none")
    }
    return {
        "platform_sections": platforms,
        "simple": simple,
        "buttons": buttons,
        "languages": languages,
        "variants": variants,
        "may_add_variant": len(variants) < MAX_VARIANTS,
        "others": [pair for pair in form.extras.items() if pair[0] not in shown],
    }


def _variants(form: ComposeForm) -> list[Section]:
    """Fields of variants that have no input here stay as they are."""
    return [
        _section(
            form,
            f"variants.{number}",
            gettext("Variant %(number)s") % {"number": number + 1},
            {name: field for name, field in VARIANT.items() if field.type not in OBJECTS},
        )
        for number in variant_numbers(form.extras)
    ]


def platforms_of(form: ComposeForm) -> list[Section]:
    """A section for each platform's own fields."""
    return [
        _section(form, platform, PLATFORM_NAMES[platform], table)
        for platform, table in _TABLES.items()
    ]


def simple_of(
    form: ComposeForm, errors: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Section:
    """A section for the fields that are the same on all platforms and have one input."""
    inputs = [
        replace(_input(form, name, "", CONTENT[name]), errors=errors.get(name, ()))
        for name in SIMPLE
    ]
    return Section("", "", inputs)


def languages_of(form: ComposeForm) -> list[str]:
    """The tags of the languages in which the form has a text, even an empty one."""
    paths = (path.split(".") for path in form.extras if path.startswith("translations."))
    return list(dict.fromkeys(parts[1] for parts in paths if len(parts) > 2))


def _language(form: ComposeForm, tag: str) -> Section:
    common = {"title": form.title, "body": form.body}
    fields = dict(TRANSLATION)
    for index in range(MAX_ACTIONS):
        if button := form.extras.get(f"actions.{index}.id"):
            fields[f"actions.{button}"] = ACTION["title"]
            common[f"actions.{button}"] = form.extras.get(f"actions.{index}.title", "")
    tags = _looked_up(form, tag)
    inputs = [_translation(form, tags, name, field, common) for name, field in fields.items()]
    return Section("translations", tag, inputs)


def _looked_up(form: ComposeForm, tag: str) -> list[str]:
    """The form's languages whose texts devices of the language may get, the language itself
    first."""
    known = {lookup_key(each): each for each in languages_of(form)}
    return [tag, *(known[each] for each in lookup_order(tag) if each in known)]


def _translation(
    form: ComposeForm, tags: Sequence[str], name: str, field: Field, common: Mapping[str, str]
) -> Input:
    """The input of a translated text. A title, a text or a button's label is missing if the form
    has it in no language of `tags`. A missing url is not, because urls are often the same."""
    is_found = any(form.extras.get(f"translations.{tag}.{name}") for tag in tags)
    button = name.removeprefix("actions.")
    return _input(
        form,
        f"translations.{tags[0]}.{name}",
        tags[0],
        field,
        label=gettext("Button %(button)s") % {"button": button} if button != name else "",
        common=name if name in common else "",
        is_missing=bool(common.get(name)) and not is_found,
    )


def _section(form: ComposeForm, path: str, label: str, table: Table) -> Section:
    inputs = [_input(form, f"{path}.{name}", label, field) for name, field in table.items()]
    return Section(path.partition(".")[0], label, inputs)


def _input(
    form: ComposeForm, path: str, section: str, field: Field, label: str = "", **more: Any
) -> Input:
    kind = LinkKind.WEB if field.type is Type.URL else LINKS.get(field.type)
    return Input(
        path=path,
        label=label or gettext(field.label),
        section=section,
        help="" if path.startswith("translations.") else gettext(field.help).replace("`", ""),
        value=form.extras.get(path, ""),
        example=_EXAMPLES[kind] if kind else "",
        is_long=path.endswith(".body"),
        choices=_YES_OR_NO if field.type is Type.FLAG else _in_language(field.choices),
        is_none=f"{path}.none" in form.extras if field.nullable else None,
        **more,
    )


def _in_language(choices: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((value, gettext(label)) for value, label in choices.items())
