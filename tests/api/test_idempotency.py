from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models.functions import Now

from channels_app.models import Channel
from notifications_app.models import IdempotencyRecord, Notification
from notifications_app.sends.idempotency import once
from pushsvc.common.store import sql
from tests.api.support import NOWHERE, code, errors, owner_of
from tests.pipeline.support import in_threads, waits_for_nobody

pytestmark = pytest.mark.django_db


def keyed(owner, body, key="order-4711"):
    return owner.send(body, **{"Idempotency-Key": key})


def grow_older(hours):
    IdempotencyRecord.objects.update(created_at=Now() - timedelta(hours=hours))


def test_a_repeated_request_gets_the_first_answer_byte_for_byte(alice):
    first = keyed(alice, {"body": "é\u2028😀", "title": "x"})
    again = keyed(alice, {"title": "x", "body": "é\u2028😀"})

    assert (first.status_code, again.status_code) == (202, 202)
    assert again.content == first.content
    assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert Notification.objects.count() == 1


def test_a_repeated_request_gets_the_first_answer_after_the_notification_changed(alice):
    first = keyed(alice, {"body": "x"})
    alice.call("DELETE", f"/cancel-notification/{first.json()['notification_id']}")
    Channel.objects.update(web_enabled=False)
    assert keyed(alice, {"body": "x"}).content == first.content


def test_a_repeated_request_to_all_platforms_needs_none_that_is_enabled_now(alice):
    body = {"body": "x", "target_platforms": ["all"]}
    first = keyed(alice, body)
    Channel.objects.update(web_enabled=False)

    assert keyed(alice, body).content == first.content
    assert keyed(alice, body, "another key").status_code == 400


@pytest.mark.parametrize("other", [{"body": "y"}, {"body": "x", "title": ""}])
def test_the_same_key_with_another_body_is_refused(alice, other):
    keyed(alice, {"body": "x"})
    assert code(keyed(alice, other), 422) == "idempotency_key_reused"
    assert Notification.objects.count() == 1


def test_another_key_makes_another_notification(alice):
    keyed(alice, {"body": "x"}, "a")
    keyed(alice, {"body": "x"}, "A")
    alice.send({"body": "x"})
    alice.send({"body": "x"})
    assert Notification.objects.count() == 4


def test_keys_belong_to_the_channel_and_not_to_the_api_key(alice, bob):
    first = keyed(alice, {"body": "x"})
    assert keyed(owner_of(alice.channel), {"body": "x"}).content == first.content
    assert keyed(bob, {"body": "other"}).status_code == 202
    assert Notification.objects.filter(channel=bob.channel).count() == 1


def test_errors_are_not_stored_as_answers(alice):
    errors(keyed(alice, {"body": ""}), 400)
    Channel.objects.update(web_enabled=False)
    errors(keyed(alice, {"body": "x"}), 400)
    Channel.objects.update(web_enabled=True)
    assert not IdempotencyRecord.objects.exists()
    assert (
        keyed(owner_of(Channel.objects.get(id=alice.channel.id)), {"body": "x"}).status_code == 202
    )


@pytest.mark.parametrize(("hours", "is_remembered"), [(23.99, True), (24, False)])
def test_an_answer_is_kept_for_a_day(alice, hours, is_remembered):
    first = keyed(alice, {"body": "x"})
    grow_older(hours)

    again = keyed(alice, {"body": "x"})

    assert (again.content == first.content) is is_remembered
    assert Notification.objects.count() == (1 if is_remembered else 2)
    assert IdempotencyRecord.objects.count() == 1


def test_after_a_day_a_key_may_be_used_with_another_body(alice):
    keyed(alice, {"body": "x"})
    grow_older(25)
    assert keyed(alice, {"body": "y"}).status_code == 202
    assert code(keyed(alice, {"body": "x"}), 422) == "idempotency_key_reused"


@pytest.mark.parametrize("known", [0, 1, 3, 50])
def test_old_answers_are_deleted_in_steps_whatever_the_statistics_say(alice, known):
    for number in range(known):
        keyed(alice, {"body": "x"}, f"{number}")
    sql.execute(f"ANALYZE {IdempotencyRecord._meta.db_table}", {})
    IdempotencyRecord.objects.all().delete()

    for key in "abc":
        keyed(alice, {"body": "x"}, key)
    grow_older(24)
    keyed(alice, {"body": "x"}, "new")

    assert [IdempotencyRecord.objects.purge(2) for _ in range(3)] == [2, 1, 0]
    assert IdempotencyRecord.objects.get().key == "new"


@pytest.mark.django_db(transaction=True)
def test_an_old_answer_that_a_request_replaces_just_now_keeps_no_others(alice):
    for key in "ab":
        keyed(alice, {"body": "x"}, key)
    grow_older(25)

    deleted = waits_for_nobody(
        IdempotencyRecord.objects.filter(key="a"), lambda: IdempotencyRecord.objects.purge(10)
    )

    assert deleted == 1
    assert IdempotencyRecord.objects.get().key == "a"


@pytest.mark.parametrize("key", ["k", "k" * 255, 'with blanks, "quotes" and ~', "0"])
def test_a_key_may_hold_any_printable_ascii(alice, key):
    assert keyed(alice, {"body": "x"}, key).status_code == 202
    assert IdempotencyRecord.objects.get().key == key


@pytest.mark.parametrize(
    "key", ["", "k" * 256, "a\tb", "é", "\x7f", "😀".encode().decode("latin-1")]
)
@pytest.mark.parametrize("is_trial", [True, False])
def test_an_invalid_idempotency_key_is_refused(alice, key, is_trial):
    response = keyed(alice, {"body": "x", "dry_run": is_trial}, key)
    assert errors(response) == [("Idempotency-Key", "idempotency_key_invalid")]
    assert response.json()["code"] == "idempotency_key_invalid"
    assert not Notification.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_repeat_is_refused_while_the_first_request_runs(alice):
    meanwhile = []
    first = {"notification_id": NOWHERE}

    def act():
        meanwhile.extend(in_threads(lambda: keyed(alice, {"body": "x"})))
        meanwhile.extend(in_threads(lambda: keyed(alice, {"body": "x"}, "another")))
        return first

    once(channel_id=alice.channel.id, key="order-4711", body={"body": "x"}, act=act)

    assert code(meanwhile[0], 409) == "idempotency_key_in_flight"
    assert meanwhile[0].headers["Retry-After"] == "1"
    assert meanwhile[1].status_code == 202
    assert keyed(alice, {"body": "x"}).json() == first


@pytest.mark.django_db(transaction=True)
def test_a_request_that_was_rolled_back_stores_no_answer(alice):
    with transaction.atomic():
        keyed(alice, {"body": "x"})
        transaction.set_rollback(True)
    assert keyed(alice, {"body": "y"}).status_code == 202


@pytest.mark.django_db(transaction=True)
def test_simultaneous_requests_with_one_key_store_one_notification(alice):
    responses = in_threads(*[lambda: keyed(alice, {"body": "x"})] * 8)

    stored = {r.content for r in responses if r.status_code == 202}
    assert len(stored) == 1
    assert {r.status_code for r in responses} <= {202, 409}
    assert Notification.objects.count() == 1
    assert keyed(alice, {"body": "x"}).content in stored
