"""Rows as the services make them, with what a test does not care about filled in."""

from typing import Any

from channels_app.models import Channel, Scope
from channels_app.services import api_key_issue, channel_create


def make_channel(name: str = "Alice's shop", **fields: Any) -> Channel:
    """A channel with its VAPID key; `fields` are set as they are given."""
    channel = channel_create(name=name)
    for field, value in fields.items():
        setattr(channel, field, value)
    channel.save()
    return channel


def make_key(channel: Channel, *, scopes: list[str] | None = None) -> str:
    """The text of a new key, with all scopes where none are named."""
    _, text = api_key_issue(channel=channel, scopes=scopes or Scope.values)
    return text
