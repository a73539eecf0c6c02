"""Changes what a channel's sends use unless they say otherwise."""

from uuid import UUID

from django.db import transaction

from channels_app import audit
from channels_app.models import Channel
from channels_app.selectors import recent_forget


@transaction.atomic
def delivery_settings_replace(
    *, channel_id: UUID, timezone: str, rate_per_minute: int | None, category_required: bool
) -> Channel:
    """Replaces all delivery settings. `timezone`: a name in tzdata's spelling. `rate_per_minute`:
    for sends that name no rate and start from now on. Other processes may use the old settings for
    another second. Safe to repeat."""
    channel = Channel.objects.select_for_update(no_key=True).get(pk=channel_id)
    before = audit.fields_of(channel)
    values = {
        "timezone": timezone,
        "rate_per_minute": rate_per_minute,
        "category_required": category_required,
    }
    for name, value in values.items():
        setattr(channel, name, value)
    channel.save(update_fields=list(values))
    audit.record(channel, audit.Action.UPDATE, before, audit.fields_of(channel))
    transaction.on_commit(recent_forget)
    return channel
