"""Whatever a file for an import contains, its rows are read, or refused, or the file is."""

import json
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from subscriptions_app.importing.files import FileUnreadable
from subscriptions_app.importing.formats import Format, Reading, rows_read
from subscriptions_app.importing.values import Outcome, PersonRow, Row
from tests.api.devices import ANDROID_TOKEN, FID, IOS_TOKEN

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = st.sampled_from(
    ["platform", "token", "endpoint", "p256dh", "auth", "keys", "tags", "attributes", "choices",
     "external_id", "language", "timezone", "created_at", "last_seen_at", "expired_at", "active",
     "device_type", "identifier", "web_auth", "notification_types", "ChannelType", "Address",
     "User", "Attributes", "Metrics", "Demographic", "EffectiveDate", "subscription", "plan"]
)  # fmt: skip
TEXTS = st.sampled_from(
    ["android", "ios", "web", ANDROID_TOKEN, FID, IOS_TOKEN, "0", "1", "5", "GCM", "APNS", "-2", "",
     "2025-06-01", "45809.5", "1e400", "9" * 400, "null", "{}", "a b", "de", "Europe/Rome", "\0"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(NAMES, VALUES, max_size=8), max_size=4).map(
    lambda rows: "".join(f"{json.dumps(row)}\n" for row in rows)
)
SIGNS = st.sampled_from([",", ";", "\t", "\n", "\r\n", "\r", '"', '""', " ", "\ufeff", "sep=;\n"])
TABLES = st.lists(NAMES | TEXTS | SIGNS | SIGNS, max_size=40).map("".join)
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "latin-1"])
FILES = st.binary(max_size=200) | st.builds(
    lambda text, encoding: text.encode(encoding, "replace"), OBJECTS | TABLES, ENCODINGS
)


@pytest.mark.parametrize("format_", list(Format))
@given(data=FILES, tags_from=st.just("") | NAMES, columns=st.dictionaries(TEXTS, NAMES))
@example(data=b"\xff\xfe", tags_from="", columns={})
def test_any_file_is_read_or_refused(format_, data, tags_from, columns):
    reading = Reading(format_, columns, None, tags_from)
    with suppress(FileUnreadable):
        for line, row in rows_read(BytesIO(data), reading, Counter(), NOW):
            assert line >= 1
            is_read = isinstance(row, Row | PersonRow)
            assert is_read or (row.outcome == Outcome.REFUSED and row.code)
