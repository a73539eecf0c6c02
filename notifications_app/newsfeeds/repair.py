"""Makes a text of the bytes of a feed, and repairs the usual faults of XML. Pure functions.

Their time grows with the length.
"""

import codecs
import re
from collections.abc import Iterator
from html.entities import html5
from typing import Final

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Codecs that take no more time for bytes that are made for it.
_ENCODINGS: Final = re.compile(
    r"utf-8|utf-16(-[lb]e)?|ascii|iso8859-\d+|cp12\d\d|cp125\d|cp866|koi8-[ru]|mac-roman"
    r"|shift_jis|cp932|euc_jp|euc_kr|cp949|gb2312|gbk|gb18030|big5|tis-620"
)
_DECLARED: Final = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})[\"']")
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_FALLBACK: Final = "cp1252"
# What XML 1.0 does not allow, raw.
_UNWANTED: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_DECLARATION: Final = re.compile(r"<\?xml\s[^>]{0,500}\?>", re.IGNORECASE)
_ALONE: Final = re.compile(r"&(?![#\w])", re.ASCII)
_AMPERSAND: Final = re.compile(
    r"&(?!(?:amp|lt|gt|quot|apos);)(?:#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));|(\w{1,32};)?)",
    re.ASCII,
)
_MOST_REPAIRS: Final = 50_000  # of one part
_CDATA: Final = "<![CDATA["
_CDATA_END: Final = "]]>"


def repaired(body: bytes, content_type: str) -> str:
    """The text of an XML document, without its declaration. Characters that XML forbids are gone,
    names of HTML's characters are replaced, and single ampersands are escaped."""
    text = _UNWANTED.sub("", _decoded(body, content_type))
    text = text[max(text.find("<"), 0) :]
    declaration = _DECLARATION.match(text)
    if declaration:
        text = text[declaration.end() :].lstrip()
    return "".join(_escaped(text))


def _decoded(body: bytes, content_type: str) -> str:
    """The beginning decides, then the declaration, then the response's header. Bytes that are not
    of this encoding are Windows-1252, which never fails."""
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body[len(bom) :].decode(name, errors="replace")
    declared, charset = _DECLARED.search(body[:400]), _CHARSET.search(content_type)
    named = declared[1].decode() if declared else charset[1] if charset else "utf-8"
    for name in dict.fromkeys((_known(named), "utf-8")):
        try:
            return body.decode(name)
        except UnicodeDecodeError as error:
            # A character that the limit of length cut.
            if error.end == len(body) and error.start > len(body) - 4:
                return body[: error.start].decode(name)
    return body.decode(_FALLBACK, errors="replace")


def _known(named: str) -> str:
    try:
        name = codecs.lookup(named).name
    except LookupError:
        return "utf-8"
    # Names that all readers take for their superset (WHATWG Encoding).
    if name in ("ascii", "iso8859-1"):
        return _FALLBACK
    return name if _ENCODINGS.fullmatch(name) and name != "utf-16" else "utf-8"


def _escaped(text: str) -> Iterator[str]:
    """The parts with ampersands repaired outside of CDATA sections."""
    at = 0
    while (opening := text.find(_CDATA, at)) >= 0:
        closing = text.find(_CDATA_END, opening)
        if closing < 0:
            break
        yield _references(text[at:opening])
        at = closing + len(_CDATA_END)
        yield text[opening:at]
    yield _references(text[at:])


def _references(text: str) -> str:
    return _AMPERSAND.sub(_reference, _ALONE.sub("&amp;", text), count=_MOST_REPAIRS)


def _reference(found: re.Match[str]) -> str:
    hexadecimal, decimal, name = found.groups()
    if hexadecimal or decimal:
        number = int(hexadecimal, 16) if hexadecimal else int(decimal)
        return found[0] if _is_allowed(number) else ""
    if name is None:
        return "&amp;"
    return html5.get(name) or f"&amp;{name}"


def _is_allowed(number: int) -> bool:
    if number in (0x9, 0xA, 0xD):
        return True
    return 0x20 <= number <= 0xD7FF or 0xE000 <= number <= 0xFFFD or 0x10000 <= number <= 0x10FFFF
