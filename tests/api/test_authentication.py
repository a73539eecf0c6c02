"""Keys, scopes, other owners' channels, and the limit on refused keys."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.test import Client

from channels_app import keys
from channels_app.models import ApiKey
from channels_app.services import api_key_issue, api_key_revoke
from tests.api.support import code, owner_of
from tests.factories import make_channel
from tests.pipeline.support import in_threads

pytestmark = pytest.mark.django_db

LONG_AGO = datetime(2001, 2, 3, tzinfo=UTC)


def read(owner, authorization=None, address=None):
    headers = {} if authorization is None else {"Authorization": authorization}
    client = Client(REMOTE_ADDR=address or str(uuid4()))
    return client.get(f"/channel/{owner.channel.id}", headers=headers)


def test_a_key_opens_its_channel_with_the_scheme_in_any_case(alice):
    for scheme in ("Key", "key", "KEY"):
        assert read(alice, f"{scheme} {alice.key}").status_code == 200


@pytest.mark.parametrize("authorization", [None, "", "Key", "Key ", "Bearer {key}", "{key}"])
def test_a_request_without_a_key_is_told_how_to_send_one(alice, authorization):
    response = read(alice, authorization and authorization.format(key=alice.key))

    assert code(response, 401) == "missing_key"
    assert response.headers["WWW-Authenticate"] == "Key"


def test_another_scheme_is_told_which_one_is_needed(alice):
    answer = read(alice, f"Bearer {alice.key}").json()

    assert "must be `Key`" in answer["detail"]
    assert "Bearer" in answer["detail"]


def test_an_unknown_key_is_refused(alice):
    unknown, _ = keys.generate()
    mistyped = alice.key[:-1] + ("A" if alice.key[-1] != "A" else "B")
    public_id = alice.key[4:12]
    forged = keys._checksum(f"psk_{public_id}_{'x' * 32}")
    texts = [unknown, mistyped, "x", "\N{GRINNING FACE}", f"psk_{public_id}_{'x' * 32}{forged}"]

    for text in texts:
        response = read(alice, f"Key {text}")
        assert code(response, 401) == "invalid_key"
        assert response.headers["WWW-Authenticate"] == "Key"


def test_a_mistyped_key_costs_no_query(alice, django_assert_num_queries):
    with django_assert_num_queries(0):
        read(alice, f"Key {alice.key[:-2]}00")


def test_only_the_digest_of_a_key_is_stored(alice):
    row = ApiKey.objects.get()

    secret = alice.key[13:45]
    assert secret not in str([getattr(row, field.attname) for field in row._meta.fields])
    assert alice.key.startswith(f"psk_{row.public_id}_")


def test_a_key_is_refused_once_it_has_expired(alice):
    soon = datetime.max.replace(tzinfo=UTC)
    _, good = api_key_issue(channel=alice.channel, expires_at=soon)
    _, late = api_key_issue(channel=alice.channel, expires_at=LONG_AGO)

    assert read(alice, f"Key {good}").status_code == 200
    assert code(read(alice, f"Key {late}"), 401) == "expired_key"


def test_a_revoked_key_is_refused_while_other_keys_work(alice):
    row, other = api_key_issue(channel=alice.channel)

    assert api_key_revoke(api_key=row)
    assert not api_key_revoke(api_key=row)

    assert code(read(alice, f"Key {other}"), 401) == "revoked_key"
    assert read(alice, f"Key {alice.key}").status_code == 200


SCOPES = [
    ("GET", "/channel/{channel}", "read"),
    ("GET", "/notifications/{channel}", "read"),
    ("GET", "/notification/{other}", "read"),
    ("GET", "/notification/{other}/details", "read"),
    ("GET", "/channel/{channel}/platforms", "read"),
    ("GET", "/channel/{channel}/audience", "read"),
    ("GET", "/channel/{channel}/statistics", "read"),
    ("PUT", "/channel/{channel}/providers", "manage"),
    ("GET", "/channel/{channel}/delivery-settings", "manage"),
    ("PUT", "/channel/{channel}/delivery-settings", "manage"),
    ("GET", "/channel/{channel}/identity-keys", "manage"),
    ("POST", "/channel/{channel}/identity-keys", "manage"),
    ("DELETE", "/channel/{channel}/identity-keys/{other}", "manage"),
    *(
        (method, f"/channel/{{channel}}/webhooks{part}", "manage")
        for method, part in (
            *(("GET", ""), ("POST", ""), ("GET", "/{other}"), ("PUT", "/{other}")),
            *(("DELETE", "/{other}"), ("POST", "/{other}/test"), ("POST", "/{other}/replay")),
            *(("POST", "/{other}/rotate-secret"), ("GET", "/{other}/messages")),
        )
    ),
    *(
        (method, f"/channel/{{channel}}/{kind}", "manage")
        for kind in ("segments", "templates", "categories")
        for method in ("GET", "POST")
    ),
    *(
        (method, f"/channel/{{channel}}/{kind}/{{other}}", "manage")
        for kind in ("segments", "templates")
        for method in ("GET", "PUT", "DELETE")
    ),
    ("GET", "/channel/{channel}/segments/{other}/size", "manage"),
    ("PUT", "/channel/{channel}/categories/offers", "manage"),
    ("DELETE", "/channel/{channel}/categories/offers", "manage"),
    ("GET", "/channel/{channel}/tags", "subscribers"),
    ("DELETE", "/channel/{channel}/tags/team-7", "subscribers"),
    ("POST", "/channel/{channel}/tags/team-7/members", "subscribers"),
    ("POST", "/channel/{channel}/people/devices", "subscribers"),
    *(
        (method, "/channel/{channel}/person?external_id=x", "subscribers")
        for method in ("GET", "PATCH", "DELETE")
    ),
    ("GET", "/channel/{channel}/person/export?external_id=x", "subscribers"),
    ("POST", "/channel/{channel}/explain", "subscribers"),
    ("POST", "/send-notification", "send"),
    ("DELETE", "/cancel-notification/{other}", "send"),
]


@pytest.mark.parametrize(("method", "path", "scope"), SCOPES)
def test_each_endpoint_needs_its_scope_and_no_other(alice, method, path, scope):
    path = path.format(channel=alice.channel.id, other=uuid4())
    without = owner_of(alice.channel, scopes={"send", "read", "manage", "subscribers"} - {scope})
    with_only = owner_of(alice.channel, scopes=[scope])

    refused = without.call(method, path, {})
    assert code(refused, 403) == "missing_scope"
    assert f"`{scope}`" in refused.json()["detail"]
    assert with_only.call(method, path, {}).status_code in {200, 400, 404}


def test_an_address_waits_after_sixty_refused_keys_a_minute(alice):
    address, elsewhere = "198.51.100.7", "198.51.100.8"
    for _ in range(60):
        assert code(read(alice, "Key wrong", address), 401) == "invalid_key"

    response = read(alice, "Key wrong", address)

    assert code(response, 429) == "rate_limited"
    assert 1 <= int(response.headers["Retry-After"]) <= 60
    assert read(alice, f"Key {alice.key}", address).status_code == 200
    assert code(read(alice, None, address), 401) == "missing_key"
    assert code(read(alice, "Key wrong", elsewhere), 401) == "invalid_key"


def test_good_and_missing_keys_do_not_count_as_refused(alice, settings):
    settings.REFUSED_KEYS_PER_MINUTE = 1
    address = "198.51.100.7"
    for _ in range(3):
        read(alice, f"Key {alice.key}", address)
        read(alice, None, address)

    assert code(read(alice, "Key wrong", address), 401) == "invalid_key"
    assert code(read(alice, "Key wrong", address), 429) == "rate_limited"


def test_the_last_use_of_a_key_is_stored_once_a_minute(alice, django_assert_num_queries):
    read(alice, f"Key {alice.key}")
    first = ApiKey.objects.get().last_used_at
    assert first is not None

    with django_assert_num_queries(3):  # the key, its channel as it is now, the totals
        read(alice, f"Key {alice.key}")
    assert ApiKey.objects.get().last_used_at == first

    ApiKey.objects.update(last_used_at=first - timedelta(seconds=61))
    read(alice, f"Key {alice.key}")
    assert ApiKey.objects.get().last_used_at >= first


@pytest.mark.django_db(transaction=True)
def test_simultaneous_uses_of_a_key_are_all_answered():
    alice = owner_of(make_channel())

    answers = in_threads(*[lambda: read(alice, f"Key {alice.key}")] * 6)

    assert [answer.status_code for answer in answers] == [200] * 6
