"""Members with crafted forms: for another account, above their role, and after a demotion."""

from itertools import product
from threading import Event

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from channels_app.accounts.users import user_change
from channels_app.models import Account, ApiKey, Channel, Membership, Role
from channels_app.services import api_key_issue
from notifications_app.models import Draft, Notification
from pushsvc.common.errors import Invalid
from pushsvc.common.store import sql
from subscriptions_app.models import Person, Segment, Subscription
from tests.admin.console.test_scope import addresses, everything_of
from tests.admin.support import signed_in
from tests.factories import add_crowd, make_draft, make_sent_notification, make_template
from tests.pipeline.support import in_threads, until

COMPOSE = "admin:notification_compose"
CHECK = "admin:notification_compose_check"
TEST = "admin:notification_compose_test"
WORD = "zebra"


def stocked(house, word=WORD):
    """Adds one row of every kind to the house, named by the word."""
    add_crowd(house.channel, 2)
    rule = {"attribute": word, "operator": "eq", "value": word}
    house.rows = {
        "channel": house.channel,
        "key": api_key_issue(channel=house.channel, name=word)[0],
        "segment": Segment.objects.create(channel=house.channel, name=word, rule=rule),
        "subscription": Subscription.objects.filter(channel=house.channel)[0],
        "person": Person.objects.create(
            channel=house.channel, external_id=word, left_at=timezone.now()
        ),
        "notification": make_sent_notification(
            house.channel, title=word, body=word, status="pending"
        ),
        "draft": make_draft(house.channel, house.members["owner"], title=word),
        "template": make_template(house.channel, word),
    }
    return house


@pytest.fixture
def zebra(bob):
    """Bob's account. No member of Alice's account may read its word."""
    Channel.objects.filter(pk=bob.channel.pk).update(name=WORD)
    bob.channel.refresh_from_db()
    return stocked(bob)


def written(channel, **more):
    return {
        "channel": str(channel.pk),
        "body": "Hello",
        "ttl_number": "1",
        "ttl_unit": "hours",
        "when": "now",
        "platforms": ["web"],
        "step": "send",
        "key": "console 1",
    } | more


@pytest.mark.parametrize("role", Role.values)
def test_a_member_cannot_change_another_accounts_subscribers(alice, zebra, role):
    client = signed_in(alice.members[role])
    before = Notification.objects.count()
    device = zebra.rows["subscription"]
    digest = bytes(device.address_sha256).hex()
    forms = [
        written(zebra.channel),
        written(zebra.channel, step="review"),
        written(alice.channel, segment_id=str(zebra.rows["segment"].pk)),
        written(alice.channel, segment_id=str(zebra.rows["segment"].pk), step="review"),
        written(alice.channel, test_device=str(device.pk), step="none", body="\x00"),
        written(alice.channel, test_known_as=digest, step="none", body="\x00"),
        written(zebra.channel, test_device=str(device.pk), body="\x00"),
    ]

    for form, name in product(forms, [COMPOSE, CHECK, TEST]):
        for query in ("", f"?channel={alice.channel.pk}", f"?channel={zebra.channel.pk}"):
            answer = client.post(reverse(name) + query, form)
            assert answer.status_code in {200, 400, 403, 404}, (name, form)
            assert WORD not in answer.content.decode(), (name, form)
    assert Notification.objects.count() == before


def test_a_test_message_goes_to_no_device_of_another_channel(alice, zebra):
    client = signed_in(alice.members["owner"])
    device = zebra.rows["subscription"]

    for known in (str(device.pk), bytes(device.address_sha256).hex()):
        answer = client.post(reverse(TEST), written(alice.channel, test_known_as=known))
        assert "No test was sent" in answer.content.decode()
    assert not Notification.objects.filter(only_subscription_id__isnull=False).exists()


def test_nothing_of_another_account_can_be_duplicated(alice, zebra):
    client = signed_in(alice.members["owner"])
    copied = reverse("admin:notification_duplicate", args=[zebra.rows["notification"].pk])
    draft = str(zebra.rows["draft"].pk)

    assert client.post(copied).status_code == 404
    for query in ({"draft": draft}, {"draft": draft, "channel": alice.channel.pk}):
        assert client.get(reverse(COMPOSE), query).status_code == 404
    for action in ("admin:draft_save", "admin:draft_delete"):
        taken = written(alice.channel, draft=draft, version="1")
        assert client.post(reverse(action), taken).status_code == 404
    client.post(reverse(COMPOSE), written(alice.channel, draft=draft))
    assert Draft.objects.get(pk=draft).channel == zebra.channel


def test_a_viewer_who_owns_another_account_stays_a_viewer_in_this_one(alice, zebra):
    """An owner elsewhere passes every check that asks only for a role `anywhere`."""
    owner = alice.members["owner"]
    Membership.objects.create(account=zebra.account, user=owner, role=Role.VIEWER)
    client, before = signed_in(owner), everything_of(zebra)
    fields = written(zebra.channel) | {"do": "add", "username": "mole", "role": "owner"}
    fields |= {"name": "mole", "scopes": ["manage"], "account": str(zebra.account.pk)}
    fields |= {"platform": "web", "rule": '{"field": "platform", "operator": "eq", "value": "web"}'}

    for name, path in addresses(zebra):
        if name not in {"logout", "login", "two_step"}:
            answer = client.post(path, fields)
            assert answer.status_code in {200, 302, 400, 403, 404, 405}, (name, path)

    assert everything_of(zebra) == before
    assert not User.objects.filter(username="mole").exists()
    assert Channel.objects.filter(account=zebra.account).count() == 1
    assert not ApiKey.objects.filter(name="mole", channel=zebra.channel).exists()


def test_an_extra_field_in_a_form_raises_no_role(alice, zebra):
    owner, viewer = alice.members["owner"], alice.members["viewer"]
    client = signed_in(owner)
    crafted = {
        "is_superuser": "on",
        "is_staff": "on",
        "is_active": "on",
        "account": zebra.account.pk,
    }
    members = reverse("admin:channels_app_account_change", args=[alice.account.pk])
    theirs = Membership.objects.filter(account=zebra.account)[0]
    own = Membership.objects.get(user=viewer)

    client.post(members, {"do": "add", "username": "new", "role": "superuser"} | crafted)
    client.post(members, {"do": "add", "username": "newer", "role": "viewer"} | crafted)
    client.post(members, {"do": "role", "membership": own.pk, "role": "sender"} | crafted)
    assert client.post(members, {"do": "remove", "membership": theirs.pk}).status_code == 404
    link = client.post(members, {"do": "link", "membership": theirs.pk})
    assert link.status_code == 404
    assert client.post(members, {"do": "rename", "name": "taken"}).status_code == 403
    for page in ("add/", f"{owner.pk}/change/"):
        fields = {"do": "change", "username": "x"} | crafted
        assert client.post(f"/admin/auth/user/{page}", fields).status_code == 403

    assert not User.objects.filter(is_superuser=True).exists()
    assert not User.objects.filter(username="new").exists()
    assert User.objects.get(username="newer").memberships.get().account_id == alice.account.pk
    assert Membership.objects.filter(account=zebra.account).count() == len(Role.values)
    assert not Account.objects.filter(name="taken").exists()


def test_a_channel_is_neither_created_in_nor_moved_to_another_account(alice, zebra):
    client = signed_in(alice.members["manager"])
    fields = {"name": "moved", "vapid_subject": "mailto:push@example.com", "enabled": ["web"]}
    fields["account"] = str(zebra.account.pk)

    made = client.post(reverse("admin:channels_app_channel_add"), fields)
    client.post(reverse("admin:channel_settings", args=[alice.channel.pk]), fields)

    assert made.status_code == 400
    assert Channel.objects.filter(account=zebra.account).count() == 1
    alice.channel.refresh_from_db()
    assert alice.channel.account_id == alice.account.pk


def test_a_key_is_revoked_only_through_its_own_channel(alice, zebra):
    client = signed_in(alice.members["manager"])
    path = reverse("admin:channel_key_revoke", args=[alice.channel.pk, zebra.rows["key"].pk])

    assert client.post(path).status_code == 404
    assert ApiKey.objects.get(pk=zebra.rows["key"].pk).revoked_at is None


@pytest.mark.parametrize("becomes", [Role.VIEWER, None])
def test_a_member_demoted_between_review_and_confirmation_sends_nothing(alice, becomes):
    add_crowd(alice.channel, 1)
    sender = alice.members["sender"]
    client = signed_in(sender)
    review = client.post(reverse(COMPOSE), written(alice.channel, step="review"))
    membership = Membership.objects.filter(user=sender)
    membership.update(role=becomes) if becomes else membership.delete()

    answer = client.post(reverse(COMPOSE), written(alice.channel, key=review.context["key"]))

    assert answer.status_code in {403, 404}
    assert not Notification.objects.exists()


def test_a_former_superuser_has_no_rights(root, zebra):
    client = signed_in(root)
    User.objects.filter(pk=root.pk).update(is_superuser=False)

    for name, path in addresses(zebra):
        if name != "logout":
            assert WORD not in client.get(path).content.decode(), (name, path)


@pytest.mark.django_db(transaction=True)
def test_two_superusers_who_demote_each_other_leave_one_superuser(root):
    other = User.objects.create_superuser("other", password="x")
    was_taken, pids = Event(), []

    def demote_other():
        with transaction.atomic():
            user_change(user=other, by=root, email="", is_active=True, is_superuser=False)
            was_taken.set()
            until(lambda: pids and _has_ended_or_waits(pids[0]))

    def demote_root():
        assert was_taken.wait(timeout=60)
        pids.append(sql.rows("SELECT pg_backend_pid()", {})[0][0])
        with pytest.raises(Invalid):
            user_change(user=root, by=other, email="", is_active=True, is_superuser=False)

    in_threads(demote_other, demote_root)
    assert list(User.objects.filter(is_superuser=True)) == [root]


def _has_ended_or_waits(pid):
    """Judged by its database session. A call that was refused at once is idle."""
    asked = "SELECT wait_event_type, query FROM pg_stat_activity WHERE pid = %(pid)s"
    found = sql.rows(asked, {"pid": pid})
    return not found or found[0][0] == "Lock" or found[0][1] in {"COMMIT", "ROLLBACK"}


def test_a_forged_link_to_set_a_password_is_invalid(root):
    for uid, token in (("MQ", "set-password"), ("MQ", "chosen"), ("x" * 500, "a-b")):
        answer = Client().get(f"/admin/auth/user/set-password/{uid}/{token}/", follow=True)
        assert answer.status_code in {200, 404}
        assert b"no longer works" in answer.content or answer.status_code == 404


def test_the_global_search_finds_nothing_of_another_account(alice, zebra):
    client = signed_in(alice.members["owner"])

    for query in ({"s": WORD}, {"s": WORD, "extended": "1"}, {"s": str(zebra.channel.pk)}):
        answer = client.get(reverse("admin:search"), query)
        assert WORD not in answer.content.decode().replace(f'"{WORD}"', "")


@pytest.mark.parametrize("is_removed_again", [False, True])
def test_a_user_created_by_one_owner_opens_no_account_of_another_owner(
    alice, bob, is_removed_again
):
    """Alice's owner takes the user name that Bob will want, and chooses the password."""
    signed_in(alice.members["owner"]).post(
        reverse("admin:channels_app_account_change", args=[alice.account.pk]),
        {"do": "add", "username": "carol", "role": "viewer"},
    )
    carol = User.objects.get(username="carol")
    if is_removed_again:
        carol.memberships.all().delete()

    answer = signed_in(bob.members["owner"]).post(
        reverse("admin:channels_app_account_change", args=[bob.account.pk]),
        {"do": "add", "username": "carol", "role": "manager"},
    )

    assert answer.status_code == 400
    assert "a superuser must add them" in answer.content.decode()
    assert not bob.account.memberships.filter(user=carol).exists()
