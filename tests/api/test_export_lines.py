"""The lines that PostgreSQL writes are those that Python would write."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pushsvc.common.http.csv_files import csv_text
from pushsvc.common.store import sql
from pushsvc.common.store.lines import Kind, Page, csv_lines, json_lines, texts
from pushsvc.common.timestamps import format_timestamp

pytestmark = pytest.mark.django_db

KINDS = {
    "id_": Kind.PLAIN,
    "text": Kind.TEXT,
    "key": Kind.KEY,
    "number": Kind.NUMBER,
    "flag": Kind.FLAG,
    "moment": Kind.MOMENT,
    "words": Kind.WORDS,
    "document": Kind.DOCUMENT,
}
# In reverse, because the lines are in the order of ids.
SOURCE = """
SELECT id, id::text AS id_, text, key, number, flag, moment,
  ARRAY(SELECT jsonb_array_elements_text(words)) AS words, document
FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS given (id, place)
CROSS JOIN LATERAL jsonb_to_record(%(rows)s::jsonb -> (place - 1)::int) AS row
  (text text, key text, number int, flag boolean, moment timestamptz, words jsonb, document jsonb)
ORDER BY id DESC
"""
TEXTS = st.text("=+-@\uff1d\uff0b\uff0d\uff20\t\r\n;|,\"' \\aä漢\u2028\x01{}%", max_size=9)
MOMENTS = st.integers(0, 10**13).map(
    lambda ticks: datetime(1999, 12, 31, tzinfo=UTC) + timedelta(microseconds=ticks * 100)
)
ROWS = st.fixed_dictionaries(
    {
        "text": st.none() | TEXTS,
        "key": st.none() | st.text("aZ-_9", min_size=1, max_size=4),
        "number": st.integers(0, 10**6),
        "flag": st.booleans(),
        "moment": st.none() | MOMENTS,
        "words": st.lists(st.sampled_from(["a", "B:c", "-d"]), max_size=3),
        # Their names also differ without apostrophes, which the test removes before it compares.
        "document": st.lists(
            st.tuples(TEXTS, TEXTS | st.floats(-1e9, 1e9) | st.booleans()),
            max_size=3,
            unique_by=lambda each: each[0].replace("'", ""),
        ).map(dict),
    }
)


def written(statement, rows):
    ids = [UUID(int=number + 1) for number in range(len(rows))]
    page = Page([sql.array(each.hex for each in ids)], None)
    return "".join(texts(statement, {"rows": json.dumps(rows, default=str)}, page))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROWS, max_size=5))
def test_a_line_says_what_python_would_write(db, rows):
    lines = written(json_lines(SOURCE, KINDS), rows).split("\n")
    assert lines.pop() == ""
    shown = [
        {
            "id_": str(UUID(int=number)),
            **row,
            "moment": row["moment"] and format_timestamp(row["moment"]),
        }
        for number, row in enumerate(rows, 1)
    ]
    assert [json.loads(line) for line in lines] == shown
    assert [list(json.loads(line)) for line in lines] == [list(KINDS)] * len(rows)

    text = written(csv_lines(SOURCE, KINDS), rows)
    expected = csv_text(
        [
            row["id_"],
            row["text"],
            row["key"],
            row["number"],
            str(row["flag"]).lower(),
            row["moment"],
        ]
        for row in shown
    )
    assert [row[:6] for row in table(text)] == table(expected)
    for row, cells in zip(rows, table(text), strict=True):
        document = json.dumps(row["document"], ensure_ascii=False) if row["document"] else ""
        words = " ".join(row["words"])
        assert [unescaped(each) for each in cells[6:]] == [words, unescaped(document)]


def unescaped(text):
    """Without apostrophes, and floating point numbers as PostgreSQL spells them."""
    try:
        return json.loads(text.replace("'", ""))
    except ValueError:
        return text.replace("'", "")


def table(text):
    return list(csv.reader(io.StringIO(text, newline="")))
