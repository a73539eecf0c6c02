"""Members with crafted forms: for another account, above their role, and after a demotion."""

from threading import Event

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils.http import int_to_base36

from channels_app.accounts.users import user_change
from channels_app.models import Account, ApiKey, Channel, Membership, Role
from notifications_app.models import Automation, Draft, Notification, Schedule
from pushsvc.common.errors import Invalid
from pushsvc.common.store import sql
from tests.admin.console.test_scope import addresses, everything_of
from tests.admin.support import WORD, signed_in, stocked
from tests.factories import add_crowd
from tests.pipeline.support import in_threads, until, waits_for

COMPOSE = "admin:notification_compose"


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


def test_a_viewer_who_owns_another_account_stays_a_viewer_in_this_one(alice, zebra):
    """An owner elsewhere passes every check that asks only for a role `anywhere`."""
    owner = alice.members["owner"]
    Membership.objects.create(account=zebra.account, user=owner, role=Role.VIEWER)
    client, before = signed_in(owner), everything_of(zebra)
    fields = written(zebra.channel) | {"do": "add", "username": "mole", "role": "owner"}
    fields |= {"name": "mole", "scopes": ["manage"], "account": str(zebra.account.pk)}
    fields |= {"platform": "web", "rule": '{"field": "platform", "operator": "eq", "value": "web"}'}

    for name, path in addresses(zebra):
        if name not in {"logout", "login", "account_login"}:
            response = client.post(path, fields)
            assert response.status_code in {200, 302, 400, 403, 404, 405}, (name, path)

    assert everything_of(zebra) == before
    assert not User.objects.filter(username="mole").exists()
    assert Channel.objects.filter(account=zebra.account).count() == 1
    assert not ApiKey.objects.filter(name="mole", channel=zebra.channel).exists()


@pytest.mark.parametrize("halt", ["paused_at", "stopped_at", ""])
def test_a_writer_sets_nothing_in_motion_on_any_page(alice, halt):
    """Starting, changing, resuming and ending anything that sends need a sender."""
    stocked(alice)
    if halt:
        Notification.objects.update(**{halt: Now()})
    Schedule.objects.update(is_enabled=False)
    Automation.objects.update(is_enabled=False)
    client = signed_in(alice.members["writer"])
    before = [row for row in everything_of(alice) if "'sent_version'" not in row]
    fields = written(alice.channel) | {"name": WORD, "note": "x", "version": "1", "seen": ""}
    notification = alice.rows["notification"]
    fields |= {"body": "Mine", "version": notification.pause_version, "title": "Mine"}
    fields |= {
        "test_device": str(alice.rows["subscription"].pk),
        "occurs_at": "2027-01-01T09:00:00Z",
    }

    # Only the pages of notifications depend on whether the notification is halted.
    for name, path in addresses(alice):
        if halt and "notification" not in name:
            continue
        if name not in {"logout", "login", "account_login", "own_alerts", "template_use"}:
            for do in ("approve", "return", "on", "off", "skip", "unskip", "delete", "add"):
                client.post(path, fields | {"do": do})

    after = [row for row in everything_of(alice) if "'sent_version'" not in row]
    assert after == before
    assert Notification.objects.count() == 1
    assert Draft.objects.get(pk=alice.rows["draft"].pk).is_waiting


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


@pytest.mark.parametrize("becomes", [Role.VIEWER, None])
def test_a_member_demoted_between_review_and_confirmation_sends_nothing(alice, becomes):
    add_crowd(alice.channel, 1)
    sender = alice.members["sender"]
    client = signed_in(sender)
    review = client.post(reverse(COMPOSE), written(alice.channel, step="review"))
    membership = Membership.objects.filter(user=sender)
    membership.update(role=becomes) if becomes else membership.delete()

    response = client.post(reverse(COMPOSE), written(alice.channel, key=review.context["key"]))

    assert response.status_code in {403, 404}
    assert not Notification.objects.exists()


def test_a_former_superuser_has_no_rights(root, zebra):
    client = signed_in(root)
    User.objects.filter(pk=root.pk).update(is_superuser=False)

    for name, path in addresses(zebra):
        if name != "logout":
            assert WORD not in client.get(path).getvalue().decode(), (name, path)


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


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("lost", ["is_superuser", "is_active"])
def test_a_superuser_who_loses_their_rank_meanwhile_cannot_give_it_to_themselves(root, lost):
    other = User.objects.create_superuser("other", password="x")
    change = {"user": other, "email": "", "is_active": True, "is_superuser": True}

    def keep_own_rank():
        with pytest.raises(Invalid):
            user_change(by=other, **change)

    with waits_for(lambda: user_change(by=root, **change | {lost: False}), keep_own_rank):
        pass

    assert list(User.objects.filter(is_superuser=True, is_active=True)) == [root]


def _has_ended_or_waits(pid):
    """Judged by its database session. A call that was refused at once is idle."""
    asked = "SELECT wait_event_type, query FROM pg_stat_activity WHERE pid = %(pid)s"
    found = sql.rows(asked, {"pid": pid})
    return not found or found[0][0] == "Lock" or found[0][1] in {"COMMIT", "ROLLBACK"}


def test_a_forged_link_to_set_a_password_is_invalid(root):
    own = int_to_base36(root.pk)
    for forged in (f"{own}-set-password", f"{own}-a-b", "x" * 500 + "-a-b", "z" * 13 + "-a-b"):
        response = Client().get(f"/admin/auth/user/set-password/{forged}/", follow=True)
        assert response.status_code == 200
        assert b"no longer works" in response.content


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

    response = signed_in(bob.members["owner"]).post(
        reverse("admin:channels_app_account_change", args=[bob.account.pk]),
        {"do": "add", "username": "carol", "role": "manager"},
    )

    assert response.status_code == 400
    assert "A superuser must add them" in response.content.decode()
    assert not bob.account.memberships.filter(user=carol).exists()
