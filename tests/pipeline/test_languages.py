"""Each device gets the texts of its language; a plain send reads no language."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from subscriptions_app.models import Subscription
from tests import factories
from tests.pipeline import phones, support

TRANSLATIONS = {
    "de": {"title": "Brot", "body": "Frisches Brot"},
    "pt": {"title": "Pão"},
    "pt-BR": {"body": "Pão fresquinho"},
}


def speak(subscription, *, language="", attribute=None):
    attributes = {} if attribute is None else {"language": attribute}
    Subscription.objects.filter(pk=subscription.pk).update(language=language, attributes=attributes)


def texts(device):
    shown = json.loads(device.receipts[-1].plaintext)
    return shown["title"], shown["body"]


def test_each_browser_gets_the_texts_of_its_language(sandbox, channel):
    spoken = [
        ({"language": "pt-BR"}, ("Pão", "Pão fresquinho")),
        ({"language": "pt-PT"}, ("Pão", "Fresh bread")),
        ({"attribute": "de-AT"}, ("Brot", "Frisches Brot")),
        ({"language": "fr", "attribute": "de"}, ("Bread", "Fresh bread")),
        ({"attribute": 17}, ("Bread", "Fresh bread")),
        ({}, ("Bread", "Fresh bread")),
    ]
    browsers = factories.subscribe_browsers(sandbox, channel, len(spoken))
    for (_, subscription), (language, _) in zip(browsers, spoken, strict=True):
        speak(subscription, **language)

    extras = {"translations": TRANSLATIONS}
    notification = phones.send(channel, "web", title="Bread", extras=extras)

    assert support.counts(notification) == ("sent", 6, 6, 0)
    assert [texts(device) for device, _ in browsers] == [expected for _, expected in spoken]


def test_phones_get_the_texts_of_their_language(fcm, apns, channel):
    phones.store_google(fcm, channel)
    phones.store_apple(apns, channel)
    ((android, its),) = factories.subscribe_androids(fcm, channel)
    ((iphone, own),) = factories.subscribe_iphones(apns, channel)
    speak(its, language="de")
    speak(own, language="de-CH")

    phones.send(channel, "android", "ios", title="Bread", extras={"translations": TRANSLATIONS})

    assert android.receipts[0].message["notification"] == {"title": "Brot", "body": "Frisches Brot"}
    alert = json.loads(iphone.receipts[0].payload)["aps"]["alert"]
    assert alert == {"title": "Brot", "body": "Frisches Brot"}


def test_a_language_that_changes_while_the_message_waits_counts(sandbox, channel):
    ((device, subscription),) = factories.subscribe_browsers(sandbox, channel, 1)
    notification = phones.plan(channel, "web", title="Bread", extras={"translations": TRANSLATIONS})
    speak(subscription, language="de")

    support.deliver()

    assert support.counts(notification)[0] == "sent"
    assert texts(device) == ("Brot", "Frisches Brot")


@pytest.mark.parametrize(
    ("extras", "reads"),
    [(None, 0), ({"web": {"tag": "x"}}, 0), ({"translations": TRANSLATIONS}, 1)],
)
def test_only_a_translated_send_reads_languages(sandbox, channel, extras, reads):
    factories.subscribe_browsers(sandbox, channel, 2)
    phones.plan(channel, "web", extras=extras)

    with CaptureQueriesContext(
        connection,
    ) as captured:
        support.deliver()

    statements = [
        each["sql"] for each in captured if "subscriptions_app_subscription" in each["sql"]
    ]
    assert len([each for each in statements if "p256dh" in each]) == 1
    assert len([each for each in statements if "asked_language" in each]) == reads
