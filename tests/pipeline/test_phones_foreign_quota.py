"""An account that only claims to belong to a Google project uses up none of its calls."""

import json
from uuid import uuid4

import pytest

from channels_app.services import provider_credentials_store
from notifications_app.delivery.registry import ServiceAccount
from notifications_app.delivery.types import Accepted
from notifications_app.pipeline import fcm_rate
from sandbox.fcm.accounts import new_key_file
from tests import factories
from tests.factories import GOOGLE_PROJECT
from tests.pipeline import phones, support

BURST = 40


@pytest.fixture
def google(fcm, channel, settings, monkeypatch):
    """A project that is granted BURST calls and no more, because Redis's clock stands still."""
    settings.FCM_CALLS_PER_MINUTE = 60 * 10 * BURST
    phones.stop_clock(monkeypatch)
    phones.store_google(fcm, channel)
    phones.prove(fcm, channel)
    return fcm


def store(channel, account):
    provider_credentials_store(channel=channel, fcm_service_account=json.dumps(account))
    channel.refresh_from_db()


def storm(google, channel, account):
    """Makes more calls due than the project is granted, with an account that is refused."""
    store(channel, account)
    factories.subscribe_androids(google, channel, 2 * BURST, "other-shop")
    notification = phones.send(channel, "android")
    assert support.counts(notification) == ("processing", 2 * BURST, 0, 0)
    assert phones.credential(channel).paused_at


def granted_at_once(google, channel):
    """How many calls the project is granted if it has more recipients than that."""
    factories.subscribe_androids(google, channel, BURST + 1)
    notification = phones.send(channel, "android")
    return notification.delivered_count


def test_a_made_up_account_uses_up_nothing(google, channel, other_channel):
    storm(google, other_channel, new_key_file(GOOGLE_PROJECT, google.token_uri))

    assert granted_at_once(google, channel) == BURST


def test_a_genuine_account_of_another_project_uses_up_nothing(google, channel, other_channel):
    own = google.service_account("other-shop")

    storm(google, other_channel, own | {"project_id": GOOGLE_PROJECT})

    assert google.project("other-shop").tokens.receipts  # Google did grant it access tokens
    assert granted_at_once(google, channel) == BURST


def test_a_made_up_account_with_a_valid_ones_address_uses_up_nothing(
    google, channel, other_channel
):
    good = google.service_account(GOOGLE_PROJECT)
    store(channel, good)
    phones.prove(google, channel)
    made_up = new_key_file(GOOGLE_PROJECT, google.token_uri)

    storm(google, other_channel, good | {"private_key": made_up["private_key"]})

    assert granted_at_once(google, channel) == BURST


def test_accounts_that_fcm_accepted_for_the_project_share_its_calls(google, channel, other_channel):
    phones.store_google(google, other_channel)
    phones.prove(google, other_channel)
    factories.subscribe_androids(google, other_channel, 10)

    assert phones.send(other_channel, "android").delivered_count == 10
    assert granted_at_once(google, channel) == BURST - 10


def test_the_proof_of_one_account_does_not_count_for_the_next(google, channel, other_channel):
    storm(google, channel, new_key_file(GOOGLE_PROJECT, google.token_uri))

    phones.store_google(google, other_channel)
    phones.prove(google, other_channel)

    assert granted_at_once(google, other_channel) == BURST


def test_an_account_without_proof_has_the_starting_rate(google, channel, other_channel):
    """Otherwise many channels of a project, none of which ever reached a device, would flood it."""
    granted_at_once(google, channel)  # so the project has none left for an account with proof
    phones.store_google(google, other_channel)
    factories.subscribe_androids(google, other_channel, BURST + 10)

    notification = phones.send(other_channel, "android")

    assert support.counts(notification) == ("processing", BURST + 10, BURST, 0)


def test_a_worker_remembers_the_accounts_that_fcm_accepted_last(google):
    account = ServiceAccount(GOOGLE_PROJECT, "push@shop.example", "", "1", version=1)
    first, second, *others = (uuid4() for _ in range(fcm_rate.MAX_PROVEN + 1))
    for channel_id in (first, second, *others[1:], first, others[0]):
        fcm_rate.learn(channel_id, account, [Accepted()])

    of_project = fcm_rate.take(first, account, 2 * BURST).granted

    assert of_project == BURST
    assert fcm_rate.take(others[-1], account, 1).granted == 0
    assert fcm_rate.take(second, account, 1).granted == 1  # of its own calls
