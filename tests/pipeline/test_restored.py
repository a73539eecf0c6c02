"""An older state of the database is restored: what docs/upgrade.md has operators do."""

import re
from datetime import timedelta

from django.conf import settings
from django.db import connection

from notifications_app.models import Notification
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import support
from tests.pipeline.halting import pause, resume

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


def statements_of_the_docs(*, lost_at):
    page = (settings.BASE_DIR / "docs" / "upgrade.md").read_text(encoding="utf-8")
    section = page.partition("\n## Back up and restore\n")[2]
    statements = re.search(r"```sql\n(.*?)```", section, re.DOTALL)[1]
    assert _EXAMPLE_OF_A_LOSS in statements
    return statements.replace(_EXAMPLE_OF_A_LOSS, lost_at.isoformat())
