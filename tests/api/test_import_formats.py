"""Files of other services and of spreadsheets. The people in them are made up."""

import json
from collections import Counter
from datetime import UTC, datetime
from io import BytesIO

import pytest

from pushsvc.common.platforms import Platform
from subscriptions_app.importing import files
from subscriptions_app.importing.fields import moment_of
from subscriptions_app.importing.files import FileUnreadable
from subscriptions_app.importing.formats import Format, Reading, rows_read
from subscriptions_app.importing.guessing import looked_at
from subscriptions_app.importing.values import Row
from tests.api.devices import ANDROID_TOKEN, FID, IOS_TOKEN
from tests.factories import browser_keys

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = browser_keys()
ENDPOINT = "https://updates.push.services.mozilla.com/wpush/v2/gAAAAABn"


def read(data, format_, dropped=None, **options):
    """The rows, or the code of a refused one, each with its line."""
    stream = BytesIO(data if isinstance(data, bytes) else data.encode())
    reading = Reading(Format(format_), **options)
    found = rows_read(stream, reading, Counter() if dropped is None else dropped, NOW)
    return [(line, row if isinstance(row, Row) else row.code) for line, row in found]


def lines(*objects):
    return "".join(json.dumps(each) + "\n" for each in objects)


def token_rows(data, **options):
    return [row for _, row in read(data, "tokens_csv", **options)]


def refusal_of(data, format_="tokens_csv"):
    with pytest.raises(FileUnreadable) as error:
        read(data, format_)
    (only,) = error.value.errors
    return only.code, error.value.line, error.value.column


# --- tables of tokens -----------------------------------------------------------------------------


def test_a_table_of_tokens():
    (row,) = token_rows(
        "platform,token,external_id,language,timezone,created_at,last_seen_at,plan\n"
        f"android,{ANDROID_TOKEN},user-1,pt_BR,europe/berlin,2025-06-01,2025-07-01T10:00:00Z,pro\n"
    )
    assert (row.address.platform, row.address.text) == (Platform.ANDROID, ANDROID_TOKEN)
    assert (row.external_id, row.language, row.timezone) == ("user-1", "pt-BR", "Europe/Berlin")
    assert row.created_at == datetime(2025, 6, 1, tzinfo=UTC)
    assert row.last_seen_at == datetime(2025, 7, 1, 10, tzinfo=UTC)
    assert row.attributes == {"plan": "pro"}


@pytest.mark.parametrize(
    "data",
    [
        f"platform;token;plan\r\nandroid;{FID};pro\r\n",
        f"platform\ttoken\tplan\nandroid\t{FID}\tpro",
        f"sep=;\nplatform;token;plan\nandroid;{FID};pro\n",
        f'"Platform";"Token";plan;\n\nandroid;"{FID}";pro;;\n',
        f"\ufeffplatform,token,plan\nandroid,{FID},pro\n",
    ],
)
def test_a_spreadsheet_separates_as_it_likes(data):
    (row,) = token_rows(data)
    assert (row.address.text, row.attributes) == (FID, {"plan": "pro"})


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_a_spreadsheet_is_encoded_as_it_likes(encoding):
    text = f"platform,token,stadt\nandroid,{FID},Köln\n"
    assert token_rows(text.encode(encoding))[0].attributes == {"stadt": "Köln"}


def test_a_quoted_field_has_line_feeds_and_lines_stay_right():
    data = f'platform,token,note\nandroid,{FID},"two\nlines"\nandroid,no token,\n'
    (line, row), refused = read(data, "tokens_csv")
    assert (line, row.attributes) == (2, {"note": "two\nlines"})
    assert refused == (4, "not_a_token")


@pytest.mark.parametrize(
    "written",
    [
        "45809.5", "45809,5", "2025-06-01T12:00", "2025-06-01 12:00:00 UTC", "1.6.2025 12:00",
        "1748779200", "1748779200000", "2025-06-01T14:00:00+02:00", 1748779200,
    ],
)  # fmt: skip
def test_moments_as_spreadsheets_write_them(written):
    assert moment_of(written) == datetime(2025, 6, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("written", ["6/1/2025", "1/6/25", "yesterday", "12", "2025", "", "99999"])
def test_what_is_no_moment_or_two_is_refused(written):
    with pytest.raises(ValueError, match=r"."):
        moment_of(written)


def test_a_header_in_another_language_is_mapped_by_hand():
    columns = {"Gerät": "platform", "Schlüssel": "token", "Kunde": "external_id", "Notiz": ""}
    data = f"Gerät;Schlüssel;Kunde;Notiz\nAndroid;{FID};user-1;x\n"
    (row,) = token_rows(data, columns=columns)
    assert (row.address.text, row.external_id, row.attributes) == (FID, "user-1", None)


def test_browsers_in_a_table():
    data = f"endpoint,p256dh,auth,tags\n{ENDPOINT},{KEYS['p256dh']},{KEYS['auth']},a b;c\n"
    (row,) = token_rows(data.replace("a b;c", '"a b;c"'), vapid_public_key="key")
    assert (row.address.text, row.auth, row.tags) == (ENDPOINT, KEYS["auth"], ["a", "b", "c"])
    assert row.vapid_public_key == "key"


def test_attributes_are_named_or_become_tags():
    dropped = Counter()
    data = f"platform,token,plan,topics,city\nandroid,{FID},pro,a b,Rome\n"
    options = {"attributes": ["plan"], "tags_from": "topics"}
    ((_, row),) = read(data, "tokens_csv", dropped, **options)
    assert (row.attributes, row.tags, dropped) == ({"plan": "pro"}, ["a", "b"], {"city": 1})


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (f"ios,{ANDROID_TOKEN}", "not_a_token"),
        (f"huawei,{FID}", "not_a_choice"),
        (f",{FID}", "required"),
        ("android,", "required"),
        (f"android,{FID},null", "reserved_value"),
        (f"android,{FID},user-1,2999-01-01", "out_of_range"),
        (f"android,{FID},user-1,6/1/2025", "not_a_timestamp"),
        (f"android,{FID},user-1,2025-06-01,surplus", "wrong_number_of_fields"),
    ],
)
def test_a_wrong_record_is_refused_alone(record, code):
    good = f"ios,{IOS_TOKEN}"
    data = f"platform,token,external_id,last_seen_at\n{record}\n{good}\n"
    (line, found), (_, next_row) = read(data, "tokens_csv")
    assert (line, found, next_row.address.text) == (2, code, IOS_TOKEN)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", ("empty", 1, 1)),
        (b"platform,token,token\n", ("given_twice", 1, 3)),
        (b"platform,token,pl\0an\n", ("malformed", 1, 3)),
        (b"platform,token\nandroid,x\nios,\xe4\xf6\n", ("not_utf_8", 3, 5)),
        (b'platform,token\nandroid,"open\nios,x\n', ("malformed_csv", 2, 9)),
        (b'platform,token\n"and\nroid","a"b\n', ("malformed_csv", 3, 10)),
        (b'platform,token\nandroid,"a""b",c\rd\n', ("malformed_csv", 2, 17)),
        (b"\xff\xfep\x00l\x00\n\x00a\x00\xd8", ("not_utf_16", 2, None)),
    ],
)
def test_an_unreadable_file_says_line_and_column(data, found):
    assert refusal_of(data) == found


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_file_that_is_closed_before_its_end_is_left_quietly(encoding):
    stream = BytesIO(f"platform,token\n{f'android,{FID}{chr(10)}' * 9}".encode(encoding))
    rows = rows_read(stream, Reading(Format.TOKENS_CSV), Counter(), NOW)
    assert isinstance(next(rows).row, Row)
    stream.close()
    rows.close()  # would raise


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_file_whose_rows_are_not_all_read_stays_open(encoding):
    stream = BytesIO(f"platform,token\n{f'android,{FID}{chr(10)}' * 9}".encode(encoding))
    lines = files._decoded(stream)
    next(lines)
    lines.close()  # a generator in it that is closed later would warn, which is an error
    assert not stream.closed


def test_a_later_part_of_a_file_keeps_the_lines_of_the_file():
    part = BytesIO(b"sep=;\nplatform;token\nios;x\n\nios;y\n")
    found = rows_read(part, Reading(Format.TOKENS_CSV), Counter(), NOW, first_line=900)
    assert [line for line, _ in found] == [900, 902]
    part = BytesIO(b'{"a": 1}\n{"a": 1}\n')
    found = rows_read(part, Reading(Format.PUSHSVC_NDJSON), Counter(), NOW, first_line=900)
    assert [line for line, _ in found] == [900, 901]


def test_rows_without_a_platform_have_that_of_the_file():
    data = f"token\n{FID}\n"
    assert token_rows(data) == ["required"]
    (row,) = token_rows(data, platform=Platform.ANDROID)
    assert row.address.platform == Platform.ANDROID


def test_an_apostrophe_of_our_own_lists_is_not_part_of_the_value():
    (row,) = token_rows(f"platform,token,a,b,c\nandroid,{FID},'=1,'t,'\uff1d1\n")
    assert row.attributes == {"a": "=1", "b": "'t", "c": "\uff1d1"}


def test_a_name_that_postgresql_cannot_store_is_refused():
    data = f"platform,token,plan\nandroid,{FID},pro\n"
    assert read(data, "tokens_csv", columns={"plan": "pl\0an"}) == [(2, "malformed")]


# --- what a file seems to be ----------------------------------------------------------------------


def looks(data):
    found = looked_at(data.encode())
    return found.format, found.separator, found.first_line


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ("sep=;\n\nGerät;Schlüssel\nx;y\n", ("tokens_csv", ";", 4)),
        ('"a\nb"\tc\nx\ty\n', ("tokens_csv", "\t", 3)),
        ("identifier,device_type\n", ("onesignal_csv", ",", 2)),
        ('\ufeff{"ChannelType": "GCM"}\n', ("pinpoint_json", "", 1)),
        ('{"endpoint": "x", "keys": {}}', ("webpush_json", "", 1)),
        ('{"subscription": {}}', ("webpush_json", "", 1)),
        ('{"platform": "web", "keys": {}}', ("pushsvc_ndjson", "", 1)),
        ('{"platform": "we', ("pushsvc_ndjson", "", 1)),
    ],
)
def test_the_format_of_a_file_is_guessed(data, found):
    assert looks(data) == found


def test_the_meaning_of_columns_is_guessed():
    data = 'Platform;FCM-Token;token;Token;User ID;Kunde;import_line;\nios;x;y;z;u;"k;\n'
    columns = looked_at(data.encode()).columns
    assert [(each.name, each.means) for each in columns] == [
        ("Platform", "platform"), ("FCM-Token", ""), ("token", "token"), ("Token", "-"),
        ("User ID", "external_id"), ("Kunde", ""), ("import_line", "-"), ("", "-"),
    ]  # fmt: skip
    (column, _) = looked_at(b"Kunde;Alter\nA;1\nB;2\n").columns
    assert column.samples == ["A", "B"]


# --- JSON -----------------------------------------------------------------------------------------


def test_subscriptions_of_web_push_libraries():
    plain = {"endpoint": ENDPOINT, "expirationTime": None, "keys": KEYS}
    data = lines(
        plain,
        {"subscription": plain, "external_id": "user-1"},
        {"subscription": json.dumps(plain)},
        {"endpoint": ENDPOINT},
        {"endpoint": "http://insecure.example.com/x", "keys": KEYS},
    )
    found = [row for _, row in read(data, "webpush_json", vapid_public_key="key")]
    assert [row.address.text for row in found[:3]] == [ENDPOINT] * 3
    assert (found[1].external_id, found[0].vapid_public_key) == ("user-1", "key")
    assert found[3:] == ["keys_missing", "endpoint_not_allowed"]


def test_a_wrong_line_of_json_is_refused_alone():
    good = lines({"endpoint": ENDPOINT, "keys": KEYS})
    found = read(f'{{"endpoint": }}\n\n{good}"text"\n', "webpush_json")
    assert [(line, row) for line, row in found if isinstance(row, str)] == [
        (1, "malformed_json"),
        (4, "not_an_object"),
    ]
    assert refusal_of("[\n{}]\n", "webpush_json") == ("not_json_lines", 1, 1)


UNSTORABLE = [
    "[" * 5_000, '{"a": NaN}', '{"a": 1e999}', r'{"a\u0000": "x"}', r'{"a": "\ud800"}',
]  # fmt: skip


@pytest.mark.parametrize("text", UNSTORABLE)
def test_json_in_a_field_is_as_strict_as_a_line(text):
    data = lines({"subscription": text}, {"endpoint": ENDPOINT})
    assert read(data, "webpush_json") == [(1, "malformed_json"), (2, "keys_missing")]
    assert read(onesignal(tags=text), "onesignal_csv") == [(2, "malformed_json")]


ONESIGNAL = {
    "id": "a", "identifier": IOS_TOKEN, "device_type": "0", "language": "de", "timezone_id":
    "Europe/Rome", "last_active": "2025-06-01 10:00:00 UTC", "created_at": "2024-06-01 10:00:00",
    "tags": '{"plan": "pro", "city": "Rome"}', "external_user_id": "user-1", "web_auth": "",
    "web_p256": "", "notification_types": "1", "invalid_identifier": "f",
}  # fmt: skip


def onesignal(**changes):
    given = {**ONESIGNAL, **changes}
    values = ",".join('"' + each.replace('"', '""') + '"' for each in given.values())
    return f"{','.join(given)}\n{values}\n"


def test_an_export_of_onesignal():
    dropped = Counter()
    ((_, row),) = read(onesignal(), "onesignal_csv", dropped, attributes=["plan"])
    assert (row.address.platform, row.external_id) == (Platform.IOS, "user-1")
    assert (row.language, row.timezone, row.attributes) == ("de", "Europe/Rome", {"plan": "pro"})
    assert row.last_seen_at == datetime(2025, 6, 1, 10, tzinfo=UTC)
    assert dropped == {"city": 1}
    web = onesignal(
        device_type="5", identifier=ENDPOINT, web_auth=KEYS["auth"], web_p256=KEYS["p256dh"]
    )
    ((_, row),) = read(web, "onesignal_csv")
    assert (row.address.text, row.p256dh) == (ENDPOINT, KEYS["p256dh"])


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"device_type": "8", "identifier": ENDPOINT}, "keys_missing"),
        ({"device_type": "7"}, "safari_legacy"),
        ({"device_type": "13"}, "platform_not_served"),
        ({"device_type": "11"}, "not_push"),
        ({"device_type": ""}, "required"),
        ({"notification_types": "-2"}, "not_subscribed"),
        ({"notification_types": "-" + "9" * 5_000}, "not_subscribed"),
        ({"notification_types": "00"}, "not_subscribed"),
        ({"invalid_identifier": "t"}, "not_subscribed"),
        ({"tags": "{"}, "malformed_json"),
    ],
)
def test_what_onesignal_exports_besides(changes, code):
    assert read(onesignal(**changes), "onesignal_csv") == [(2, code)]


PINPOINT = {
    "ChannelType": "GCM", "Address": ANDROID_TOKEN, "EndpointStatus": "ACTIVE", "OptOut": "NONE",
    "EffectiveDate": "2025-06-01T10:00:00.000Z", "Attributes": {"interests": ["a", "b"]},
    "Metrics": {"age": 33.0}, "Demographic": {"Locale": "de_DE", "Timezone": "nowhere"},
    "User": {"UserId": "user-1", "UserAttributes": {}},
}  # fmt: skip


def test_an_export_of_pinpoint():
    data = lines(PINPOINT)
    ((_, row),) = read(data, "pinpoint_json", attributes=["age"], tags_from="interests")
    assert (row.address.text, row.external_id, row.language) == (ANDROID_TOKEN, "user-1", "de-DE")
    assert (row.timezone, row.attributes, row.tags) == (None, {"age": 33.0}, ["a", "b"])


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"ChannelType": "APNS_SANDBOX"}, "wrong_environment"),
        ({"ChannelType": "EMAIL"}, "not_push"),
        ({"OptOut": "ALL"}, "not_subscribed"),
        ({"EndpointStatus": "INACTIVE"}, "not_subscribed"),
        ({"ChannelType": "APNS"}, "not_a_token"),
    ],
)
def test_what_pinpoint_exports_besides(changes, code):
    assert read(lines({**PINPOINT, **changes}), "pinpoint_json") == [(1, code)]


def test_a_row_of_pushsvc():
    given = {
        "platform": "ios", "provider_token": IOS_TOKEN, "auth": KEYS["auth"], "active": False,
        "expired_at": "2025-07-01T00:00:00Z", "expired_code": "unsubscribed", "tags": ["a"],
        "choices": {"offers": False}, "attributes": {"plan": "pro"}, "external_id": None,
        "subscription_id": "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52", "language": "", "timezone": "",
    }  # fmt: skip
    ((_, row),) = read(lines(given), "pushsvc_ndjson")
    assert (row.auth, row.tags, row.choices) == (KEYS["auth"], ["a"], {"offers": False})
    assert (row.expired_at.month, row.expired_code, row.language) == (7, "unsubscribed", None)
