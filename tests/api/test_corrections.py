"""POST /send-notification with `replaces`: what may be corrected, and how a correction reads."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from channels_app.models import Channel
from channels_app.selectors import recent_forget
from notifications_app.models import Batch, Delivery, Notification, Plan
from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp
from tests import factories
from tests.api.support import accepted, code, errors
from tests.pipeline import support

pytestmark = pytest.mark.django_db
BODY = {"body": "The right score"}


def ended(owner, **fields):
    """A notification of the channel that has ended."""
    fields = {"status": "sent", "finished_at": Now()} | fields
    return factories.make_notification(owner.channel, **fields)


def running(owner, **fields):
    """One that is being sent to a subscriber, and its batch."""
    factories.add_subscription(owner.channel)
    notification = factories.make_notification(owner.channel, **fields)
    support.plan(notification)
    return notification, Batch.objects.filter(notification=notification)


def correcting(notification, **fields):
    return BODY | {"replaces": str(notification.pk)} | fields


def details(owner, notification):
    answer = owner.call("GET", f"/notification/{notification.id}/details")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_correction_reads_as_one_and_the_corrected_notification_names_it(alice):
    wrong = ended(alice, target_platforms=["web", "ios"])
    right = ended_now(accepted(alice, correcting(wrong, target_platforms=["web"])))
    second = ended_now(accepted(alice, correcting(wrong, target_platforms=["web"])))
    again = accepted(alice, correcting(right, target_platforms=["web"]))

    assert details(alice, right)["audience"] == {
        "kind": "correction",
        "segment_id": None,
        "category": None,
        "rule": None,
        "replaces": str(wrong.pk),
        "subscription_id": None,
    }
    assert details(alice, wrong)["corrected_by"] == [str(second.pk), str(right.pk)]
    assert details(alice, right)["corrected_by"] == [str(again.pk)]
    assert details(alice, again)["corrected_by"] == []
    assert (right.root_id, again.root_id) == (wrong.pk, wrong.pk)


def ended_now(notification):
    own = Notification.objects.filter(pk=notification.pk)
    own.update(status="sent", finished_at=Now(), delivered_count=F("recipient_count"))
    return notification


def test_only_the_correction_of_a_send_to_targets_needs_no_category(alice):
    Channel.objects.filter(pk=alice.channel.pk).update(category_required=True)
    recent_forget()
    wide, direct = ended(alice), ended(alice, has_targets=True)

    for dry_run in (True, False):
        refused = alice.send(correcting(wide, dry_run=dry_run))
        assert code(refused, 400) == "category_required"
    assert accepted(alice, correcting(direct)).root_id == direct.pk


def test_a_cancelled_correction_is_not_named(alice):
    wrong = ended(alice)
    right = accepted(alice, correcting(wrong, scheduled_at=_tomorrow()))
    alice.call("DELETE", f"/cancel-notification/{right.pk}")
    assert details(alice, wrong)["corrected_by"] == []


def _tomorrow(days=1):
    return (sql.now() + timedelta(days=days)).isoformat()


def test_a_correction_goes_to_the_platforms_of_the_notification_unless_it_names_its_own(alice):
    alice.channel.ios_enabled = alice.channel.android_enabled = True
    alice.channel.save()
    wrong = ended(alice, target_platforms=["web", "ios"])
    first = ended_now(accepted(alice, correcting(wrong)))
    assert first.target_platforms == ["web", "ios"]
    own = accepted(alice, correcting(wrong, target_platforms=["ios"]))
    assert own.target_platforms == ["ios"]


@pytest.mark.parametrize(
    "beside",
    [
        {"segment_id": str(uuid7())},
        {"rule": {"tag": "team-7"}},
        {"external_ids": ["user-42"]},
        {"subscription_ids": [str(uuid7())]},
        {"local_at": "09:00"},
        {"topic": "another"},
        {"web": {"tag": "another"}},
        {"android": {"tag": "another"}},
        {"variants": [{"name": "a", "title": "A"}, {"name": "b", "title": "B"}]},
    ],
)
def test_a_correction_has_neither_another_audience_nor_another_place(alice, beside):
    assert code(alice.send(correcting(ended(alice), **beside)), 400) == "not_combinable"


def test_variants_are_corrected_unless_they_have_tags_of_their_own(alice):
    variants = [{"name": "a", "title": "A"}, {"name": "b", "web": {"tag": "b"}}]
    of_one_place = ended(alice, extras={"variants": [*variants[:1], {"name": "b"}]})

    assert accepted(alice, correcting(of_one_place)).root_id == of_one_place.pk
    refused = alice.send(correcting(ended(alice, extras={"variants": variants})))
    assert code(refused, 400) == "not_combinable"


def test_the_tags_of_the_notification_may_be_repeated(alice):
    wrong = ended(alice, extras={"web": {"tag": "score"}}, topic="match")
    right = accepted(alice, correcting(wrong, web={"tag": "score"}, topic="match"))
    assert (right.content.web["tag"], right.topic) == ("score", "match")


@pytest.mark.parametrize("whose", ["nobody", "bob"])
def test_only_a_notification_of_the_channel_can_be_corrected(alice, bob, whose):
    named = ended(bob).pk if whose == "bob" else uuid7()
    answer = alice.send(BODY | {"replaces": str(named)})
    assert errors(answer) == [("replaces", "notification_not_found")]


@pytest.mark.parametrize("status", ["pending", "processing"])
def test_a_notification_that_has_not_ended_is_not_corrected_yet(alice, status):
    if status == "pending":
        wrong = factories.make_notification(alice.channel)
    else:
        wrong, _ = running(alice)
    answer = alice.send(correcting(wrong))
    assert code(answer, 409) == "still_sending"
    assert answer["Retry-After"]


def test_a_stopped_notification_is_corrected_once_no_worker_calls(alice):
    wrong, own = running(alice, stopped_at=None)
    Notification.objects.filter(pk=wrong.pk).update(stopped_at=Now())
    own.update(status="leased", lease_until=Now() + timedelta(minutes=1))
    assert code(alice.send(correcting(wrong)), 409) == "still_sending"

    own.update(status="ready", lease_until=None)
    accepted(alice, correcting(wrong))


def test_while_a_correction_is_sent_another_waits_for_its_end(alice):
    """A device could get the older one last. One for later does not wait, and nobody for it."""
    wrong = ended(alice)
    accepted(alice, correcting(wrong, scheduled_at=format_timestamp(sql.now() + timedelta(days=1))))
    right = accepted(alice, correcting(wrong))

    assert code(alice.send(correcting(wrong)), 409) == "still_sending"

    ended_now(right)
    last = accepted(alice, correcting(right))
    assert code(alice.send(correcting(wrong)), 409) == "still_sending"
    Notification.objects.filter(pk=last.pk).update(started_at=Now(), stopped_at=Now())
    accepted(alice, correcting(wrong))


@pytest.mark.django_db(transaction=True)
def test_of_corrections_at_once_in_one_place_one_is_accepted(alice):
    """While the first is checked, but not stored. An edit that makes one due is like a send."""
    wrong, other = ended(alice), ended(alice)
    later = accepted(alice, correcting(wrong, scheduled_at=_tomorrow()))
    path, now = f"/notification/{later.pk}", {"scheduled_at": None}

    with ThreadPoolExecutor(4) as pool:

        def begin(*request):
            return pool.submit(support.closing_connection(alice.call), *request)

        with transaction.atomic():
            Channel.objects.select_for_update().get(pk=alice.channel.pk)
            first = begin("POST", "/send-notification", correcting(wrong))
            support.until(support.waiting_sessions)
            refused = [
                begin("POST", "/send-notification", correcting(wrong)),
                begin("PATCH", path, now),
            ]
            elsewhere = begin("POST", "/send-notification", correcting(other))
            support.until(
                lambda: support.waiting_sessions() + sum(each.done() for each in refused) == 4
            )

    assert [code(each.result(), 409) for each in refused] == ["still_sending"] * 2
    assert [each.result().status_code for each in (first, elsewhere)] == [202, 202]


def test_an_edit_makes_no_correction_due_while_another_is_sent(alice):
    wrong, other = ended(alice), ended(alice)
    later = accepted(alice, correcting(wrong, scheduled_at=_tomorrow()))
    right, elsewhere = accepted(alice, correcting(wrong)), accepted(alice, correcting(other))

    def edit(notification, **fields):
        return alice.call("PATCH", f"/notification/{notification.pk}", fields)

    assert code(edit(later, scheduled_at=None), 409) == "still_sending"
    assert code(edit(elsewhere, replaces=str(wrong.pk)), 409) == "still_sending"
    assert edit(later, body="2:0").status_code == 200
    ended_now(right)
    assert edit(later, scheduled_at=None).status_code == 200
    assert edit(later, scheduled_at=None).status_code == 200  # it is not another
    assert code(alice.send(correcting(wrong)), 409) == "still_sending"


def test_what_retention_has_deleted_cannot_be_corrected_and_the_answer_says_what_to_do(alice):
    wrong, own = running(alice)
    ended_now(wrong)
    accepted(alice, correcting(wrong))
    Delivery.objects.filter(notification_id=wrong.pk).delete()
    own.delete()

    answer = alice.send(correcting(wrong))

    assert code(answer, 409) == "deliveries_deleted"
    assert "Send a new notification instead." in answer.json()["detail"]


def test_a_correction_is_due_before_retention_deletes_what_it_needs(alice, settings):
    wrong = ended(alice)
    soon, late = (_tomorrow(settings.DELIVERY_RETENTION_DAYS + days) for days in (-1, 1))
    accepted(alice, correcting(wrong, scheduled_at=soon))
    answer = alice.send(correcting(wrong, scheduled_at=late))
    assert errors(answer) == [("scheduled_at", "out_of_range")]


def test_a_dry_run_counts_who_has_the_notification(alice):
    wrong, own = running(alice)
    factories.add_subscription(alice.channel)
    ended_now(wrong)
    Delivery.objects.filter(batch_id__in=own.values("pk")).update(status=1)
    answer = alice.send(correcting(wrong, dry_run=True))
    assert answer.json()["platforms"]["web"]["audience"] == 1
    assert not Plan.objects.exclude(notification=wrong).exists()


def test_an_edit_keeps_what_is_corrected_and_may_name_another(alice):
    wrong, other = ended(alice), ended(alice)
    right = accepted(alice, correcting(wrong, scheduled_at=_tomorrow()))
    path = f"/notification/{right.pk}"

    assert alice.call("PATCH", path, {"body": "2:0"}).status_code == 200
    right.refresh_from_db()
    assert (right.replaces, right.body) == (wrong.pk, "2:0")
    assert alice.call("PATCH", path, {"replaces": str(other.pk)}).status_code == 200
    right.refresh_from_db()
    assert (right.replaces, right.root_id) == (other.pk, other.pk)
    for change in ({"replaces": None}, {"rule": {"tag": "a"}, "replaces": None}):
        assert code(alice.call("PATCH", path, change), 400) == "not_combinable"


def test_a_schedule_corrects_nothing(alice):
    schedule = {
        "name": "daily",
        "notification": correcting(ended(alice)),
        "recurrence": {"rule": "FREQ=DAILY", "at": ["09:00"], "timezone": "UTC"},
    }
    answer = alice.call("POST", f"/channel/{alice.channel.pk}/schedules", schedule)
    assert errors(answer) == [("notification.replaces", "unknown_field")]
