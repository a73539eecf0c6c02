"""One endpoint is one subscription, in whatever form a device writes it."""

import pytest

from subscriptions_app.models import Subscription
from tests import factories
from tests.api.devices import HERE, THERE, subscribed
from tests.api.support import owner_of
from tests.api.test_preferences import chosen
from tests.factories import browser, make_channel

FORMS = [
    "https://FCM.GoogleAPIs.com/fcm/send/here",
    "https://fcm.googleapis.com:443/fcm/send/here",
    "https://fcm.googleapis.com/%66cm/send/h%65re",
    "HTTPS://fcm.googleapis.com:/fcm/send/here",
]

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return owner_of(make_channel())


@pytest.mark.parametrize("form", FORMS)
def test_a_browser_that_writes_its_endpoint_otherwise_keeps_its_subscription(alice, form):
    body = browser(HERE)
    first = subscribed(alice, body)

    again = subscribed(alice, body | {"endpoint": form}, status=200)

    assert (again.id, again.address) == (first.id, HERE)


@pytest.mark.parametrize("form", FORMS)
def test_a_previous_endpoint_may_be_written_otherwise(alice, form):
    first = subscribed(alice, browser(HERE))
    moved = browser(THERE, previous_endpoint=form, previous_auth=first.auth)
    assert subscribed(alice, moved, status=200).id == first.id


@pytest.mark.parametrize("form", FORMS)
def test_an_endpoint_may_be_written_otherwise_to_unsubscribe_it(alice, form):
    subscribed(alice, browser(HERE))
    assert alice.device("/unsubscribe", {"endpoint": form}).status_code == 200
    assert Subscription.objects.get().expired_code == "unsubscribed"


@pytest.mark.parametrize("form", FORMS)
def test_choices_belong_to_the_endpoint_in_every_form(alice, form):
    factories.make_category(alice.channel)
    subscribed(alice, browser(HERE))
    chosen(alice, {"offers": True}, endpoint=form)
    assert Subscription.objects.get().choices == {"offers": True}
