"""Managers create a channel, store its credentials, and issue keys."""

import json
import re
import urllib.request
from urllib.error import HTTPError

from playwright.sync_api import expect

from channels_app.models import ApiKey, Channel
from sandbox.apns.devices import DEFAULT_TEAM, DEFAULT_TOPIC


def tab(house, name):
    return f"/admin/channels_app/channel/{house.channel.pk}/{name}/"


def section(page, platform):
    return page.get_by_role("region", name=re.compile(f"^{platform}"))


def read_channel(console, house, key):
    """The status of the API's answer."""
    headers = {"Authorization": f"Key {key}"}
    path = f"{console.address}/channel/{house.channel.pk}"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(path, headers=headers), timeout=20
        ) as it:
            return it.status
    except HTTPError as error:
        return error.code


def test_a_new_channel_shows_the_snippet_for_a_site(console, alice, manager):
    page = console.open("/admin/channels_app/channel/", manager)
    page.get_by_role("link", name="New channel").click()
    page.get_by_label("Name").fill("Alice's news")
    page.get_by_label("Contact for push services").fill("mailto:alice@example.com")
    page.get_by_role("button", name="Create the channel").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Alice's news")
    made = Channel.objects.get(account=alice.account, name="Alice's news")
    assert made.account == alice.account
    expect(page.locator("#snippet-page")).to_contain_text(str(made.pk))
    expect(page.locator("#snippet-page")).to_contain_text(console.address)


def test_pasted_google_credentials_are_recognised_and_checked(console, alice, manager, google):
    account = google.service_account("alices-shop")
    page = console.open(tab(alice, "credentials"), manager)
    android = section(page, "Android")

    android.get_by_label("Service account (JSON)").fill(json.dumps(account))
    android.get_by_role("button", name="Store").click()

    expect(android.locator(".ps-facts")).to_contain_text("alices-shop")
    assert account["private_key"].splitlines()[1] not in page.content()
    expect(android.get_by_text("the credentials are valid")).to_be_visible()
    google.revoke(account)
    google.expire_tokens("alices-shop")
    android.get_by_role("button", name="Check credentials").click()
    expect(android.get_by_text("the credentials were rejected")).to_be_visible()


def test_an_uploaded_apple_key_is_recognised_and_checked(console, alice, manager, apple):
    given = apple.key(DEFAULT_TEAM, DEFAULT_TOPIC).credential
    page = console.open(tab(alice, "credentials"), manager)
    ios = section(page, "iOS")

    file = {"name": "AuthKey.p8", "mimeType": "text/plain", "buffer": given["key"].encode()}
    ios.get_by_label("Or upload the file").set_input_files(file)
    ios.get_by_label("Key id").fill(given["key_id"])
    ios.get_by_label("Team id").fill(given["team_id"])
    ios.get_by_label("Topic (bundle id)").fill(given["topic"])
    ios.get_by_label("Environment").select_option(given["environment"])
    ios.get_by_role("button", name="Store").click()

    expect(ios.locator(".ps-facts")).to_contain_text(given["key_id"])
    expect(ios.locator(".ps-facts")).to_contain_text(given["topic"])
    ios.get_by_role("button", name="Check credentials").click()
    expect(ios.get_by_text("the credentials are valid")).to_be_visible()


def test_a_key_is_shown_once_works_and_is_rejected_after_it_was_revoked(console, alice, manager):
    page = console.open(
        tab(alice, "keys"), manager, permissions=["clipboard-read", "clipboard-write"]
    )
    page.get_by_label("Name").fill("Shop backend")
    page.get_by_role("button", name="Issue").click()
    text = page.locator("#issued-key").inner_text()

    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == text
    assert read_channel(console, alice, text) == 200
    page.reload()  # reloading issues no second key
    assert text not in page.content()
    expect(page.get_by_role("row", name="Shop backend")).to_contain_text("valid")

    revoke = page.get_by_role("button", name="Revoke")
    page.once("dialog", lambda asked: asked.dismiss())
    revoke.click()
    page.reload()
    assert read_channel(console, alice, text) == 200
    page.once("dialog", lambda asked: asked.accept())
    revoke.click()
    expect(page.get_by_role("row", name="Shop backend")).to_contain_text("revoked")
    assert read_channel(console, alice, text) == 401
    assert ApiKey.objects.get(channel=alice.channel).revoked_at is not None
