"""An older state of the database is restored: what docs/upgrade.md has operators do."""

import re
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from notifications_app.models import Notification
from pushsvc.common.store import sql
from tests import factories
from tests.api.support import owner_of
from tests.pipeline import support
from tests.pipeline.automations import automated, fire, made, waiting
from tests.pipeline.halting import pause, resume
from tests.pipeline.newsfeeds import check, item, primed, rss
from tests.pipeline.test_automation_events import unclicked

HOUR = timedelta(hours=1)
_EXAMPLE_OF_A_LOSS = "2026-11-24 03:00+00"


def test_what_is_done_after_a_restore_keeps_everything_from_being_sent_again(sandbox, channel):
    ((device, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    running, paused = (factories.make_notification(channel) for _ in range(2))
    support.plan()
    pause(paused)
    late = factories.make_notification(channel, scheduled_at=sql.now() - HOUR)
    ahead = factories.make_notification(channel, scheduled_at=sql.now() + HOUR)

    with connection.cursor() as cursor:
        cursor.execute(statements_of_the_docs(lost_at=sql.now()))
    resume(paused)
    support.plan()
    support.deliver()
    support.tick()

    assert device.receipts == []
    for each in (running, paused):
        assert support.counts(each) == ("sent", 1, 0, 1)
        assert support.codes(each) == ["expired"]
    assert Notification.objects.get(pk=late.pk).status == "cancelled"
    assert Notification.objects.get(pk=ahead.pk).status == "pending"


def test_what_automations_and_newsfeeds_sent_after_the_backup_is_not_sent_again(
    sandbox, channel, site
):
    """The hour before the loss is lost."""
    ((device, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    read = factories.make_notification(channel)
    support.plan()
    support.deliver(read)
    ended_at = Now() - 25.5 * HOUR
    Notification.objects.update(finished_at=ended_at, first_hand_over_at=ended_at)
    newsfeed = primed(owner_of(channel), site, item(1))
    automated(channel)
    unclicked(channel)
    factories.subscribe_browsers(sandbox, channel, 1)  # the automation has not sent to it
    assert waiting() == 1
    site.serve(rss(item(2), item(1)))  # the newsfeed has not been checked since
    before = list(device.receipts)

    with connection.cursor() as cursor:
        cursor.execute(statements_of_the_docs(lost_at=sql.now()))
    fire()
    check()

    assert made(channel) == [read]
    assert waiting() == 0
    assert device.receipts == before
    site.serve(rss(item(3), item(2), item(1)))
    check()
    newsfeed.refresh_from_db()
    assert [each.pk for each in made(channel)] == [read.pk, newsfeed.last_notification_id]


def statements_of_the_docs(*, lost_at):
    page = (settings.BASE_DIR / "docs" / "upgrade.md").read_text(encoding="utf-8")
    section = page.partition("\n## Back up and restore\n")[2]
    statements = re.search(r"```sql\n(.*?)```", section, re.DOTALL)[1]
    assert _EXAMPLE_OF_A_LOSS in statements
    return statements.replace(_EXAMPLE_OF_A_LOSS, lost_at.isoformat())
