"""The texts of the console and of mails: finds those to translate, and compiles the translations.

    .ci/texts.py            updates pushsvc/locale/*/LC_MESSAGES/ and pushsvc/static/console/texts/
    .ci/texts.py --check    changes nothing, and fails if something there is not up to date, if a
                            text is not translated, or if a template has text that is not marked

Texts are marked as Django has it (https://docs.djangoproject.com/en/stable/topics/i18n/translation/):
`translate` and `blocktranslate` in templates, `gettext` and its kin in Python and in scripts.
No program of GNU gettext is needed.
"""

import argparse
import ast
import json
import os
import re
import struct
import sys
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import django
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.template.base import Lexer, TokenType
from django.template.loader import get_template
from django.templatetags.i18n import BlockTranslateNode, TranslateNode
from django.utils.text import capfirst

ROOT = Path(__file__).resolve().parent.parent
LOCALE = ROOT / "pushsvc/locale"
SCRIPTS = ROOT / "pushsvc/static/console"
APPS = ("channels_app", "notifications_app", "pushsvc", "subscriptions_app")
# Templates that are no part of the console.
ENGLISH = re.compile(r"(base|demo|errors|examples|guide|home|reference|test_device)\.html")
# Templates of the theme that the console uses. The theme has no translations.
THEME = ("unfold/helpers/change_list_headers.html", "unfold/helpers/command.html")
FUNCTIONS = {  # by name: the places of the text and of its plural
    **dict.fromkeys(("gettext", "later", "noop"), (0,)),
    **dict.fromkeys(("ngettext",), (0, 1)),
    **dict.fromkeys(("pgettext",), (1,)),
}
ATTRIBUTES = ("alt", "aria-label", "data-confirm", "data-label", "placeholder", "title")
NOT_WORDS = {  # names, and examples of what a person types
    *(
        "-----BEGIN PUBLIC KEY-----",
        "09:00, 18:30",
        "Android",
        "API",
        "Chrome",
        "CSV",
        "JSON",
        "UTC",
        "Web",
    ),
    *('first_name | default: "there"', "https://", "iOS", "offers", "pt-BR", "pushsvc"),
    *("team-", "team-7", "psk__", "msg_"),
}


class Text(NamedTuple):
    """`several`: the plural; "" for a text without one."""

    one: str
    several: str = ""
    context: str = ""


# Other languages may lack texts, which are then shown in English.
COMPLETE = LOCALE / "de/LC_MESSAGES/django.po"

Translations = dict[Text, list[str]]


def texts() -> set[Text]:
    """All texts that are marked."""
    found = {each for name in (*template_names(), *THEME) for each in _of_template(name)}
    for app in APPS:
        for path in (ROOT / app).rglob("*.py"):
            found.update(_of_python(path))
    return found | set(of_scripts()) | set(_of_pure()) | set(_of_models())


def template_names() -> list[str]:
    folder = ROOT / "templates"
    paths = (*folder.rglob("*.html"), *folder.glob("mail/*.txt"))
    names = (str(path.relative_to(folder)) for path in sorted(paths))
    return [name for name in names if not ENGLISH.fullmatch(name)]


def _of_template(name: str) -> Iterator[Text]:
    template: Any = get_template(name).template  # type: ignore[attr-defined]
    for node in template.nodelist.get_nodes_by_type(TranslateNode):
        yield Text(str(node.filter_expression.var.literal), "", _context(node))
    for node in template.nodelist.get_nodes_by_type(BlockTranslateNode):
        one, several = (
            node.render_token_list(each or [])[0] for each in (node.singular, node.plural)
        )
        yield Text(one, several, _context(node))
    for text in re.findall(r'_\("([^"]*)"\)', template.source):
        yield Text(text)


def _context(node: Any) -> str:
    return str(node.message_context.resolve({})) if node.message_context else ""


def _of_python(path: Path) -> Iterator[Text]:
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        places = FUNCTIONS.get(node.func.id, ())
        given = [each.value if isinstance(each, ast.Constant) else None for each in node.args]
        context = str(given[0]) if node.func.id.startswith("pgettext") else ""
        found = [given[place] for place in places]
        if all(isinstance(each, str) for each in found) and found:
            yield Text(*map(str, found), context=context)


def of_scripts() -> Iterator[Text]:
    text = r'\s*("(?:[^"\\]|\\.)*")'
    for path in sorted(SCRIPTS.glob("*.js")):
        for call in re.findall(rf"\btranslated\({text}|\bcounted\({text},{text}", path.read_text()):
            yield Text(*(json.loads(each) for each in call if each))


def _of_pure() -> Iterator[Text]:
    """Of modules without Django: the fields of a notification, the errors of values, and what codes
    of outcomes mean."""
    from notifications_app.content import fields, values
    from notifications_app.delivery.registry import TRANSPORTS
    from pushsvc.common.languages import NOT_A_LANGUAGE
    from pushsvc.common.links import LinkKind
    from pushsvc.common.timestamps import NOT_A_TIMEZONE

    yield from map(Text, (NOT_A_LANGUAGE, NOT_A_TIMEZONE, *(kind.value for kind in LinkKind)))
    for transport in TRANSPORTS.values():
        yield from map(Text, transport.codes.values())
    for table in (*fields.OBJECTS.values(), values.CONTENT):
        for field in table.values():
            yield from map(Text, (field.label, field.help, *field.choices.values()))


def _of_models() -> Iterator[Text]:
    """Names of models that the console does not name elsewhere, and labels of their fields."""
    for model in apps.get_models():
        if admin.site.is_registered(model):
            fields = {each.name: each for each in model._meta.get_fields()}
            for name in fields.keys() & {*admin.site.get_model_admin(model).list_display}:
                yield Text(capfirst(str(fields[name].verbose_name)))
            names = (model._meta.verbose_name, model._meta.verbose_name_plural)
            yield from (Text(str(each)) for each in names)


def read_po(path: Path) -> tuple[str, Translations]:
    """The part before the first text, and the translations."""
    head, *entries = path.read_text().strip().split("\n\n")
    found: Translations = {}
    for entry in entries:
        parts: dict[str, str] = {}
        for keyword, value in re.findall(r'^(msg\S+) (".*")$', entry, re.MULTILINE):
            parts[keyword] = ast.literal_eval(value)
        text = Text(parts["msgid"], parts.get("msgid_plural", ""), parts.get("msgctxt", ""))
        found[text] = [value for keyword, value in parts.items() if keyword.startswith("msgstr")]
    return head, found


def po_of(head: str, wanted: Iterable[Text], present: Translations) -> str:
    """The file with exactly the wanted texts; without a translation if none is present."""
    several = int(re.findall(r"nplurals=(\d)", head)[0])
    return "\n\n".join([head, *(_entry(each, several, present) for each in sorted(wanted))]) + "\n"


def _entry(text: Text, several: int, present: Translations) -> str:
    given = present.get(text) or [""] * (several if text.several else 1)
    lines = [f"msgctxt {_quoted(text.context)}"] if text.context else []
    lines.append(f"msgid {_quoted(text.one)}")
    if not text.several:
        return "\n".join([*lines, f"msgstr {_quoted(given[0])}"])
    lines.append(f"msgid_plural {_quoted(text.several)}")
    return "\n".join(lines + [f"msgstr[{n}] {_quoted(each)}" for n, each in enumerate(given)])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def mo_of(head: str, translations: Translations) -> bytes:
    """What msgfmt makes of it (https://www.gnu.org/software/gettext/manual/html_node/MO-Files.html)."""
    metadata = "".join(map(ast.literal_eval, re.findall(r'^(".*")$', head, re.MULTILINE)))
    pairs = {"": metadata}
    for text, given in translations.items():
        if all(given):
            key = f"{text.context}\x04{text.one}" if text.context else text.one
            pairs["\0".join([key, *filter(None, [text.several])])] = "\0".join(given)
    encoded = sorted((key.encode(), value.encode()) for key, value in pairs.items())
    count = len(encoded)
    start = 28 + 16 * count
    tables, data = b"", b""
    for place in (0, 1):
        for pair in encoded:
            tables += struct.pack("<II", len(pair[place]), start + len(data))
            data += pair[place] + b"\0"
    return struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, start) + tables + data


def script_of(translations: Translations) -> str:
    """The translations that scripts need (texts.js)."""
    wanted = set(of_scripts())
    found = {each.one: given for each, given in sorted(translations.items()) if each in wanted}
    texts = json.dumps(found, ensure_ascii=False, indent=0)
    return f"// Made by .ci/texts.py.\nwindow.pushsvcTexts = {texts};\n"


class _Unmarked(HTMLParser):
    """Collects the words of a page that are outside of `translate` and `blocktranslate`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._skipped = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "style", "pre") or "material-symbols" in (given.get("class") or ""):
            self._skipped = tag
        for name in ATTRIBUTES:
            self.handle_text(given.get(name) or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._skipped:
            self._skipped = ""

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.handle_text(data)

    def handle_text(self, text: str) -> None:
        words = " ".join(text.split()).strip("()….:·“” ")
        if re.search("[A-Za-z]{2}", words) and words not in NOT_WORDS:
            self.found.append(words)


def unmarked(source: str) -> list[str]:
    """The words of a template that are not marked."""
    html, is_marked, is_name = "", False, False
    for token in Lexer(source).tokenize():
        name = token.contents.split()[0] if token.token_type == TokenType.BLOCK else ""
        if name in ("blocktranslate", "endblocktranslate"):
            is_marked = name == "blocktranslate"
        elif name == "block":  # these fill a class, not the page
            is_name = token.contents.split()[1] in ("bodyclass", "width", "coltype")
        elif name == "endblock":
            is_name = False
        if token.token_type == TokenType.TEXT and not (is_marked or is_name):
            html += token.contents
    parser = _Unmarked()
    parser.feed(html)
    return parser.found


def outputs() -> Iterator[tuple[Path, bytes, Translations]]:
    """The files as they should be."""
    wanted = texts()
    for language, _ in settings.LANGUAGES[1:]:
        path = LOCALE / language / "LC_MESSAGES/django.po"
        head, present = read_po(path)
        kept = {each: present[each] for each in wanted if each in present}
        yield path, po_of(head, wanted, present).encode(), kept
        yield path.with_suffix(".mo"), mo_of(head, kept), kept
        yield SCRIPTS / f"texts/{language}.js", script_of(kept).encode(), kept


def problems(is_check: bool) -> Iterator[str]:
    for name in template_names():
        for words in unmarked((ROOT / "templates" / name).read_text()):
            yield f"templates/{name}: not marked: {words}"
    count = len(texts())
    for path, content, kept in list(outputs()):
        if path == COMPLETE and (missing := count - sum(all(each) for each in kept.values())):
            yield f"{path.relative_to(ROOT)}: {missing} of {count} texts are not translated"
        if not is_check:
            path.write_bytes(content)
        elif not path.exists() or path.read_bytes() != content:
            yield f"{path.relative_to(ROOT)} is not up to date: run .ci/texts.py"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    sys.path.insert(0, str(ROOT))
    os.environ["DJANGO_SETTINGS_MODULE"] = "pushsvc.settings"
    django.setup()
    found = list(problems(parser.parse_args().check))
    print("\n".join(found))
    sys.exit(bool(found))
