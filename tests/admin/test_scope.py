"""Who sees what: every list and page of the console, for each role, a stranger and root."""

import pytest
from django.urls import reverse

from channels_app.models import Role
from tests.admin.support import fill_subscribers, make_notification, signed_in, subscriber

LISTS = [
    "channels_app_channel",
    "channels_app_apikey",
    "channels_app_vapidkey",
    "channels_app_providercredential",
    "notifications_app_notification",
    "subscriptions_app_subscription",
]


def listing(model):
    return reverse(f"admin:{model}_changelist")


def own_rows(house):
    fill_subscribers(house.channel, 3)
    return {
        "channels_app_channel": house.channel,
        "notifications_app_notification": make_notification(house.channel),
        "subscriptions_app_subscription": subscriber(house.channel),
    }


@pytest.mark.parametrize("role", Role.values)
def test_a_member_sees_the_rows_of_the_own_account_only(alice, bob, role):
    mine, theirs = own_rows(alice), own_rows(bob)
    client = signed_in(alice.members[role])

    for model, row in mine.items():
        page = client.get(listing(model))
        assert page.status_code == 200
        assert str(row.pk) in page.content.decode()
        assert str(theirs[model].pk) not in page.content.decode()


@pytest.mark.parametrize("role", Role.values)
def test_a_guessed_address_of_another_account_leads_nowhere(alice, bob, role):
    theirs = own_rows(bob)
    client = signed_in(alice.members[role])

    for model, row in theirs.items():
        answer = client.get(reverse(f"admin:{model}_change", args=[row.pk]))
        assert answer.status_code in {302, 404}
        assert bob.channel.name not in answer.content.decode()


def test_root_sees_every_account(alice, bob, root):
    rows = [own_rows(alice), own_rows(bob)]
    client = signed_in(root)

    for model in rows[0]:
        page = client.get(listing(model)).content.decode()
        assert all(str(each[model].pk) in page for each in rows)


@pytest.mark.parametrize("model", LISTS)
def test_staff_of_no_account_see_nothing(alice, bob, model):
    loner = bob.members["owner"]
    loner.memberships.all().delete()

    assert signed_in(loner).get(listing(model)).status_code == 403
