"""A schedule, and requests about it."""

from datetime import timedelta

from django.utils import timezone

from notifications_app.models import Schedule

SEND = {"title": "Your week", "body": "What you missed.", "data": {"z": "1", "a": "2"}}
WEEKLY = {"rule": "FREQ=WEEKLY;BYDAY=MO,TH", "at": ["09:00"], "timezone": "Europe/Berlin"}
GIVEN = {"name": "Digest", "notification": SEND, "recurrence": WEEKLY}


def path(owner, *parts):
    return "/".join([f"/channel/{owner.channel.id}/schedules", *map(str, parts)])


def created(owner, body=GIVEN, **headers):
    response = owner.call("POST", path(owner), body, **headers)
    assert response.status_code == 201, response.content
    return response.json()


def recurring(**changes):
    return GIVEN | {"recurrence": WEEKLY | changes}


def sending(**changes):
    return GIVEN | {"notification": SEND | changes}


def due(owner, body=GIVEN, *, ago=timedelta(), **fields):
    """A schedule whose next occurrence was `ago`, on a whole minute of each day."""
    at = (timezone.now() - ago).replace(second=0, microsecond=0)
    daily = {
        "rule": "FREQ=DAILY",
        "at": [f"{at:%H:%M}"],
        "timezone": "UTC",
        "starts_on": f"{at - timedelta(days=3):%Y-%m-%d}",
    }
    made = created(owner, {**body, "recurrence": daily | fields})
    schedule = Schedule.objects.get(pk=made["schedule_id"])
    Schedule.objects.filter(pk=schedule.pk).update(next_at=at)
    schedule.refresh_from_db()
    return schedule
