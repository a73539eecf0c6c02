"""SQL that reads pages of ids and writes their rows as lines of NDJSON or CSV.

PostgreSQL writes the lines, because Python needs ten times as long for them.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple
from uuid import UUID

from pushsvc.common.store import sql

SLICE: Final = 1_000  # rows of one statement, so that memory is bounded


class Kind(Enum):
    """The type of a column. PLAIN: an id or a word that begins with a letter, without characters
    that JSON or CSV escapes. KEY: base64url. WORDS: an array of texts without such characters."""

    PLAIN = 1
    KEY = 2
    TEXT = 3
    NUMBER = 4  # never negative
    FLAG = 5
    MOMENT = 6
    WORDS = 7
    DOCUMENT = 8


class Page(NamedTuple):
    """Parts of at most SLICE ids, each an array as text, and the last id of the page if another
    page may follow."""

    slices: Sequence[str]
    next_after: UUID | None


def page_read(
    found: str, parameters: Mapping[str, Any], *, limit: int, most: int | None = None
) -> Page:
    """The first `limit` ids of a statement for which it says `is_meant`. `found` selects (id,
    is_meant) in the order of ids, at most %(read)s rows. `most`: how many of them count."""
    most = limit if most is None else most
    given = {**parameters, "limit": limit, "most": most, "read": most + 1}
    return Page(*sql.rows(_PAGE.format(found=found), given)[0])


def json_lines(source: str, kinds: Mapping[str, Kind], *, last: str = "''") -> str:
    """The statement for `texts`. `source` selects `id` and columns with these names, for the array
    %(ids)s. `last`: SQL for further fields of each object."""
    fields = ", ',', ".join(
        f"""'"{name}":', {_JSON[kind].format(name)}""" for name, kind in kinds.items()
    )
    return _text(source, f"concat('{{', {fields}, {last}, '}}', chr(10))")


def csv_lines(source: str, kinds: Mapping[str, Kind]) -> str:
    """The same as CSV. Cells are harmless to spreadsheets, as those of csv_files.py."""
    made = ", ".join(
        f"{_CSV.get(kind, '{}').format(name)} AS {name}" for name, kind in kinds.items()
    )
    cells = ", ',', ".join(_HARMLESS.get(kind, "{}").format(name) for name, kind in kinds.items())
    # OFFSET 0, so that each cell is made once.
    source = f"SELECT id, {made} FROM ({source}) AS found OFFSET 0"  # noqa: S608 - our own names
    return _text(source, f"concat({cells}, chr(13), chr(10))")


def texts(statement: str, parameters: Mapping[str, Any], page: Page) -> Iterator[str]:
    """The lines of a page, SLICE rows at a time. A row that was deleted meanwhile is missing."""
    for ids in page.slices:
        yield sql.rows(statement, {**parameters, "ids": ids})[0][0] or ""


def _text(source: str, line: str) -> str:
    return f"""
        SELECT string_agg(line, '' ORDER BY id)
        FROM (SELECT id, {line} AS line FROM ({source}) AS found) AS lines
    """  # noqa: S608 - our own names


# As timestamps.format_timestamp.
_MOMENT: Final = """to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""
_FLAG: Final = "CASE WHEN {} THEN 'true' ELSE 'false' END"
_PLAIN: Final = """coalesce('"' || {} || '"', 'null')"""
_JSON: Final = {
    Kind.PLAIN: _PLAIN,
    Kind.KEY: _PLAIN,
    Kind.TEXT: "coalesce(to_json({})::text, 'null')",
    Kind.NUMBER: "{}",
    Kind.FLAG: _FLAG,
    Kind.MOMENT: _PLAIN.format(_MOMENT),
    Kind.WORDS: "to_json({})",
    Kind.DOCUMENT: "{}",
}
_CSV: Final = {
    Kind.FLAG: _FLAG,
    Kind.MOMENT: _MOMENT,
    Kind.WORDS: "array_to_string({}, ' ')",
    Kind.DOCUMENT: "nullif({}, '{{}}')::text",
}
# = + - @, these with full width, tab, return, line feed
_STARTS: Final = "ARRAY[61, 43, 45, 64, 65309, 65291, 65293, 65312, 9, 13, 10]"
_APOSTROPHE: Final = f"CASE WHEN ascii({{0}}) = ANY ({_STARTS}) THEN '''' END"
_LATER: Final = """regexp_replace(
  {0}, '(?<=.)([;|\\t\\r\\n][ "'']*)(?=[=+@\\uff1d\\uff0b\\uff0d\\uff20-])', '\\1''', 'g')"""
_STARTING: Final = f"concat({_APOSTROPHE}, {{0}})"
# Most texts need neither quotes nor an apostrophe. JSON always needs quotes, and begins with a
# brace.
_HARMLESS: Final = {
    Kind.KEY: _STARTING,
    Kind.WORDS: _STARTING,
    Kind.TEXT: f"""CASE
      WHEN {{0}} !~ '[",;|\\t\\r\\n]' AND ascii({{0}}) <> ALL ({_STARTS}) THEN {{0}}
      WHEN {{0}} IS NOT NULL
        THEN concat('"', {_APOSTROPHE}, replace({_LATER}, '"', '""'), '"')
    END""",
    Kind.DOCUMENT: f"""CASE WHEN {{0}} IS NOT NULL THEN concat('"', replace(
      CASE WHEN {{0}} ~ '[;|]' THEN {_LATER} ELSE {{0}} END, '"', '""'), '"') END""",
}

_PAGE: Final = f"""
WITH read AS MATERIALIZED (
  SELECT id, is_meant, row_number() OVER (ORDER BY id) AS place FROM ({{found}}) AS found
), meant AS MATERIALIZED (
  SELECT id, row_number() OVER (ORDER BY id) AS place FROM read
  WHERE is_meant AND place <= %(most)s
)
SELECT
  ARRAY(
    SELECT array_agg(id ORDER BY id)::text FROM meant WHERE place <= %(limit)s
    GROUP BY (place - 1) / {SLICE} ORDER BY min(place)
  ),
  CASE
    WHEN (SELECT max(place) FROM meant) > %(limit)s
      THEN (SELECT id FROM meant WHERE place = %(limit)s)
    WHEN (SELECT max(place) FROM read) > %(most)s THEN (SELECT id FROM read WHERE place = %(most)s)
  END
"""  # noqa: S608 - a number of our own
