"""Erases a person from everything that the service stores."""

from uuid import UUID

from channels_app.feeds import making_stop
from channels_app.models import Channel
from channels_app.webhooks import person_remove
from notifications_app.models import Target
from subscriptions_app.models import Subscription
from subscriptions_app.people.services import person_erase


def person_forget(*, channel: Channel, external_id: str) -> int:
    """Erases the person. Returns how many devices the person had. Raises NotFound, also if the
    person was already erased."""
    return person_erase(
        channel=channel,
        external_id=external_id,
        also=lambda: _others_forget(channel.pk, external_id),
    )


def _others_forget(channel_id: UUID, external_id: str) -> int:
    making_stop(channel_id)
    told = person_remove(channel_id, external_id)
    return told + _targets_forget(channel_id, external_id)


def _targets_forget(channel_id: UUID, external_id: str) -> int:
    devices = Subscription.objects.filter(
        channel_id=channel_id, person__external_id=external_id, person__channel_id=channel_id
    )
    return Target.objects.anonymize(
        channel_id=channel_id,
        external_id=external_id,
        subscription_ids=devices.values_list("id", flat=True),
    )
