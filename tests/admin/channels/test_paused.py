"""What staff see of a platform whose credentials were refused, and of its tries."""

import pytest
from django.db.models.functions import Now
from django.urls import reverse

from channels_app.models import ProviderCredential
from channels_app.pauses import credential_check_record, credential_retry_claim, platform_pause
from channels_app.selectors import credentials_to_retry
from notifications_app.pipeline import credential_checks
from tests.admin.channels.test_channels import address, check_result, credentials_page, manager
from tests.admin.support import signed_in
from tests.pipeline.phones import store_apple, store_google

WORDS = {"code": "key_refused", "detail": "403 InvalidProviderToken"}
PAUSED = "the push service refused these credentials"


@pytest.fixture
def paused(alice, apns):
    """Alice's iOS credentials, which Apple accepted first and refuses now."""
    key = store_apple(apns, alice.channel)
    assert "the credentials are valid" in check_result(alice, "ios")
    key.behave("revoked")
    own = {"channel_id": alice.channel.pk, "platform": "ios", "version": 1}
    assert platform_pause(**own, **WORDS)
    return key


def clock(at):
    return f">{at:%H:%M} UTC</time>"


@pytest.mark.django_db(transaction=True)
def test_the_page_shows_the_pause_until_a_check_is_accepted(alice, paused):
    shown, checked = credentials_page(alice), check_result(alice, "ios")
    for page in (shown, checked):
        assert PAUSED in page
        assert "the credentials are valid" not in page
    assert "the credentials were rejected" not in shown  # the pause says it
    assert "the credentials were rejected" in checked
    paused.behave("accept")

    page = check_result(alice, "ios")

    assert "the credentials are valid" in page
    assert '<div id="ios-pause" hx-swap-oob="true" hidden></div>' in page.replace("\n", "")
    assert PAUSED not in credentials_page(alice)
    assert ProviderCredential.objects.get().paused_at is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("is_accepted", "says"), [(False, "still rejected"), (None, "no response")]
)
def test_staff_see_when_a_paused_platform_was_and_will_be_tried(alice, paused, is_accepted, says):
    viewer = signed_in(alice.members["viewer"])
    names = ("channel_credentials", "channels_app_channel_change")
    pages = [reverse("admin:index"), *(address(name, alice) for name in names)]
    seen = ProviderCredential.objects.get()
    for page in pages:
        text = viewer.get(page).content.decode()
        assert "Next retry:" in text
        assert clock(seen.retry_at) in text

    ProviderCredential.objects.update(retry_at=Now())
    assert credential_retry_claim(credentials_to_retry().get())
    own = {"channel_id": alice.channel.pk, "platform": "ios", "version": 1}
    credential_check_record(**own, is_accepted=is_accepted, **WORDS)

    seen = ProviderCredential.objects.get()
    for page in pages:
        text = viewer.get(page).content.decode()
        assert f"UTC</time>: {says}. Next retry:" in text
        assert clock(seen.retried_at) in text
        assert clock(seen.retry_at) in text


@pytest.mark.django_db(transaction=True)
def test_a_platform_without_recipients_resumes_by_itself(alice, fcm):
    store_google(fcm, alice.channel)
    own = {"channel_id": alice.channel.pk, "platform": "android", "version": 1}
    platform_pause(**own, **WORDS)
    ProviderCredential.objects.update(retry_at=Now())

    credential_checks.retry_due("android")

    page = manager(alice).get(address("channel_credentials", alice)).content.decode()
    assert PAUSED not in page
    assert "the credentials are valid" in page
