"""New credentials that no page checked are checked by a worker, soon after they were stored."""

import json
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from channels_app.models import ProviderCredential, Scope
from channels_app.pauses import credential_check_claim
from channels_app.selectors import credentials_unchecked
from channels_app.services import api_key_issue, provider_credentials_store
from notifications_app import tasks
from notifications_app.pipeline.credential_checks import platforms_with_work
from tests.api.credentials import APPLE, GOOGLE
from tests.pipeline import support
from tests.pipeline.phones import store_apple, store_google


def some_seconds_later(since=timedelta(seconds=6)):
    ProviderCredential.objects.update(updated_at=Now() - since)


def stored(channel, platform):
    return ProviderCredential.objects.get(channel=channel, platform=platform)


def put(client, channel, **config):
    _, key = api_key_issue(channel=channel, scopes=[Scope.MANAGE])
    headers = {"Authorization": f"Key {key}", "X-Channel-ID": str(channel.id)}
    body = json.dumps({"providers_config": config})
    path = f"/channel/{channel.id}/providers"
    return client.put(path, body, content_type="application/json", headers=headers)


def test_the_api_answers_without_a_check_and_a_worker_makes_it(client, channel, fcm):
    answer = put(client, channel, fcm_service_account=json.dumps(GOOGLE))
    assert answer.json() == {"message": "The provider configuration was updated."}
    assert stored(channel, "android").checked_at is None

    some_seconds_later()
    support.tick()
    assert support.waiting("android") == 1
    tasks.check_credentials("android")

    found = stored(channel, "android")
    assert found.is_accepted is False
    assert found.checked_words.startswith("token_refused")


@pytest.mark.parametrize("platform", ["android", "ios"])
def test_what_the_push_service_said_is_kept(channel, fcm, apns, platform):
    store_google(fcm, channel)
    store_apple(apns, channel)
    some_seconds_later()
    tasks.check_credentials(platform)
    assert stored(channel, platform).is_accepted is True

    given = {"fcm_service_account": json.dumps(GOOGLE), "apns_key": json.dumps(APPLE)}
    provider_credentials_store(channel=channel, **given)
    assert stored(channel, platform).checked_at is None
    some_seconds_later()
    tasks.check_credentials(platform)
    assert stored(channel, platform).is_accepted is False
    assert stored(channel, platform).paused_at is None


def test_the_page_on_which_they_were_stored_has_some_seconds_to_check_them(channel, fcm):
    store_google(fcm, channel)
    assert platforms_with_work() == []
    some_seconds_later()
    assert platforms_with_work() == ["android"]


def test_old_credentials_are_left_alone(channel, fcm):
    """They were stored before any were checked, or no worker ran for an hour."""
    store_google(fcm, channel)
    some_seconds_later(timedelta(hours=2))
    support.tick()
    assert support.waiting("android") == 0


def test_each_version_is_checked_by_one_worker(channel, fcm):
    store_google(fcm, channel)
    some_seconds_later()
    one, other = credentials_unchecked().get(), credentials_unchecked().get()

    claims = [credential_check_claim(each) for each in (one, other)]

    assert claims == [True, False]
    assert platforms_with_work() == []


def test_credentials_that_cannot_be_decrypted_do_not_stop_the_others(channel, other_channel, fcm):
    for each in (channel, other_channel):
        store_google(fcm, each)
    ProviderCredential.objects.filter(channel=channel).update(secret_encrypted="x")
    some_seconds_later()

    tasks.check_credentials("android")

    assert stored(channel, "android").is_accepted is None
    assert stored(other_channel, "android").is_accepted is True
