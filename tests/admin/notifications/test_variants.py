"""The variants of a notification on its page: their figures, their test, and who wins."""

from datetime import timedelta

import pytest
from auditlog.models import LogEntry
from django.utils import timezone

from notifications_app.models import Notification, VariantCount
from notifications_app.pipeline import deciding
from notifications_app.reporting.details import details_of
from tests.admin.notifications.test_actions import address, now, page_of, posted, running
from tests.admin.support import signed_in
from tests.factories import make_plan

TEST = {"share": 20, "minutes": 120, "metric": "clicked", "inconclusive": "hold"}
VARIANTS = [{"name": "short", "title": "Sale", "weight": 1}, {"name": "long", "weight": 1}]
CHOOSE = "Choose as winner"


def in_test(channel, **fields):
    ends = timezone.now() + timedelta(hours=1)
    own = {"test": TEST, "decides_at": ends, "extras": {"variants": VARIANTS}}
    notification = running(channel, **own | fields)
    make_plan(notification, release_at=ends, part=1, bucket_from=2_000, bucket_to=10_000)
    for number, clicked in enumerate((11, 33)):
        counts = {"recipients": 55 + number, "delivered": 44, "received": 40, "clicked": clicked}
        VariantCount.objects.create(notification=notification, variant=number, **counts)
    return notification


def shown(client, notification):
    return " ".join(client.get(page_of(notification)).content.decode().split())


def test_the_page_shows_what_is_tested_with_the_figures_of_the_api(viewer, alice):
    notification = in_test(alice.channel)

    page = shown(viewer, notification)

    assert "20 % of the audience get one of the variants at once" in page
    assert "after 2 h, by clicks. If the numbers say nothing, the test waits" in page
    assert "To be decided <time" in page
    assert CHOOSE not in page
    for each in details_of(channel_id=alice.channel.pk, notification_id=notification.pk).variants:
        row = page.partition(f'<th scope="row">{each.name}')[2].partition("</tr>")[0]
        found = [cell.partition(">")[2].split()[0] for cell in row.split("<td")[1:]]
        low, high = each.interval("clicked")
        assert found == [
            *(f"{each.recipients}</td>", f"{each.delivered}</td>"),
            *(str(each.received), str(each.clicked)),
        ]
        assert f"{each.clicked / each.delivered:.1%}".replace("%", " %") in row
        assert f"{100 * low:.1f} % to {100 * high:.1f} %" in row


def test_a_sender_chooses_the_winner_once(sender, alice):
    notification = in_test(alice.channel)
    assert shown(sender, notification).count(f"{CHOOSE}<") == 2

    page = posted(sender, "winner", notification, variant="long")

    assert "The rest of the audience gets “long”." in page
    assert "Decided for “long”" in page
    assert "because somebody chose it" in page
    assert CHOOSE not in page
    entry = LogEntry.objects.filter(object_pk=str(notification.pk)).latest("id")
    assert entry.actor == alice.members["sender"]
    assert "choice" in str(entry.changes["decision"])
    again = posted(sender, "winner", notification, variant="short")
    assert "already decided for another variant" in again
    assert now(notification).winner == 1


@pytest.mark.parametrize(
    ("fields", "name", "words"),
    [
        ({"test": None, "decides_at": None}, "short", "This notification has no test."),
        ({"decides_at": None, "started_at": None, "status": "pending"}, "short", "has not begun"),
        ({}, "other", "has no such variant"),
        ({}, "", "has no such variant"),
    ],
)
def test_what_cannot_be_chosen_is_said(sender, alice, fields, name, words):
    notification = in_test(alice.channel, **fields)

    assert words in posted(sender, "winner", notification, variant=name)
    assert now(notification).winner is None


def test_a_test_on_hold_asks_for_a_choice_and_the_decision_reloads_the_page(sender, alice):
    notification = in_test(alice.channel)
    progress, before = address("progress", notification), {"seen": "processing"}
    assert "HX-Refresh" not in sender.get(progress, before)
    Notification.objects.filter(pk=notification.pk).update(decides_at=timezone.now())

    deciding.decide(notification.pk)

    assert "On hold:" in shown(sender, notification)
    assert sender.get(progress, before)["HX-Refresh"] == "true"
    Notification.objects.filter(pk=notification.pk).update(decides_at=timezone.now())
    deciding.decide(notification.pk)
    page = shown(sender, notification)
    assert "Decided for “long”" in page
    assert "because its rate was the highest, though the difference is not certain" in page


def test_only_those_who_may_send_choose(alice):
    notification = in_test(alice.channel)
    client = signed_in(alice.members["writer"])

    assert CHOOSE not in shown(client, notification)
    refused = client.post(address("winner", notification), {"variant": "long"})
    assert refused.status_code == 403
    assert now(notification).winner is None
