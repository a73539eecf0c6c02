"""`manage.py import_subscribers`."""

import gzip
import json
from io import StringIO

import pytest
from auditlog.models import LogEntry
from django.core.management import CommandError, call_command
from django.db import connection

from subscriptions_app.importing import running, services
from subscriptions_app.models import Subscription
from tests.api.devices import ANDROID_TOKEN
from tests.factories import GOOGLE_PROJECT, make_channel
from tests.pipeline.phones import store_google

pytestmark = pytest.mark.django_db


@pytest.fixture
def channel(db):
    return make_channel(android_enabled=True)


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch):
    for module in (services, running):
        monkeypatch.setattr(module, "SLICE", 4)


def table(numbers):
    rows = "".join(f"android,{ANDROID_TOKEN}-{number},pro\n" for number in numbers)
    return f"platform,token,plan\n{rows}"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text(table(range(10)))
    return path


def run(channel, path, *arguments):
    """What it prints as JSON."""
    out = StringIO()
    given = ("--format=tokens_csv", "--json", *arguments)
    call_command("import_subscribers", str(channel.pk), str(path), *given, stdout=out)
    return json.loads(out.getvalue())


def test_it_imports_a_file_and_says_what_became_of_it(channel, file, tmp_path):
    file.write_text(file.read_text() + "android,none,\nios," + "a" * 64 + ",\n")
    refused = tmp_path / "refused.ndjson"
    found = run(channel, file, f"--refused={refused}")
    assert (found["created"], found["refused"]) == (10, 2)
    assert found["refused_by_code"] == {"not_a_token": 1, "platform_not_enabled": 1}
    first = json.loads(refused.read_text().splitlines()[0])
    assert (first["line"], first["code"], first["attr"]) == (12, "not_a_token", "provider_token")
    assert run(channel, file)["unchanged"] == 10
    notes = LogEntry.objects.filter(object_pk=str(channel.pk)).values_list("additional_data")
    assert any("Subscribers imported: 4 created, 0 updated." in str(each) for each in notes)
    assert ANDROID_TOKEN not in str(list(notes))


def test_it_goes_on_where_it_ended(channel, file):
    file.write_text(file.read_text() + '"open\n')
    with pytest.raises(CommandError, match=r"Line 12, column 1: .* --resume 12"):
        run(channel, file)
    assert Subscription.objects.count() == 10
    file.write_text(table(range(14)))
    assert run(channel, file, "--resume=12")["created"] == 4


def test_it_says_where_to_go_on_when_the_database_fails(channel, file):
    with connection.cursor() as cursor:
        cursor.execute("""
            CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
              IF NEW.address LIKE '%-6' THEN
                RAISE 'could not extend file' USING ERRCODE = 'disk_full';
              END IF;
              RETURN NEW;
            END $$;
            CREATE TRIGGER full_disk BEFORE INSERT ON subscriptions_app_subscription
              FOR EACH ROW EXECUTE FUNCTION full_disk()""")

    with pytest.raises(CommandError, match=r"could not extend file\. Go on with --resume 6"):
        run(channel, file)

    assert Subscription.objects.count() == 4


def test_refused_rows_do_not_replace_the_file(channel, file):
    before = file.read_bytes()

    with pytest.raises(CommandError, match="--refused"):
        run(channel, file, f"--refused={file}")

    assert file.read_bytes() == before


def test_it_reads_compressed_files_and_maps_columns(channel, tmp_path):
    path = tmp_path / "tokens.csv.gz"
    data = table([1]).replace("platform,token,plan", "platform,Schlüssel,Tarif")
    path.write_bytes(gzip.compress(data.encode()))
    found = run(channel, path, "--map=Schlüssel=token", "--map=Tarif=", "--takeover-days=30")
    assert found["created"] == 1
    (row,) = Subscription.objects.all()
    assert (row.attributes, (row.takeover_until - row.registered_at).days) == ({}, 30)


def test_a_compressed_file_that_is_not_complete_says_where_to_go_on(channel, tmp_path):
    path = tmp_path / "tokens.csv.gz"
    data = gzip.compress(table(range(600)).encode(), compresslevel=0)
    path.write_bytes(data[:-9])
    with pytest.raises(CommandError, match=r"Line ([0-9]+): .* --resume \1$") as error:
        run(channel, path)
    line = int(str(error.value).rpartition(" ")[2])
    assert Subscription.objects.count() == line - 2 > 0
    path.write_bytes(data)
    assert run(channel, path, f"--resume={line}")["created"] == 600 - (line - 2)


@pytest.mark.parametrize(
    "data",
    [b"platform,token\n", gzip.compress(b"", mtime=0)[:10] + b"\xff" * 9],
    ids=["plain", "damaged"],
)
def test_a_file_that_is_not_compressed_as_it_says_is_refused(channel, tmp_path, data):
    path = tmp_path / "tokens.csv.gz"
    path.write_bytes(data)
    with pytest.raises(CommandError, match=r"Line 1: .* --resume 1$"):
        run(channel, path)


def test_a_dry_run_stores_nothing(channel, file):
    assert run(channel, file, "--dry-run")["created"] == 10
    assert not Subscription.objects.exists()


@pytest.mark.parametrize(
    "arguments", [["--map=token"], ["--takeover-days=91"], ["--refused=/nowhere/x"]]
)
def test_a_wrong_argument_is_named(channel, file, arguments):
    with pytest.raises(CommandError, match=arguments[0].partition("=")[0] + "|nowhere"):
        run(channel, file, *arguments)


def test_a_missing_file_is_named(channel, tmp_path):
    with pytest.raises(CommandError, match="No such file"):
        run(channel, tmp_path / "none.csv")


def test_a_dry_run_quotes_what_fcm_says_about_ten_tokens_and_sends_nothing(channel, fcm, file):
    store_google(fcm, channel)
    devices = [fcm.register(GOOGLE_PROJECT) for _ in range(9)]
    fcm.unregister(devices[0])
    foreign = fcm.register("another-app")
    tokens = [each.token for each in [*devices, foreign]]
    file.write_text("platform,token\n" + "".join(f"android,{each}\n" for each in tokens))

    found = run(channel, file, "--dry-run")

    answers = {each["code"]: (each["tokens"], each["detail"]) for each in found["fcm"]}
    assert answers["accepted"] == (8, "")
    assert answers["unregistered"] == (1, "404 Requested entity was not found.")
    assert answers["sender_id_mismatch"][0] == 1
    assert not any(receipt.taken for device in devices for receipt in device.receipts)
    assert "fcm" not in run(channel, file)
    out = StringIO()
    given = (str(channel.pk), str(file), "--format=tokens_csv", "--dry-run")
    call_command("import_subscribers", *given, stdout=out)
    assert "  1  unregistered  404 Requested entity was not found." in out.getvalue()


def test_a_dry_run_asks_about_some_tokens_only(channel, fcm, file):
    store_google(fcm, channel)
    file.write_text(table(range(100)))
    (answer,) = run(channel, file, "--dry-run")["fcm"]
    assert (answer["code"], answer["tokens"]) == ("token_invalid", 10)


def test_a_dry_run_without_credentials_of_firebase_says_so(channel, file):
    (answer,) = run(channel, file, "--dry-run")["fcm"]
    assert (answer["code"], answer["tokens"]) == ("credentials_missing", 10)
