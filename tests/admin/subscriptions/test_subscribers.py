"""Subscribers in the console: searched, shown without tokens, expired, exported, deleted."""

import hashlib
import json

import pytest
from auditlog.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from channels_app.selectors import channel_totals
from notifications_app.models import Delivery
from subscriptions_app.models import Subscription
from tests.admin.support import signed_in, subscriber
from tests.factories import add_crowd, add_subscriptions, make_sent_notification

LIST = "admin:subscriptions_app_subscription_changelist"


@pytest.fixture
def device(alice):
    add_crowd(alice.channel, 5)
    return subscriber(alice.channel)


def page_of(device, name="subscriptions_app_subscription_change"):
    return reverse(f"admin:{name}", args=[device.pk])


def found(client, house, text):
    page = client.get(reverse(LIST), {"q": text, "channel__id__exact": house.channel.pk})
    assert page.status_code == 200
    return {str(row.pk) for row in page.context["cl"].result_list}


def test_a_subscriber_is_found_by_id_address_and_hash(alice, device):
    client = signed_in(alice.members["viewer"])
    digest = hashlib.sha256(device.address.encode()).hexdigest()

    other_form = device.address.replace("https://push.example/", "https://PUSH.example:443/")
    for text in (str(device.pk), device.address, other_form, digest, digest.upper()):
        assert found(client, alice, text) == {str(device.pk)}
    assert found(client, alice, "nothing of the kind") == set()


def test_subscribers_are_found_by_an_attribute_as_text_and_as_number(alice, device):
    client = signed_in(alice.members["viewer"])
    mine = Subscription.objects.filter(channel=alice.channel)

    for name, value in (("plan", "pro"), ("age", 20)):
        expected = {str(row.pk) for row in mine.filter(attributes__contains={name: value})}
        assert expected
        assert found(client, alice, f"{name}={value}") == expected


def test_the_list_opens_on_a_channel_of_the_users_account(alice, device):
    answer = signed_in(alice.members["viewer"]).get(reverse(LIST))

    assert answer.url == f"?channel__id__exact={alice.channel.pk}"


def test_no_page_shows_the_address_or_the_keys(alice, device):
    Subscription.objects.filter(pk=device.pk).update(p256dh="p256dh-of-it", auth="auth-of-it")
    client = signed_in(alice.members["owner"])

    for address in (reverse(LIST) + f"?channel__id__exact={alice.channel.pk}", page_of(device)):
        page = client.get(address).content.decode()
        assert str(device.pk) in page
        for secret in (device.address, "p256dh-of-it", "auth-of-it"):
            assert secret not in page


def test_a_manager_expires_a_subscriber_and_the_count_changes(alice, device):
    client = signed_in(alice.members["manager"])

    for _ in range(2):
        client.post(page_of(device, "subscription_expire"))

    device.refresh_from_db()
    assert device.expired_code == "expired_by_staff"
    assert channel_totals(alice.channel.pk).web_subscribers == 4
    assert LogEntry.objects.get_for_object(device).count() == 1


@pytest.mark.parametrize("is_active", [True, False])
def test_a_deleted_subscriber_leaves_only_outcomes(alice, device, is_active):
    client = signed_in(alice.members["manager"])
    notification = make_sent_notification(alice.channel)
    Delivery.objects.create(
        notification_id=notification.pk, subscription_id=device.pk, batch_id=1, status=1
    )
    if not is_active:
        client.post(page_of(device, "subscription_expire"))

    client.post(page_of(device, "subscription_forget"))

    assert not Subscription.objects.filter(pk=device.pk).exists()
    assert Delivery.objects.filter(subscription_id=device.pk).exists()
    assert channel_totals(alice.channel.pk).web_subscribers == 4
    told = str(list(LogEntry.objects.values_list("changes", "object_repr", "additional_data")))
    assert device.address not in told


def test_the_export_holds_everything_stored_of_the_subscriber(alice, device):
    Subscription.objects.filter(pk=device.pk).update(p256dh="p256dh-of-it", auth="auth-of-it")
    notification = make_sent_notification(alice.channel)
    Delivery.objects.create(
        notification_id=notification.pk, subscription_id=device.pk, batch_id=1, status=2, code="x"
    )

    answer = signed_in(alice.members["manager"]).get(page_of(device, "subscription_export"))

    known = json.loads(answer.content)
    assert (known["address"], known["auth"]) == (device.address, "auth-of-it")
    assert known["attributes"] == device.attributes
    assert [(each["outcome"], each["code"]) for each in known["deliveries"]] == [("bounced", "x")]
    assert "attachment" in answer.headers["Content-Disposition"]
    assert LogEntry.objects.get_for_object(device).get().action == LogEntry.Action.ACCESS


def test_the_history_shows_each_notification_and_its_outcome(alice, device):
    notification = make_sent_notification(alice.channel, title="Spring sale")
    Delivery.objects.create(
        notification_id=notification.pk, subscription_id=device.pk, batch_id=1, status=1
    )

    page = signed_in(alice.members["viewer"]).get(page_of(device, "subscription_history"))

    assert "Spring sale" in page.content.decode()
    assert "delivered" in page.content.decode()
    assert "Of the channel's last 50 notifications." in page.content.decode()


@pytest.mark.parametrize("role", ["viewer", "sender", "editor"])
def test_a_member_without_the_manager_role_neither_expires_nor_exports_subscriptions(
    alice, device, role
):
    client = signed_in(alice.members[role])

    for name in ("subscription_expire", "subscription_forget"):
        assert client.post(page_of(device, name)).status_code == 403
    assert client.get(page_of(device, "subscription_export")).status_code == 403
    device.refresh_from_db()
    assert device.expired_at is None


def rows_read(plan):
    """The most rows that a node of the plan reads, including those that it filters out."""
    own = plan.get("Actual Rows", 0) + plan.get("Rows Removed by Filter", 0)
    own += plan.get("Rows Removed by Index Recheck", 0)
    return max([own, *(rows_read(each) for each in plan.get("Plans", []))])


@pytest.mark.parametrize(
    "query",
    [
        "",
        "&platform__exact=web",
        "&platform__exact=ios",
        "&state=active",
        "&state=expired",
        "&within=7&state=expired",
        "&q=plan%3Dpro",
        "&q=plan%3Dnone-such",
        "&q=none-such",
        f"&q={'ab' * 32}",
    ],
)
def test_the_list_takes_few_queries_and_reads_few_rows(
    alice, bob, django_assert_max_num_queries, query
):
    add_crowd(bob.channel, 500)
    add_crowd(alice.channel, 20_000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE subscriptions_app_subscription")
        cursor.execute(
            "SELECT gin_clean_pending_list('subscription_attributes')"
        )  # as autovacuum does
    client = signed_in(alice.members["viewer"])
    address = f"{reverse(LIST)}?channel__id__exact={alice.channel.pk}{query}"
    client.get(address)

    with django_assert_max_num_queries(25) as captured:
        assert client.get(address).status_code == 200

    assert most_read(captured) <= 4_000  # of 20,500


def most_read(captured):
    """The most rows that a node of the plans of the statements about subscriptions reads."""
    reads = [each["sql"] for each in captured if "subscriptions_app_subscription" in each["sql"]]
    assert reads
    plans = []
    for statement in reads:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
            plans.append(cursor.fetchone()[0][0]["Plan"])
    return max(map(rows_read, plans))


@pytest.mark.django_db(transaction=True)
def test_the_list_of_an_old_channel_reads_few_rows(alice, bob):
    """Nobody subscribes to it any more, and many to another one."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM subscriptions_app_subscription")  # what other tests left there
    add_crowd(alice.channel, 6_000)
    add_crowd(alice.channel, 6_000, expired_at="now()")
    add_subscriptions(bob.channel, 8_000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE subscriptions_app_subscription")
    client = signed_in(alice.members["viewer"])
    address = f"{reverse(LIST)}?channel__id__exact={alice.channel.pk}"

    for query, state in (
        ("", {}),
        ("&platform__exact=web&within=90", {}),
        ("&state=active", {"expired_at": None}),
        ("&state=expired", {"expired_at__isnull": False}),
    ):
        with CaptureQueriesContext(connection) as captured:
            page = client.get(address + query)
        newest = Subscription.objects.filter(channel=alice.channel, **state).order_by("-id")
        assert list(page.context["cl"].result_list) == list(newest[:50])
        assert page.context["cl"].paginator.is_cut
        assert most_read(captured) < 2_500  # of 20,000
