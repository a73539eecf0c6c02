import base64
import json
import os
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from channels_app.models import ApiKey, Channel, VapidKey
from channels_app.selectors import credential_for, vapid_private_keys
from channels_app.services import provider_credentials_store
from notifications_app.deletion import deletion_ask
from tests import forked
from tests.api.credentials import APPLE, GOOGLE
from tests.api.support import NOWHERE, owner_of
from tests.factories import make_channel

pytestmark = pytest.mark.django_db


def run(*arguments):
    output = StringIO()
    call_command(*arguments, stdout=output)
    return output.getvalue()


def opens(channel_id, key):
    headers = {"Authorization": f"Key {key}"}
    return Client().get(f"/channel/{channel_id}", headers=headers).status_code == 200


def test_the_printed_values_of_a_new_channel_work():
    made = json.loads(run("create_channel", "Alice's shop", "--json"))

    assert list(made) == ["channel_id", "api_key", "vapid_public_key"]
    assert opens(made["channel_id"], made["api_key"])
    assert len(base64.urlsafe_b64decode(made["vapid_public_key"] + "=")) == 65
    assert ApiKey.objects.get().scopes == ["send", "read", "manage", "subscribers"]


def test_without_json_each_value_has_its_own_line():
    options = ("--vapid-subject", "https://example.com", "--site-url", "https://shop.example/")
    text = run("create_channel", "Alice's shop", *options)

    lines = dict(line.split() for line in text.splitlines())
    assert opens(lines["channel_id"], lines["api_key"])
    channel = Channel.objects.get()
    assert channel.vapid_subject == "https://example.com"
    assert channel.site_url == "https://shop.example/"


def test_an_invalid_channel_is_refused_and_nothing_is_stored():
    with pytest.raises(CommandError, match="vapid_subject"):
        run("create_channel", "x", "--vapid-subject", "mailto:root@localhost")
    with pytest.raises(CommandError, match="name"):
        run("create_channel", " ")
    with pytest.raises(CommandError, match="site_url"):
        run("create_channel", "x", "--site-url", "shop.example")
    with pytest.raises(CommandError, match="UTF-8"):
        run("create_channel", os.fsdecode("Zürich".encode("latin-1")))

    assert not Channel.objects.exists()


def test_a_further_key_has_the_given_scopes_and_lifetime():
    alice = owner_of(make_channel())
    channel_id = str(alice.channel.id)

    made = json.loads(
        run(
            *("create_api_key", channel_id, "--scopes", "read, send", "--name", "cron"),
            *("--expires", "2199-01-01T00:00:00+01:00", "--json"),
        )
    )

    assert list(made) == ["channel_id", "api_key"]
    assert opens(channel_id, made["api_key"])
    row = ApiKey.objects.get(name="cron")
    assert row.scopes == ["send", "read"]
    assert row.expires_at.isoformat() == "2198-12-31T23:00:00+00:00"


@pytest.mark.parametrize(
    "wrong",
    [["--scopes", "rule"], ["--scopes", ""], ["--expires", "tomorrow"], ["--name", "x" * 201]],
)
def test_an_invalid_key_is_refused(wrong):
    channel = make_channel()

    with pytest.raises(CommandError):
        run("create_api_key", str(channel.id), *wrong)
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize("command", ["create_api_key", "rotate_vapid_key"])
@pytest.mark.parametrize("channel_id", ["5", NOWHERE])
def test_an_unknown_channel_is_named_in_the_error(command, channel_id):
    with pytest.raises(CommandError, match="no channel"):
        run(command, channel_id)


@pytest.mark.parametrize(
    "command",
    [
        ["create_api_key"],
        ["rotate_vapid_key"],
        ["import_subscribers", "-", "--format=tokens_csv"],
        ["import_subscribers", "-", "--format=tokens_csv", "--dry-run"],
    ],
)
def test_a_channel_that_is_being_deleted_is_not_changed(command, tmp_path):
    name, *arguments = command
    channel = make_channel()
    deletion_ask(channel_id=channel.pk)

    with pytest.raises(CommandError, match="being deleted"):
        run(name, str(channel.pk), *arguments)
    assert "complete" in run("export_channel", str(channel.pk), str(tmp_path / "kept"))


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("create_channel", ["Alice's shop"]),
        ("create_api_key", [NOWHERE]),
        ("export_channel", [NOWHERE, "unused"]),
        ("rotate_vapid_key", [NOWHERE]),
        ("rotate_credential_keys", []),
        ("revoke_api_key", ["psk_00000000"]),
        ("turn_off_two_step", ["alice"]),
    ],
)
def test_a_command_without_its_tables_says_to_migrate(command, arguments):
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA not_migrated; SET LOCAL search_path TO not_migrated")

    with pytest.raises(CommandError, match="Migrate the database first"):
        run(command, *arguments)


def test_a_command_without_its_database_says_why():
    code, said = forked.run(
        "python -m django create_channel x",
        os.environ | {"DATABASE_URL": "postgresql://a:secret@127.0.0.1:1/pushsvc"},
        timeout=600,
    )

    assert code == 1
    assert "Connection refused. manage.py doctor reports" in said
    assert "Traceback" not in said
    assert "secret" not in said


@pytest.mark.parametrize("shown", [slice(None), slice(12)], ids=["whole", "its start"])
def test_a_revoked_key_opens_nothing_and_other_keys_of_the_channel_still_work(shown):
    made = json.loads(run("create_channel", "Alice's shop", "--json"))
    other = json.loads(run("create_api_key", made["channel_id"], "--json"))["api_key"]

    assert "was revoked" in run("revoke_api_key", made["api_key"][shown])

    assert not opens(made["channel_id"], made["api_key"])
    assert opens(made["channel_id"], other)
    assert "was revoked before" in run("revoke_api_key", made["api_key"][shown])


@pytest.mark.parametrize("text", ["", "psk_", "psk_00000000_x", "0" * 12])
def test_an_unknown_key_cannot_be_revoked(text):
    with pytest.raises(CommandError, match="no such API key"):
        run("revoke_api_key", text)


def test_browsers_get_the_rotated_vapid_key():
    channel = make_channel()

    made = json.loads(run("rotate_vapid_key", str(channel.id), "--json"))

    headers = {"X-Channel-ID": made["channel_id"]}
    given = Client().get("/web-push-key", headers=headers).json()
    assert given["public_key"] == made["vapid_public_key"]
    assert VapidKey.objects.filter(channel=channel).count() == 2


def test_the_old_credential_key_can_be_removed_after_a_rotation(settings):
    channel = make_channel()
    provider_credentials_store(
        channel=channel, fcm_service_account=json.dumps(GOOGLE), apns_key=json.dumps(APPLE)
    )
    key_id = VapidKey.objects.get().id
    before = vapid_private_keys([key_id])
    old, new = settings.CREDENTIAL_KEYS[0], Fernet.generate_key().decode()

    settings.CREDENTIAL_KEYS = (new, old)
    assert run("rotate_credential_keys").startswith("3 ")
    assert run("rotate_credential_keys").startswith("0 ")

    settings.CREDENTIAL_KEYS = (new,)
    assert vapid_private_keys([key_id]) == before
    assert json.loads(credential_for(channel.id, "ios").secret) == APPLE
    assert credential_for(channel.id, "ios").version == 1


def test_secrets_under_a_removed_key_are_counted_and_the_others_rotated(settings):
    """As after a leak of a key while another is lost."""
    make_channel()
    lost = VapidKey.objects.get()
    settings.CREDENTIAL_KEYS = (leaked := Fernet.generate_key().decode(),)
    make_channel()
    other = VapidKey.objects.exclude(pk=lost.pk).get()
    settings.CREDENTIAL_KEYS = (new := Fernet.generate_key().decode(), leaked)

    with pytest.raises(CommandError, match="CREDENTIAL_KEYS does not hold: 1"):
        run("rotate_credential_keys")

    settings.CREDENTIAL_KEYS = (new,)
    assert vapid_private_keys([other.pk])
