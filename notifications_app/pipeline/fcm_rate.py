"""Decides from which bucket a channel's calls to FCM are taken.

A service account's JSON may claim any project, and Google's grant proves the account but not the
project. So an account shares the project's bucket only after FCM accepted a message from it for
that project. Until then the channel has a small bucket of its own.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from django.conf import settings

from notifications_app.delivery.registry import ServiceAccount
from notifications_app.delivery.types import Accepted, Outcome
from notifications_app.pipeline.quota import BEGIN, Grant, Quota
from pushsvc.common.endpoints import TOKEN_SERVICES
from pushsvc.common.platforms import Platform

_SERVICE: Final = TOKEN_SERVICES[Platform.ANDROID]

MAX_PROVEN: Final = 1_000

# By channel: the credentials with which FCM accepted a message from this process, in the order of
# the last acceptance. Credentials that are stored later are not equal, even with the same names. A
# channel that was dropped from here proves its account again with its next accepted message.
_proven: OrderedDict[UUID, ServiceAccount] = OrderedDict()


def take(channel_id: UUID, account: ServiceAccount, wanted: int) -> Grant:
    """Takes some or all of `wanted` calls, in one round trip to Redis."""
    rate = settings.FCM_CALLS_PER_MINUTE
    if _proven.get(channel_id) == account:
        return Quota(_SERVICE, rate).take(account.project_id, wanted)
    # It begins full, with as many calls as a new project has, so that no first send waits longer.
    return Quota(f"{_SERVICE}:unproven", rate * BEGIN, begin=1.0).take(str(channel_id), wanted)


def learn(channel_id: UUID, account: ServiceAccount, outcomes: Iterable[Outcome]) -> None:
    """Notes the credentials as proven if an outcome is Accepted. Other outcomes prove nothing,
    because the order in which FCM checks the parts of a call is not documented."""
    if any(isinstance(outcome, Accepted) for outcome in outcomes):
        _proven[channel_id] = account
        _proven.move_to_end(channel_id)
        if len(_proven) > MAX_PROVEN:
            _proven.popitem(last=False)
