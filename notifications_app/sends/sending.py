"""Sends over the API: with or without a template, once for each key, or as a dry run."""

from typing import Any

from channels_app.models import Channel
from notifications_app.sends.dry_run import DryRun, notification_dry_run
from notifications_app.sends.schema import read_send
from notifications_app.sends.services import Acceptance, accept_once, notification_accept
from notifications_app.sends.templates import names_template, with_template


def send(*, channel: Channel, body: Any, idempotency_key: str | None = None) -> Acceptance | DryRun:
    """Accepts the send in `body` (parsed JSON), or makes a dry run if the body says so.

    With a key, safe to repeat. Raises TemplateNotFound, DRF's ValidationError, and what
    `notification_accept` and `notification_dry_run` raise.
    """
    if names_template(body) and idempotency_key is not None and not body.get("dry_run"):
        # The key is read before the template, which may have been deleted since the first answer.
        return accept_once(
            channel=channel,
            body=body,
            idempotency_key=idempotency_key,
            accept=lambda: _accept_copy(channel, body),
        )
    request, is_dry_run = read_send(with_template(channel.id, body))
    if is_dry_run:
        return notification_dry_run(channel=channel, request=request)
    return notification_accept(
        channel=channel, request=request, body=body, idempotency_key=idempotency_key
    )


def _accept_copy(channel: Channel, body: Any) -> Acceptance:
    request, _ = read_send(with_template(channel.id, body))
    return notification_accept(channel=channel, request=request, body=body)
