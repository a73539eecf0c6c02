"""Browsers at Apple get messages that they can show without our worker."""

import json

from django.db import connection
from django.test.utils import CaptureQueriesContext

from subscriptions_app.models import Subscription
from tests import factories
from tests.pipeline import phones, support


def subscribe(sandbox, channel, *services):
    """A browser at each of these push services, for which the sandbox stands."""
    browsers = factories.subscribe_browsers(sandbox, channel, len(services))
    for (_, row), service in zip(browsers, services, strict=True):
        Subscription.objects.filter(pk=row.pk).update(push_service=service)
    return [device for device, _ in browsers]


def received(device):
    receipt = device.receipts[-1]
    return json.loads(receipt.plaintext), receipt.declared


def test_only_browsers_at_apple_get_a_declarative_message(sandbox, channel):
    apple, mozilla = subscribe(sandbox, channel, "apple", "mozilla")

    notification = support.send(channel, url="https://shop.example/bread")

    assert support.counts(notification) == ("sent", 2, 2, 0)
    fields, shown = received(apple)
    assert (shown.navigate, shown.body) == ("https://shop.example/bread", "Fresh bread")
    assert shown.title == channel.name
    others, none = received(mozilla)
    assert none is None
    assert fields.keys() - others.keys() == {"web_push", "mutable", "notification"}
    assert {name: fields[name] for name in others} | {"token": others["token"]} == others


def test_without_a_url_the_channels_site_is_opened_and_without_both_the_form_is_the_old_one(
    sandbox, channel
):
    (apple,) = subscribe(sandbox, channel, "apple")

    support.send(channel)
    assert received(apple)[1] is None

    channel.site_url = "https://shop.example/"
    channel.save()
    support.send(channel)
    shown = received(apple)[1]
    assert (shown.title, shown.navigate) == ("shop.example", "https://shop.example/")


def test_each_recipient_at_apple_gets_its_own_language_and_values(sandbox, channel):
    devices = subscribe(sandbox, channel, "apple", "apple")
    languages = zip(devices, ("de", "en"), strict=True)
    for device, language in languages:
        own = {"language": language, "attributes": {"name": f"Ida-{language}"}}
        Subscription.objects.filter(address=device.endpoint).update(**own)
    extras = {"personalize": True, "translations": {"de": {"title": "Hallo {{ name }}"}}}

    phones.send(
        channel, "web", title="Hi {{ name }}", url="https://shop.example/?{{ name }}", extras=extras
    )

    found = [received(device)[1] for device in devices]
    assert [(each.title, each.navigate) for each in found] == [
        ("Hallo Ida-de", "https://shop.example/?Ida-de"),
        ("Hi Ida-en", "https://shop.example/?Ida-en"),
    ]
    assert found[0].data["token"] != found[1].data["token"]


def test_a_message_that_grows_too_large_for_the_form_still_arrives(sandbox, channel):
    apple, mozilla = subscribe(sandbox, channel, "apple", "mozilla")

    notification = support.send(channel, url="https://shop.example/", data={"k": "x" * 3_000})

    assert support.counts(notification) == ("sent", 2, 2, 0)
    assert received(apple)[1] is None
    assert received(apple)[0]["data"] == received(mozilla)[0]["data"]


def test_only_a_pass_at_apple_reads_the_channel(sandbox, channel):
    reads = []
    for service in ("mozilla", "apple"):
        Subscription.objects.update(push_service=service)
        subscribe(sandbox, channel, service)
        phones.plan(channel, "web")
        with CaptureQueriesContext(connection) as captured:
            support.deliver()
        statements = [each["sql"] for each in captured]
        reads.append(sum('FROM "channels_app_channel"' in each for each in statements))
    assert reads == [0, 1]
