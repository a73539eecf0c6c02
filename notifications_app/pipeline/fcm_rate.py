"""Which bucket a channel's calls to FCM are taken from.

A service account's JSON may claim any project, and a grant of Google's proves the account but not
the project. So an account shares the project's bucket only once FCM took a message of it for that
project; until then the channel has a small bucket of its own.
"""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from django.conf import settings

from notifications_app.delivery.registry import ServiceAccount
from notifications_app.delivery.types import Accepted, Outcome
from pushsvc.common.endpoints import TOKEN_SERVICES
from pushsvc.common.platforms import Platform
from pushsvc.common.store.quota import BEGIN, Grant, Quota

_SERVICE: Final = TOKEN_SERVICES[Platform.ANDROID]

# By channel: the credentials with which this process had a message taken. Others that are stored
# later, by the same name or not, are not equal to them.
_proven: dict[UUID, ServiceAccount] = {}


def take(channel_id: UUID, account: ServiceAccount, wanted: int) -> Grant:
    """Some or all of `wanted` calls, in one round trip to Redis."""
    rate = settings.FCM_CALLS_PER_MINUTE
    if _proven.get(channel_id) == account:
        return Quota(_SERVICE, rate).take(account.project_id, wanted)
    # As much at once as a project that begins: no first send waits because of it.
    return Quota(f"{_SERVICE}:unproven", rate * BEGIN, begin=1.0).take(str(channel_id), wanted)


def learn(channel_id: UUID, account: ServiceAccount, outcomes: Iterable[Outcome]) -> None:
    """Only a message that FCM took proves the right to send: in which order it checks the rest of a
    call is not documented."""
    if any(isinstance(outcome, Accepted) for outcome in outcomes):
        _proven[channel_id] = account
