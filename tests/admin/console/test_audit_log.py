"""The audit log: what it holds, who may read it, and that nobody can change it."""

import json
import re
from hashlib import sha256
from io import StringIO

import pytest
from auditlog.models import LogEntry
from cryptography.hazmat.primitives.asymmetric import ec
from django.core.management import call_command
from django.db import Error, connection, transaction
from django.db.models.fields.json import KeyTextTransform
from django.test import RequestFactory
from django.urls import reverse

from channels_app import audit
from channels_app.services import api_key_issue, provider_credentials_store, vapid_key_rotate
from channels_app.sign_in.passwords import set_password_path
from notifications_app.sends.services import notification_pause, notification_resume
from pushsvc.common.store import sql
from pushsvc.common.store.crypto import decrypt
from tests.admin.accounts.test_members import choose_password
from tests.admin.sign_in.steps import app_of, turned_on
from tests.admin.support import signed_in
from tests.api.credentials import APPLE, GOOGLE, pem
from tests.factories import make_key, make_notification
from tests.pipeline.support import most_rows_read

LOG = "/admin/auditlog/logentry/"
SECRETS = {"password", "secret", "private"}


def newest():
    return LogEntry.objects.order_by("-id")[0]


def test_sql_cannot_change_or_delete_an_entry(alice):
    audit.record(alice.channel, audit.Action.UPDATE, {"name": "before"}, {"name": "after"})
    entries = LogEntry.objects.all()

    with pytest.raises(Error, match="never changed"), transaction.atomic():
        entries.update(object_repr="forged")
    with pytest.raises(Error, match="never changed"), transaction.atomic():
        entries._raw_delete(entries.db)


def test_entries_follow_after_more_than_32_bits_can_number(alice):
    sequence = "pg_get_serial_sequence('auditlog_logentry', 'id')"
    ((last,),) = sql.rows(f"SELECT nextval({sequence})", {})
    sql.rows(f"SELECT setval({sequence}, {2**31 - 1})", {})
    try:
        audit.record(alice.channel, audit.Action.UPDATE, note="One more.")
        entry = newest()
    finally:
        sql.rows(f"SELECT setval({sequence}, {last})", {})

    client = signed_in(alice.members["viewer"])
    assert "One more." in client.get(f"{LOG}{entry.pk}/change/").content.decode()
    assert entry.pk == 2**31


def test_an_entry_keeps_only_the_fields_that_changed(alice):
    before = audit.fields_of(alice.channel)
    audit.record(alice.channel, audit.Action.UPDATE, before, before | {"name": "New"})

    assert newest().changes == {"name": ["Alice's channel", "New"]}


def test_pauses_and_fields_are_named_in_words_and_times_are_the_readers(alice):
    notification = make_notification(alice.channel, body="Hi", status="pending")
    own = {"channel_id": alice.channel.pk, "notification_id": notification.pk}
    client = signed_in(alice.members["viewer"])
    notification_pause(**own)
    paused = newest()
    notification_resume(**own)
    audit.record(alice.channel, audit.Action.UPDATE, {"web_enabled": True}, {"web_enabled": False})

    listed = client.get(LOG).content.decode()
    words = re.findall(r"field-in_short[^>]*>([^<]*)<", listed)
    assert [each.strip() for each in words[:3]] == ["web enabled", "resumed", "paused"]
    one = client.get(f"{LOG}{paused.pk}/change/").content.decode()
    assert '<th scope="row">Paused at</th>' in one
    assert '<time data-local="seconds"' in one.partition("Paused at")[2]
    one = client.get(f"{LOG}{newest().pk}/change/").content.decode()
    assert "<td>yes</td><td>no</td>" in one


def test_an_entry_holds_no_field_that_is_not_listed(alice):
    with pytest.raises(ValueError, match="private_key"):
        audit.record(
            alice.channel.vapid_keys.get(), audit.Action.UPDATE, after={"private_key_encrypted": ""}
        )


def test_an_entry_names_the_actor_the_address_and_the_account(alice, settings):
    settings.TRUSTED_PROXIES = 1
    request = RequestFactory().post("/", headers={"X-Forwarded-For": "9.9.9.9, 192.0.2.7"})
    request.user = alice.members["manager"]
    with audit.request_context(request):
        audit.record(alice.channel, audit.Action.UPDATE, note="Renamed.")
        assert audit.is_by_staff()

    entry = newest()
    assert entry.actor == alice.members["manager"]
    assert entry.remote_addr == "192.0.2.7"
    assert entry.additional_data == {
        "account": str(alice.account.pk),
        "channel": str(alice.channel.pk),
        "note": "Renamed.",
        "via": "console",
        "who": "alice-manager",
    }


def test_no_entry_holds_a_secret(alice, root):
    """Secrets are entered wherever staff can enter one, then searched for in the whole table."""
    apple = APPLE | {"key": pem(ec.generate_private_key(ec.SECP256R1()))}
    provider_credentials_store(
        channel=alice.channel,
        fcm_service_account=json.dumps(GOOGLE),
        apns_key=json.dumps(apple),
    )
    _, key = api_key_issue(channel=alice.channel, name="shop")
    vapid = vapid_key_rotate(channel=alice.channel)
    codes = turned_on(root)
    app = app_of(root).data["secret"]
    link = set_password_path(user=alice.members["viewer"])
    choose_password(set_password_path(user=root), "planted-battery-staple")
    root.refresh_from_db()

    written = json.dumps(list(LogEntry.objects.values()), default=str)
    planted = [
        GOOGLE["private_key"].splitlines()[1],
        apple["key"].splitlines()[1],
        key[13:],
        sha256(key.encode()).hexdigest(),
        vapid.private_key_encrypted,
        app,
        decrypt(app),
        codes[0],
        link.rstrip("/").rpartition("/")[2].partition("-")[2],
        "planted-battery-staple",
        root.password,
    ]
    assert LogEntry.objects.count() >= 6
    assert not [secret for secret in planted if secret in written]


def test_no_field_that_may_be_logged_holds_a_secret():
    for label, names in audit.SHOWN.items():
        for name in names:
            assert not any(word in name for word in SECRETS), (label, name)
            assert not name.endswith(("_encrypted", "_sha256", "address", "attributes")) or (
                name == "ip_address"
            ), (label, name)


def test_an_entry_of_an_api_request_names_the_key_and_no_user(alice):
    key = make_key(alice.channel)
    address = f"/channel/{alice.channel.pk}/providers"
    client = signed_in(alice.members["manager"])  # A cookie on an API request means nothing.
    config = {"providers_config": {"fcm_service_account": json.dumps(GOOGLE)}}
    response = client.put(
        address, config, content_type="application/json", headers={"Authorization": f"Key {key}"}
    )
    assert response.status_code == 200, response.content

    entry = newest()
    assert entry.actor is None
    assert entry.additional_data["via"] == "api"
    assert entry.additional_data["key"] == key[:12]
    assert entry.remote_addr == "127.0.0.1"
    assert entry.changes["facts"][1]["project_id"] == "alices-shop"


def test_an_entry_of_a_command_names_the_command(alice):
    call_command("create_api_key", str(alice.channel.pk), stdout=StringIO())

    assert newest().additional_data["via"] == "command"
    assert newest().actor is None


def test_a_transaction_that_is_rolled_back_leaves_no_entry(alice):
    before = LogEntry.objects.count()
    with transaction.atomic():
        api_key_issue(channel=alice.channel)
        transaction.set_rollback(True)

    assert LogEntry.objects.count() == before


@pytest.mark.parametrize("action", ["add", "change", "delete"])
def test_the_console_offers_no_change_of_the_log(alice, root, action):
    entry = newest()
    arguments = [] if action == "add" else [entry.pk]
    page = reverse(f"admin:auditlog_logentry_{action}", args=arguments)

    response = signed_in(root).post(page, {"object_repr": "forged", "post": "yes"})

    assert response.status_code == 403
    assert newest() == entry
    assert newest().object_repr == entry.object_repr


def test_a_user_with_entries_cannot_be_deleted(alice):
    request = RequestFactory().post("/")
    request.user = alice.members["manager"]
    with audit.request_context(request):
        api_key_issue(channel=alice.channel)

    with pytest.raises(Error, match="never changed"), transaction.atomic():
        alice.members["manager"].delete()


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ({"q": "alice-manager"}, True),
        ({"q": "127.0.0.1"}, True),
        ({"q": "192.0.2.1"}, False),
        ({"q": "shop-key"}, True),
        ({"q": "bob"}, False),
        ({"kind": "channels_app.apikey"}, True),
        ({"kind": "channels_app.vapidkey"}, False),
        ({"action": "0"}, True),
        ({"action": "2"}, False),
        ({"days": "7"}, True),
        ({"days": "x", "kind": "x", "action": "x"}, True),
    ],
)
def test_entries_are_filtered_by_user_action_time_and_address(alice, search, found):
    manager = signed_in(alice.members["manager"])
    page = reverse("admin:channel_keys", args=[alice.channel.pk])
    manager.post(page, {"name": "shop-key", "scopes": ["read"]})

    shown = manager.get(LOG, search).content.decode()

    assert (">shop-key</a>" in shown) is found


def test_the_entries_of_a_person_are_found_by_the_external_id(alice, settings):
    """Even if SECRET_KEY was replaced since."""
    own, other = audit.id_hash("user-42"), audit.id_hash("user-43")
    for each in (own, other):
        audit.record(alice.channel, audit.Action.UPDATE, note=f"Erased. Hash: {each}.")
    manager = signed_in(alice.members["manager"])
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key"

    shown = manager.get(LOG, {"q": "user-42"}).content.decode()

    assert [each in shown for each in (own, other)] == [True, False]


def test_a_member_sees_only_the_entries_of_their_accounts(alice, bob):
    api_key_issue(channel=alice.channel, name="a-key")
    api_key_issue(channel=bob.channel, name="b-key")
    viewer = signed_in(alice.members["viewer"])

    shown = viewer.get(LOG).content.decode()
    assert "a-key" in shown
    assert "b-key" not in shown
    page = reverse("admin:auditlog_logentry_change", args=[newest().pk])
    assert "b-key" not in viewer.get(page, follow=True).content.decode()


def test_the_log_takes_few_queries_and_is_not_counted(alice, django_assert_max_num_queries):
    for number in range(120):
        audit.record(alice.channel, audit.Action.UPDATE, note=f"Change {number}.")
    client = signed_in(alice.members["viewer"])

    with django_assert_max_num_queries(25) as asked:
        assert "Change 119." in client.get(LOG).content.decode()
    counts = [query["sql"] for query in asked.captured_queries if "COUNT(" in query["sql"]]
    assert all("LIMIT" in sql for sql in counts)


def test_an_index_finds_the_entries_of_an_account(alice):
    entry = newest()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO auditlog_logentry (content_type_id, object_pk, object_repr, action,"
            " changes_text, timestamp, additional_data)"
            " SELECT %s, n::text, 'x', 1, '', now(),"
            " jsonb_build_object('account', gen_random_uuid())"
            " FROM generate_series(1, 20000) AS n",
            [entry.content_type_id],
        )
        cursor.execute("ANALYZE auditlog_logentry")
        own = LogEntry.objects.annotate(account=KeyTextTransform("account", "additional_data"))
        own = own.filter(account__in=[str(alice.account.pk)]).order_by("-id")[:50]
        plan = own.explain()
    assert "auditlog_by_account" in plan, plan


_MANY = """
INSERT INTO auditlog_logentry
  (content_type_id, object_pk, object_repr, action, changes_text, timestamp, additional_data)
SELECT content_type_id, object_pk, object_repr, action, '', timestamp, additional_data
FROM auditlog_logentry, generate_series(1, %(count)s)
WHERE id = %(id)s
"""


@pytest.mark.parametrize("query", ["", "?days=30", "?kind=channels_app.channel", "?action=1"])
def test_the_list_of_an_account_reads_few_entries_of_others(alice, bob, query):
    """Of whom all are newer."""
    for house, count in ((alice, 3_000), (bob, 9_000)):
        audit.record(house.channel, audit.Action.UPDATE, note="Changed.")
        sql.execute(_MANY, {"id": newest().pk, "count": count})
    sql.execute("ANALYZE auditlog_logentry", {})
    client = signed_in(alice.members["viewer"])

    read = most_rows_read(lambda: client.get(LOG + query), as_if_large=True)
    assert read < 4_000

    shown = client.get(LOG + query).context["cl"].result_list
    own = LogEntry.objects.filter(additional_data__account=str(alice.account.pk))
    assert list(shown) == list(own.order_by("-id")[:50])
