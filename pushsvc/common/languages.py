"""Language tags (BCP 47): their canonical form (Unicode, UTS #35) and their look-up (RFC 4647)."""

import re
from collections.abc import Iterator
from typing import Final

NOT_A_LANGUAGE: Final = "Must be a language such as de or pt-BR."
MAX_LANGUAGE: Final = 35  # RFC 5646 section 4.4.1
# RFC 5646 section 2.1, without the tags that were registered before it, and without languages of
# four to eight letters, of which none is registered: a word such as "german" is none.
_TAG: Final = re.compile(
    r"""
    (?P<language>[a-z]{2,3})(?P<extended>(?:-[a-z]{3}){0,3})   # such as "zh"
    (?P<script>(?:-[a-z]{4})?)                                 # such as "Hant"
    (?:-(?P<region>[a-z]{2}|[0-9]{3}))?                        # such as "TW"
    (?P<variants>(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*)
    (?P<rest>(?:-[0-9a-wyz](?:-[a-z0-9]{2,8})+)*               # extensions
      (?:-x(?:-[a-z0-9]{1,8})+)?)                              # private use
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
# UTS #35 Annex C: `_` for `-`. Names of locales have more: POSIX's encoding and modifier, ICU's
# keywords after `@`, Java's (Locale.toString) the script and extensions after `#`.
_LOCALE: Final = re.compile(
    r"""
    (?P<tag>[a-z0-9_-]+?)
    (?:_?\#(?P<java>[a-z0-9_-]+))?
    (?:\.[a-z0-9_-]+)?
    (?:@(?P<modifier>[^@]*))?
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_MOST_LOCALE: Final = 100
# Of the locales of glibc (localedata/SUPPORTED) and of ICU, those that change script or variant.
_MODIFIERS: Final = {
    "cyrillic": "cyrl",
    "devanagari": "deva",
    "euro": "",
    "iqtelif": "latn",
    "latin": "latn",
    "posix": "posix",
    "valencia": "valencia",
}
# The locales of Java with a variant that is none (Locale.toLanguageTag).
_JAVA: Final = {"ja_jp_jp": "ja_jp", "no_no_ny": "nn_no", "th_th_th": "th_th"}
# CLDR 48, supplementalMetadata.xml: languageAlias and territoryAlias, as far as devices send them.
# The codes of three letters are those of languages that have one of two. Java's
# Locale.getISO3Language returns them.
_OF_THREE_LETTERS: Final = """
    aar:aa abk:ab adp:dz afr:af aka:ak alb:sq als:sq amh:am ara:ar arb:ar arg:an arm:hy asm:as
    ava:av ave:ae aym:ay ayr:ay aze:az azj:az bak:ba bam:bm baq:eu bel:be ben:bn bis:bi bod:bo
    bos:bs bre:br bul:bg bur:my cat:ca ces:cs cha:ch che:ce chi:zh chu:cu chv:cv cls:sa cmn:zh
    cor:kw cos:co cre:cr cwd:cr cym:cy cze:cs dan:da deu:de div:dv drh:mn dut:nl dzo:dz ekk:et
    ell:el eng:en epo:eo esk:ik est:et eus:eu ewe:ee fao:fo fas:fa fat:ak fij:fj fin:fi fra:fr
    fre:fr fry:fy fuc:ff ful:ff gaz:om geo:ka ger:de gla:gd gle:ga glg:gl glv:gv gre:el grn:gn
    gug:gn guj:gu hat:ht hau:ha heb:he her:hz hin:hi hmo:ho hrv:hr hun:hu hye:hy ibo:ig ice:is
    ido:io iii:ii ike:iu iku:iu ile:ie ina:ia ind:id ipk:ik isl:is ita:it jav:jv jaw:jv jpn:ja
    kal:kl kan:kn kas:ks kat:ka kau:kr kaz:kk khk:mn khm:km kik:ki kin:rw kir:ky kmr:ku knc:kr
    kng:kg kom:kv kon:kg kor:ko kpv:kv kua:kj kur:ku lao:lo lat:la lav:lv lim:li lin:ln lit:lt
    ltz:lb lub:lu lug:lg lvs:lv mac:mk mah:mh mal:ml mao:mi mar:mr may:ms mkd:mk mlg:mg mlt:mt
    mol:ro mon:mn mri:mi msa:ms mya:my nau:na nav:nv nbl:nr nde:nd ndo:ng nep:ne nld:nl nno:nn
    nob:nb nor:no npi:ne nya:ny oci:oc ojg:oj oji:oj ori:or orm:om ory:or oss:os pan:pa pbu:ps
    per:fa pes:fa pli:pi plt:mg pol:pl por:pt prp:gu pus:ps que:qu quz:qu roh:rm ron:ro rum:ro
    run:rn rus:ru sag:sg san:sa scc:sr scr:hr sin:si slk:sk slo:sk slv:sl sme:se smo:sm sna:sn
    snd:sd som:so sot:st spa:es sqi:sq src:sc srd:sc srp:sr ssw:ss sun:su swa:sw swe:sv swh:sw
    tah:ty tam:ta tat:tt tel:te tgk:tg tgl:fil tha:th tib:bo tir:ti ton:to tsn:tn tso:ts tuk:tk
    tur:tr twi:ak uig:ug ukr:uk urd:ur uzb:uz uzn:uz ven:ve vie:vi vol:vo wel:cy wln:wa wol:wo
    xho:xh ydd:yi yid:yi yor:yo zha:za zho:zh zsm:ms zul:zu zyb:za
"""
_LANGUAGES: Final = {
    "in": "id",
    "iw": "he",
    "ji": "yi",
    "jw": "jv",
    "mo": "ro",
    "tl": "fil",
    **dict(pair.split(":") for pair in _OF_THREE_LETTERS.split()),
}
_REGIONS: Final = {
    "dd": "de",
    "fx": "fr",
    "tp": "tl",
    "uk": "gb",
    "yd": "ye",
    "zr": "cd",
}


def canonical_language(text: str) -> str | None:
    """The tag in its canonical form, or None if the text names no language or needs more than
    MAX_LANGUAGE characters. Also reads the names of locales: `pt_BR.UTF-8`, `sr_RS@latin`,
    `zh_TW_#Hant`."""
    locale = _LOCALE.fullmatch(text) if len(text) <= _MOST_LOCALE else None
    parts = _parts(locale) if locale else None
    if not parts:
        return None
    tag = "-".join(parts).lower()
    found = _TAG.fullmatch(tag)
    canonical = _usual_spelling(_without_aliases(found)) if found else ""
    return canonical if 0 < len(canonical) <= MAX_LANGUAGE else None


def lookup_key(tag: str) -> str:
    """What `lookup_order` finds the tag by."""
    return (canonical_language(tag) or tag).lower()


def lookup_order(language: str) -> Iterator[str]:
    """The keys to look for, the most specific first (RFC 4647 section 3.4): "zh-Hant-TW" is looked
    up as "zh-hant-tw", then "zh-hant", then "zh"."""
    parts = lookup_key(language).split("-")
    while parts:
        yield "-".join(parts)
        parts.pop()
        if parts and len(parts[-1]) == 1:  # only introduces what followed
            parts.pop()


def _parts(locale: re.Match[str]) -> list[str] | None:
    """The parts of the tag of a locale. None if the locale has an unknown modifier."""
    java, modifier = locale["java"] or "", (locale["modifier"] or "").lower()
    tag = locale["tag"].rstrip("_") if java else locale["tag"]
    parts = re.split("[_-]", _JAVA.get(tag.lower(), tag))
    more = re.split("[_-]", java) if java else []
    if more and len(more[0]) == 4:
        parts.insert(1, more.pop(0))
    parts += more
    if not modifier or "=" in modifier:  # keywords are about formats
        return parts
    if modifier not in _MODIFIERS:
        return None
    word = _MODIFIERS[modifier]
    if len(word) == 4:
        parts.insert(1, word)
    elif word:
        parts.append(word)
    return parts


def _without_aliases(tag: re.Match[str]) -> str:
    """The tag with current codes, in lower case. Its variant POSIX becomes an extension."""
    language = tag["language"].lower()
    region = (tag["region"] or "").lower()
    variants, rest = tag["variants"].lower(), tag["rest"].lower()
    if "-posix" in variants:
        variants = variants.replace("-posix", "")
        rest = rest or "-u-va-posix"
    return "".join(
        [
            _LANGUAGES.get(language, language),
            tag["extended"],
            tag["script"],
            region and f"-{_REGIONS.get(region, region)}",
            variants,
            rest,
        ]
    ).lower()


def _usual_spelling(tag: str) -> str:
    """The usual form of a tag in lower case (RFC 5646 section 2.1.1): "zh-Hant-TW"."""
    parts = tag.split("-")
    is_after_singleton = False
    for place, part in enumerate(parts[1:], start=1):
        is_after_singleton = is_after_singleton or len(parts[place - 1]) == 1
        if not is_after_singleton and len(part) in (2, 4) and part.isalpha():
            parts[place] = part.upper() if len(part) == 2 else part.title()
    return "-".join(parts)
