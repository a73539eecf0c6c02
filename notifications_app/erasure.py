"""Erases a person from everything that the service stores."""

from uuid import UUID

from django.db.models import Subquery

from channels_app.feeds import making_stop
from channels_app.models import Channel
from channels_app.webhooks import person_remove
from notifications_app.models import Target
from notifications_app.pipeline.contacts import contacts_forget
from notifications_app.pipeline.followers import followers_forget
from subscriptions_app.models import Person, Subscription
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
    keys, devices = _keys(channel_id, external_id), _devices(channel_id, external_id)
    told += followers_forget(channel_id, keys=keys, subscription_ids=devices)
    told += _targets_forget(channel_id, external_id)
    return told + contacts_forget(channel_id, keys)


def _targets_forget(channel_id: UUID, external_id: str) -> int:
    return Target.objects.anonymize(
        channel_id=channel_id,
        external_id=external_id,
        subscription_ids=_devices(channel_id, external_id),
    )


def _keys(channel_id: UUID, external_id: str) -> list[UUID]:
    """Of contacts: the person, and the devices from the time before they were linked."""
    person = Person.objects.filter(channel_id=channel_id, external_id=external_id)
    return [*person.values_list("id", flat=True), *_devices(channel_id, external_id)]


def _devices(channel_id: UUID, external_id: str) -> list[UUID]:
    # By the person alone. Otherwise PostgreSQL might read the whole channel, if its statistics are
    # from the time before it had devices.
    person = Person.objects.filter(channel_id=channel_id, external_id=external_id)
    own = Subscription.objects.filter(person=Subquery(person.values("id")))
    return list(own.values_list("id", flat=True))
