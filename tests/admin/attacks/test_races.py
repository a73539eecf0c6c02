"""Two members, or a member and a worker, make opposite changes at the same moment."""

import json
from datetime import timedelta
from functools import partial
from threading import Event

import pytest
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from channels_app.accounts.members import account_create, member_remove
from channels_app.accounts.users import user_create
from channels_app.models import ApiKey
from channels_app.webhooks import webhook_delete
from notifications_app.admin.compose.sender import approval_url
from notifications_app.models import Notification
from notifications_app.pipeline import planning
from notifications_app.sends.approvals import NotWaiting
from notifications_app.sends.drafts import draft_save
from notifications_app.sends.schedules import schedule_delete
from notifications_app.sends.templates import template_delete
from subscriptions_app.devices.test_devices import device_add, device_remove
from subscriptions_app.models import Segment
from tests import factories
from tests.admin.attacks.test_tenancy import written
from tests.admin.support import make_root, signed_in, stocked
from tests.api.support import owner_of
from tests.pipeline import support
from tests.pipeline.support import in_threads, until, waiting_sessions

pytestmark = pytest.mark.django_db(transaction=True)

COMPOSE = "/admin/notifications_app/notification/compose/"
TRIES = 5


def test_a_form_confirmed_several_times_at_once_makes_one_notification(alice):
    clients = [signed_in(alice.members[role]) for role in ("sender", "manager", "owner")]
    factories.add_subscriptions(alice.channel, 1)
    review = clients[0].post(COMPOSE, written(alice.channel, step="review"))
    form = written(alice.channel, key=review.context["key"])

    responses = in_threads(
        *(lambda client=client: client.post(COMPOSE, form) for client in clients * 2)
    )

    assert {response.status_code for response in responses} == {302}
    one = Notification.objects.get()
    listing = reverse("admin:notifications_app_notification_changelist")
    own = reverse("admin:notifications_app_notification_change", args=[one.pk])
    assert {response["Location"].partition("?")[0] for response in responses} <= {listing, own}


def test_a_notification_ended_while_it_starts_is_cancelled_or_stopped(alice):
    client = signed_in(alice.members["sender"])
    factories.add_subscriptions(alice.channel, 3)
    for _ in range(TRIES):
        notification = factories.make_notification(alice.channel)
        path = reverse("admin:notification_end", args=[notification.pk])
        response, _ = in_threads(
            lambda path=path: client.post(path), lambda: planning.work(seconds=5)
        )
        assert response.status_code == 302
        status, recipients, *_ = support.counts(notification)
        assert (status, recipients) in {("cancelled", 0), ("processing", 3)}
        notification.refresh_from_db()
        (told,) = [str(each) for each in client.get(response["Location"]).context["messages"]]
        assert ("is stopped" in told) == notification.is_stopped
        assert ("is cancelled" in told) == (status == "cancelled" and not notification.is_stopped)
    support.assert_exact(alice.channel)


@pytest.mark.parametrize("kind", ["notification", "template"])
def test_of_two_simultaneous_changes_of_one_thing_the_second_is_refused(alice, kind):
    """Even if both passed the checks before either of them wrote."""
    clients = [signed_in(alice.members[role]) for role in ("editor", "owner")]
    later = timezone.now() + timedelta(hours=1)
    for number in range(TRIES):
        if kind == "template":
            thing = factories.make_template(alice.channel, f"T{number}", {"body": "x"})
        else:
            thing = factories.make_notification(alice.channel, scheduled_at=later, body="x")
        path = reverse(f"admin:{kind}_edit", args=[thing.pk])
        page = clients[0].get(path)
        form = dict(page.context["form"].inputs()) | {"version": page.context["version"]}
        own = [form | {"name": f"T{number}", "body": text} for text in ("mine", "hers")]

        responses = in_threads(
            *(partial(client.post, path, each) for client, each in zip(clients, own, strict=True))
        )

        assert sorted(response.status_code for response in responses) == [302, 400]
        winner = own[[response.status_code for response in responses].index(302)]
        thing.refresh_from_db()
        body = thing.content["body"] if kind == "template" else thing.body
        assert body == winner["body"]


def test_a_segment_is_either_deleted_or_sent_to(alice):
    sender, manager = signed_in(alice.members["sender"]), signed_in(alice.members["manager"])
    rule = {"field": "platform", "operator": "eq", "value": "web"}
    for number in range(TRIES):
        segment = Segment.objects.create(channel=alice.channel, name=f"all {number}", rule=rule)
        seen = {"key": f"console {number}", "seen": segment.version}
        form = written(alice.channel, segment_id=str(segment.pk), **seen)
        remove = reverse("admin:segment_remove", args=[segment.pk])
        sent, _ = in_threads(
            lambda form=form: sender.post(COMPOSE, form),
            lambda remove=remove: manager.post(remove),
        )
        is_sent = Notification.objects.filter(segment_id=segment.pk).exists()
        assert is_sent == Segment.objects.filter(pk=segment.pk).exists()
        assert sent.status_code == (302 if is_sent else 400)


def test_a_key_revoked_during_its_send_sends_nothing_afterwards(alice):
    manager = signed_in(alice.members["manager"])
    owner = owner_of(alice.channel)
    key = ApiKey.objects.get(channel=alice.channel)
    revoke = reverse("admin:channel_key_revoke", args=[alice.channel.pk, key.pk])

    *sent, revoked = in_threads(
        *(lambda: owner.send({"body": "x"}) for _ in range(4)), lambda: manager.post(revoke)
    )

    assert revoked.status_code == 302
    accepted = [response for response in sent if response.status_code == 202]
    refused = [response for response in sent if response.status_code == 401]
    assert len(accepted) + len(refused) == 4
    assert Notification.objects.count() == len(accepted)
    assert json.loads(owner.send({"body": "x"}).content)["code"] == "revoked_key"


def test_two_owners_who_remove_each_other_leave_one_owner(alice):
    members = reverse("admin:channels_app_account_change", args=[alice.account.pk])
    first = alice.account.memberships.get(role="owner")
    second = alice.account.memberships.get(role="manager")
    for _ in range(TRIES):
        alice.account.memberships.update_or_create(user=first.user, defaults={"role": "owner"})
        alice.account.memberships.update_or_create(user=second.user, defaults={"role": "owner"})
        rows = {each.user_id: each.pk for each in alice.account.memberships.all()}
        removals = [(first.user, second.user_id), (second.user, first.user_id)]
        in_threads(
            *(
                partial(signed_in(by).post, members, {"do": "remove", "membership": rows[of]})
                for by, of in removals
            )
        )
        assert alice.account.memberships.filter(role="owner").exists()


def waiting_for(first, second):
    """The result of `second`, which waits until the transaction of `first` is committed."""
    is_held = Event()

    def hold():
        with transaction.atomic():
            first()
            is_held.set()
            until(waiting_sessions)

    def wait():
        assert is_held.wait(timeout=60)
        return second()

    return in_threads(hold, wait)[1]


@pytest.mark.parametrize("act", ["save", "return"])
def test_what_somebody_else_just_saved_in_a_draft_is_named_and_the_draft_is_not_gone(alice, act):
    writer, colleague = alice.members["writer"], alice.members["owner"]
    draft = factories.make_waiting(alice.channel, writer)
    seen = {"draft": str(draft.pk), "version": str(draft.version)}
    user, url, form, expected = {
        "save": (
            writer,
            reverse("admin:draft_save"),
            written(alice.channel, **seen),
            f"{colleague} has changed this draft.",
        ),
        "return": (
            alice.members["sender"],
            approval_url(draft),
            seen | {"do": "return", "note": "Shorter."},
            str(NotWaiting.detail),
        ),
    }[act]
    save = partial(
        draft_save,
        draft_id=draft.pk,
        version=draft.version,
        channel=alice.channel,
        user=colleague,
        form={"body": "hers"},
    )

    answer = waiting_for(save, partial(signed_in(user).post, url, form, follow=True))

    assert expected in answer.content.decode()


@pytest.mark.parametrize("kind", ["membership", "webhook", "template", "schedule", "device"])
def test_what_somebody_else_just_deleted_is_not_found(alice, kind):
    rows, user = stocked(alice).rows, alice.members["owner"]
    named = {"name": "iPhone", "subscription_id": rows["subscription"].pk}
    device = device_add(channel=alice.channel, user=user, **named)
    member = alice.account.memberships.get(role="viewer")
    own, channel = alice.account.pk, {"channel_id": alice.channel.pk}
    page, arguments, fields, delete = {
        "membership": (
            "channels_app_account_change",
            [own],
            {"do": "role", "membership": member.pk, "role": "sender"},
            partial(member_remove, membership=member),
        ),
        "webhook": (
            "channel_webhook",
            [alice.channel.pk, rows["webhook"].pk],
            {"do": "rotate"},
            partial(webhook_delete, webhook_id=rows["webhook"].pk, **channel),
        ),
        "template": (
            "template_delete",
            [rows["template"].pk],
            {},
            partial(template_delete, template_id=rows["template"].pk, **channel),
        ),
        "schedule": (
            "schedule_act",
            [rows["schedule"].pk],
            {"do": "off"},
            partial(schedule_delete, schedule_id=rows["schedule"].pk, **channel),
        ),
        "device": (
            "channel_devices",
            [alice.channel.pk],
            {"device": device.pk, "writer": ""},
            partial(device_remove, device),
        ),
    }[kind]
    client, url = signed_in(user), reverse(f"admin:{page}", args=arguments)

    assert waiting_for(delete, partial(client.post, url, fields)).status_code == 404


@pytest.mark.parametrize(
    ("page", "field", "create"),
    [
        ("channels_app_account_add", "name", partial(account_create, name="Shop")),
        ("auth_user_add", "username", partial(user_create, username="Shop")),
    ],
)
def test_a_name_that_somebody_else_just_took_is_refused_beside_its_field(page, field, create):
    client = signed_in(make_root())

    response = waiting_for(create, partial(client.post, reverse(f"admin:{page}"), {field: "Shop"}))

    assert response.status_code == 400
    assert [*response.context["form"].errors] == [field]


def test_what_was_sent_since_the_page_was_loaded_stays_sent(alice):
    client = signed_in(alice.members["sender"])
    later = timezone.now() + timedelta(hours=1)
    notification = factories.make_notification(alice.channel, scheduled_at=later)
    page = reverse("admin:notifications_app_notification_change", args=[notification.pk])
    assert ">Cancel</button>" in client.get(page).content.decode()
    Notification.objects.filter(pk=notification.pk).update(scheduled_at=timezone.now())
    support.plan()

    answer = client.post(reverse("admin:notification_stop", args=[notification.pk]), follow=True)

    assert "It had already ended" in answer.content.decode()
    assert support.counts(notification)[0] == "sent"
