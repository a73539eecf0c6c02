"""`POST /channel/:channelId/subscriptions/import`."""

import json
from contextlib import ExitStack

import pytest

from pushsvc.web.bulkhead import ADDRESS_IN_IMPORTS, IMPORTS, Bulkhead, TooManyInFlight
from pushsvc.web.request_body import is_import
from subscriptions_app.importing.parts import MOST_ROWS
from subscriptions_app.models import Subscription
from tests.api.devices import FID, IOS_TOKEN
from tests.api.support import owner_of
from tests.factories import make_channel

TABLE = f"platform,token,external_id,city\nandroid,{FID},user-1,Rome\nios,none,,\n"


@pytest.fixture
def alice(db):
    return owner_of(make_channel(android_enabled=True, ios_enabled=True))


def post(owner, body=TABLE, kind="text/csv", channel=None, **parameters):
    given = {"format": "tokens_csv", **parameters}
    query = "&".join(f"{name}={each}" for name, each in given.items())
    return owner.client.generic(
        "POST",
        f"/channel/{(channel or owner.channel).pk}/subscriptions/import?{query}",
        body,
        content_type=kind,
        headers={"Authorization": f"Key {owner.key}"},
    )


@pytest.mark.django_db
def test_a_part_of_a_file_is_imported(alice):
    answer = post(alice, takeover_days=30, attributes="")
    assert answer.status_code == 200, answer.content
    found = answer.json()
    (refusal,) = found.pop("refusals")
    assert (refusal["line"], refusal["code"]) == (3, "not_a_token")
    assert found == {
        "created": 1, "updated": 0, "unchanged": 0, "refused": 1, "attributes_dropped": ["city"],
    }  # fmt: skip
    (row,) = Subscription.objects.all()
    assert (row.person.external_id, row.takeover_until is None) == ("user-1", False)
    assert post(alice, attributes="").json()["unchanged"] == 1


@pytest.mark.django_db
def test_json_lines_are_imported_and_a_dry_run_stores_nothing(alice):
    row = json.dumps({"platform": "ios", "provider_token": IOS_TOKEN, "tags": ["a"]})
    options = {"kind": "application/x-ndjson", "format": "pushsvc_ndjson"}
    assert post(alice, row, dry_run="true", **options).json()["created"] == 1
    assert not Subscription.objects.exists()
    assert post(alice, row, **options).json()["created"] == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("parameters", "attr", "code"),
    [
        ({"format": "xlsx"}, "format", "not_a_choice"),
        ({"dry_run": "1"}, "dry_run", "not_a_boolean"),
        ({"takeover_days": "91"}, "takeover_days", "out_of_range"),
        ({"takeover_days": "00001234"}, "takeover_days", "out_of_range"),
        ({"platform": "huawei"}, "platform", "not_a_choice"),
        ({"takeover_days": "-1"}, "takeover_days", "out_of_range"),
        ({"columns": "token"}, "columns", "malformed"),
        ({"body": b"platform,token\nios,\xe4\n"}, "file", "not_utf_8"),
        ({"body": "platform,token\n" + "ios,x\n" * (MOST_ROWS + 1)}, "", "too_many"),
    ],
)
def test_a_wrong_request_is_refused_as_a_whole(alice, parameters, attr, code):
    answer = post(alice, **parameters)
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert (error["attr"], error["code"]) == (attr, code)
    assert not Subscription.objects.exists()


@pytest.mark.django_db
def test_it_needs_the_scope_the_own_channel_and_the_kind_of_body(alice):
    sender = owner_of(alice.channel, scopes=["send"])
    assert post(sender).json()["code"] == "missing_scope"
    assert post(alice, channel=make_channel("Bob's")).status_code == 404
    assert post(alice, kind="application/json").status_code == 415


@pytest.mark.parametrize(
    ("method", "path", "found"),
    [
        ("POST", "/channel/x/subscriptions/import", True),
        ("POST", "/channel/x/subscriptions/import/", True),
        ("GET", "/channel/x/subscriptions/import", False),
        ("POST", "/channel/subscriptions/import", False),
        ("POST", "/channel/x/subscriptions/import/more", False),
        ("POST", "/admin/x/subscriptions/import", False),
        ("POST", "/admin/subscriptions_app/subscription/import/x/part/", True),
        ("POST", "/admin/subscriptions_app/subscription/import/x/rows/", False),
        ("POST", "/admin/subscriptions_app/subscription/import/x/part/more", False),
        ("POST", "/admin/notifications_app/notification/images/x/", True),
        ("POST", "/admin/notifications_app/notification/images/x/choose/", True),
        ("GET", "/admin/notifications_app/notification/images/x/", False),
        ("POST", "/admin/notifications_app/notification/images/x/more/", False),
        ("POST", "/admin/notifications_app/notification/compose/image/", False),
        ("POST", "/images/x.png", False),
    ],
)
def test_only_imports_and_images_have_large_bodies(method, path, found):
    assert is_import(method, path) is found


def test_few_bodies_of_imports_are_in_memory_at_once():
    bulkhead = Bulkhead(None)

    def begun(stack, address):
        path = "/channel/x/subscriptions/import"
        stack.enter_context(bulkhead.importing("POST", path, address))

    with ExitStack() as stack:
        for number in range(sum(IMPORTS)):
            begun(stack, f"address {number % 3}")
        with pytest.raises(TooManyInFlight):
            begun(stack, "another")
        stack.enter_context(bulkhead.importing("POST", "/subscribe", "another"))
    with ExitStack() as stack:
        for _ in range(sum(ADDRESS_IN_IMPORTS)):
            begun(stack, "one")
        with pytest.raises(TooManyInFlight):
            begun(stack, "one")
        begun(stack, "another")
