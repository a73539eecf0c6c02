"""The pages of a channel: creating it, its settings, credentials, keys, and who may use them."""

import json
import re
from html import escape, unescape

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings
from django.urls import reverse

from channels_app import services
from channels_app.models import ApiKey, Channel, ProviderCredential
from channels_app.pauses import credential_check_record
from channels_app.services import provider_credentials_store
from tests.admin.support import signed_in, submit
from tests.api.credentials import APPLE, GOOGLE, pem
from tests.factories import add_crowd, make_sent_notification
from tests.pipeline.phones import store_apple, store_google

PAGES = [
    "channels_app_channel_change",
    "channel_credentials",
    "channel_keys",
    "channel_vapid",
    "channel_snippet",
    "channel_prompt",
    "channel_settings",
]


WEAK = pem(rsa.generate_private_key(65537, 1024))  # noqa: S505 - to be refused


def address(name, house, *more):
    return reverse(f"admin:{name}", args=[house.channel.pk, *more])


def manager(house):
    return signed_in(house.members["manager"])


@pytest.mark.parametrize("name", PAGES)
def test_only_members_see_the_pages_of_a_channel(alice, bob, name):
    page = signed_in(alice.members["viewer"]).get(address(name, alice))

    assert page.status_code == 200
    assert str(alice.channel.pk) in page.content.decode()
    assert signed_in(bob.members["owner"]).get(address(name, alice)).status_code == 404


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_a_channel_takes_few_queries(alice, django_assert_max_num_queries, name):
    add_crowd(alice.channel, 50)
    client = signed_in(alice.members["manager"])

    with django_assert_max_num_queries(25):
        client.get(address(name, alice))


def test_the_list_of_channels_takes_few_queries(root, alice, django_assert_max_num_queries):
    Channel.objects.bulk_create(
        Channel(account=alice.account, name=f"Channel {n}", vapid_subject="mailto:a@example.com")
        for n in range(60)
    )
    add_crowd(alice.channel, 7)
    client = signed_in(root)

    with django_assert_max_num_queries(25):
        page = client.get(reverse("admin:channels_app_channel_changelist"), {"q": "Alice"})

    assert re.search(r">\s*7\s*<", page.content.decode())


def test_a_manager_creates_a_channel_and_sees_its_snippet_next(alice):
    given = {"name": "News", "vapid_subject": "mailto:push@example.com"}

    response = manager(alice).post(
        reverse("admin:channels_app_channel_add"), given | {"account": alice.account.pk}
    )

    made = Channel.objects.get(name="News")
    assert made.account == alice.account
    assert made.vapid_keys.count() == 1
    assert response.url == reverse("admin:channel_snippet", args=[made.pk])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vapid_subject", "mailto:me@localhost"),
        *(
            ("site_url", url)
            for url in (
                "shop.example",
                "ftp://shop.example/",
                "javascript:alert(1)",
                "https://",
                "x" * 2001,
            )
        ),
    ],
)
def test_an_invalid_contact_or_site_is_refused_next_to_its_field(alice, field, value):
    given = {"name": "x", "vapid_subject": "mailto:push@example.com", field: value}
    for page, more in (
        (reverse("admin:channels_app_channel_add"), {"account": alice.account.pk}),
        (address("channel_settings", alice), {"identity": "proof", "web_click": "open"}),
    ):
        refused = submit(manager(alice), page, given | more)
        assert refused.status_code == 400
        assert list(refused.context["form"].errors) == [field]
    assert Channel.objects.get().name == alice.channel.name


def test_settings_are_saved(alice):
    given = {
        "name": "Alice's other name",
        "vapid_subject": "mailto:push@example.com",
        "site_url": "https://shop.example/",
        "web_click": "navigate",
        "enabled": [],
        "sends_per_second": 5,
        "subscribes_per_minute": "",
        "max_subscriptions": 1000,
        "identity": "trust",
    }

    submit(manager(alice), address("channel_settings", alice), given)

    channel = Channel.objects.get(pk=alice.channel.pk)
    assert (channel.name, channel.web_enabled) == ("Alice's other name", False)
    assert (channel.site_url, channel.web_click) == ("https://shop.example/", "navigate")
    assert 'value="https://shop.example/"' in (
        manager(alice).get(address("channel_settings", alice)).content.decode()
    )
    assert (channel.sends_per_second, channel.subscribes_per_minute) == (5, None)
    assert (channel.max_subscriptions, channel.identity) == (1000, "trust")


LIMITS = {
    "sends_per_second": "SENDS_PER_SECOND",
    "subscribes_per_minute": "SUBSCRIBES_PER_MINUTE",
    "max_subscriptions": "SUBSCRIPTIONS_PER_CHANNEL",
}


@pytest.mark.parametrize("name", LIMITS)
def test_only_a_superuser_gives_a_channel_more_than_the_installation_allows(alice, root, name):
    """Other accounts share the processes and the disk that these limits protect."""
    allowed = getattr(settings, LIMITS[name])

    def saved(client, wanted):
        given = {"name": "x", "vapid_subject": "mailto:push@example.com", "identity": "proof"}
        given["web_click"] = "open"
        response = submit(client, address("channel_settings", alice), given | {name: wanted})
        return response.status_code, getattr(Channel.objects.get(pk=alice.channel.pk), name)

    owner = signed_in(alice.members["owner"])
    assert saved(owner, allowed) == (302, allowed)
    assert saved(owner, allowed + 1) == (400, allowed)
    assert saved(signed_in(root), allowed + 2) == (302, allowed + 2)
    assert saved(owner, allowed + 2) == (302, allowed + 2)  # the form sends it again
    assert saved(owner, allowed + 1) == (302, allowed + 1)
    assert saved(owner, allowed + 2) == (400, allowed + 1)
    assert saved(owner, "") == (302, None)


@pytest.mark.parametrize("name", ["channel_settings", "channel_identity"])
def test_a_channel_that_trusts_devices_has_a_red_warning(alice, name):
    warning = "<strong>Anyone can receive anyone"
    for identity, is_shown in (("proof", False), ("trust", True)):
        Channel.objects.update(identity=identity)
        page = manager(alice).get(address(name, alice)).content.decode()
        assert (warning in page) == is_shown


def test_a_platform_without_credentials_cannot_be_turned_on(alice):
    given = {
        "name": "x",
        "vapid_subject": "mailto:push@example.com",
        "enabled": ["web", "ios"],
    }

    page = manager(alice).post(address("channel_settings", alice), given)

    assert page.status_code == 400
    assert not Channel.objects.get(pk=alice.channel.pk).ios_enabled


def test_pasted_credentials_are_recognised_and_never_shown(alice):
    text = json.dumps(GOOGLE)

    page = (
        manager(alice)
        .post(address("channel_credentials", alice), {"android-text": text}, follow=True)
        .content.decode()
    )

    assert GOOGLE["project_id"] in page
    assert GOOGLE["private_key_id"] not in page
    assert "PRIVATE KEY" not in page
    assert ProviderCredential.objects.get().platform == "android"


def test_an_uploaded_key_needs_key_id_team_and_topic(alice, tmp_path):
    key = dict(APPLE)
    file = tmp_path / "AuthKey.p8"
    file.write_text(key.pop("key"))
    fields = {f"ios-{name}": value for name, value in key.items()}
    client = manager(alice)

    with file.open("rb") as upload:
        faulty = client.post(
            address("channel_credentials", alice), fields | {"ios-file": upload, "ios-team_id": "x"}
        )
    with file.open("rb") as upload:
        client.post(address("channel_credentials", alice), fields | {"ios-file": upload})

    assert faulty.status_code == 400
    assert "10 capital letters" in faulty.content.decode()
    assert "PRIVATE KEY" not in faulty.content.decode()
    assert ProviderCredential.objects.get().facts["key_id"] == key["key_id"]


def test_a_key_is_shown_once_and_revoked(alice):
    client = manager(alice)
    given = {"name": "Shop backend", "scopes": ["send", "read"]}

    page = client.post(address("channel_keys", alice), given)

    text = re.search(r"psk_\w{8}_\w{38}", page.content.decode())[0]
    key = ApiKey.objects.get(name="Shop backend")
    assert key.scopes == ["send", "read"]
    assert "no-store" in page.headers["Cache-Control"]
    assert text not in client.get(address("channel_keys", alice)).content.decode()

    client.post(address("channel_key_revoke", alice, key.pk))
    assert ApiKey.objects.get(pk=key.pk).revoked_at is not None


def test_a_key_expires_on_the_clock_of_the_page_that_was_shown(alice):
    client, page = manager(alice), address("channel_keys", alice)
    client.cookies["browser-time-zone"] = "America/Los_Angeles"
    assert "Expires (America/Los_Angeles)" in client.get(page).content.decode()
    given = {"name": "Shop", "scopes": ["send"], "expires_at": "2031-11-23T23:30"}

    client.post(page, given)
    client.post(page, given | {"zone": "Asia/Tokyo"})

    times = ApiKey.objects.filter(name="Shop").order_by("pk").values_list("expires_at", flat=True)
    assert [f"{each:%Y-%m-%d %H:%M}" for each in times] == ["2031-11-24 07:30", "2031-11-23 14:30"]


def test_a_key_does_not_expire_at_a_time_that_clocks_skip(alice):
    given = {"name": "Shop", "scopes": ["send"], "expires_at": "2031-03-30T02:30"}

    page = manager(alice).post(address("channel_keys", alice), given | {"zone": "Europe/Berlin"})

    assert page.status_code == 400
    assert "This time does not exist in Europe/Berlin" in page.content.decode()
    assert not ApiKey.objects.filter(name="Shop").exists()


def test_a_key_needs_a_name(alice):
    client, page = manager(alice), address("channel_keys", alice)
    refused = client.post(page, {"name": " ", "scopes": ["send"]})
    assert refused.status_code == 400
    assert "This field is required" in refused.content.decode()


@pytest.mark.parametrize(
    ("subject", "email", "offered"),
    [
        (None, "", 'name="vapid_subject" maxlength'),
        (None, "me@shop.example", 'value="mailto:me@shop.example"'),
        ("mailto:ops@shop.example", "me@shop.example", 'value="mailto:ops@shop.example"'),
    ],
)
def test_a_new_channel_is_not_offered_the_example_as_its_contact(
    alice, settings, subject, email, offered
):
    settings.VAPID_SUBJECT = subject or settings.DEFAULT_VAPID_SUBJECT
    alice.members["manager"].email = email
    alice.members["manager"].save()

    page = manager(alice).get(reverse("admin:channels_app_channel_add")).content.decode()

    assert offered in page
    assert 'value="mailto:push@example.com"' not in page


def test_the_list_keeps_a_vapid_key_that_was_rotated(alice):
    old = alice.channel.vapid_keys.get()

    client, shown = manager(alice), {"key": old.public_key}
    page = client.post(address("channel_vapid", alice), shown, follow=True).content.decode()

    new = alice.channel.vapid_keys.get(retired_at=None)
    assert new != old
    assert old.public_key in page
    assert new.public_key in page

    again = client.post(address("channel_vapid", alice), shown, follow=True).content.decode()
    assert "rotated after you opened this page" in again
    assert alice.channel.vapid_keys.get(retired_at=None) == new


@pytest.mark.parametrize("role", ["viewer", "sender", "editor"])
def test_a_member_without_the_manager_role_changes_nothing(alice, role):
    client = signed_in(alice.members[role])
    attempts = {
        "channel_keys": {"name": "Mine", "scopes": ["send"]},
        "channel_credentials": {"android-text": json.dumps(GOOGLE)},
        "channel_vapid": {},
        "channel_settings": {"name": "Mine", "vapid_subject": "mailto:push@example.com"},
        "channel_credential_check": {"platform": "ios"},
    }

    for name, given in attempts.items():
        assert client.post(address(name, alice), given).status_code == 403

    add = reverse("admin:channels_app_channel_add")
    assert client.post(add, {"name": "Mine"}).status_code == 403
    assert not ApiKey.objects.exists()
    assert not ProviderCredential.objects.exists()
    assert alice.channel.vapid_keys.count() == 1
    assert Channel.objects.get(pk=alice.channel.pk).name == alice.channel.name


def check_result(house, platform):
    page = manager(house).post(
        address("channel_credential_check", house),
        {"platform": platform},
        headers={"HX-Request": "true"},
    )
    return page.content.decode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("platform", ["android", "ios"])
def test_a_credential_check_calls_the_push_service(alice, fcm, apns, platform):
    store_google(fcm, alice.channel)
    store_apple(apns, alice.channel)
    assert "the credentials are valid" in check_result(alice, platform)
    assert "the credentials are valid" in credentials_page(alice)

    if platform == "android":
        foreign = {"fcm_service_account": json.dumps(GOOGLE)}
    else:
        foreign = {"apns_key": json.dumps(APPLE)}
    provider_credentials_store(channel=alice.channel, **foreign)
    assert "Last check" not in credentials_page(alice)  # the check was of the version before
    assert "the credentials were rejected" in check_result(alice, platform)
    page = credentials_page(alice)
    assert "the credentials were rejected" in page
    assert push_service_response(alice, platform) in page


def push_service_response(house, platform):
    words = ProviderCredential.objects.get(channel=house.channel, platform=platform).checked_words
    assert words.partition(":")[0] in {"token_refused", "key_refused"}, words
    return escape(words)


def credentials_page(house):
    return manager(house).get(address("channel_credentials", house)).content.decode()


def test_stored_credentials_are_checked_once_by_the_page_that_follows(alice):
    """htmx acts on `load`."""
    stored = manager(alice).post(
        address("channel_credentials", alice), {"android-text": json.dumps(GOOGLE)}
    )
    assert 'hx-trigger="submit, load"' in manager(alice).get(stored.url).content.decode()

    credential = ProviderCredential.objects.get()
    credential_check_record(
        channel_id=alice.channel.pk,
        platform="android",
        version=credential.version,
        is_accepted=True,
        code="accepted",
    )
    assert 'hx-trigger="submit, load"' not in manager(alice).get(stored.url).content.decode()


def test_a_check_of_replaced_credentials_does_not_mark_the_new_ones(alice):
    for _ in range(2):
        provider_credentials_store(channel=alice.channel, fcm_service_account=json.dumps(GOOGLE))
    late = {"channel_id": alice.channel.pk, "platform": "android", "version": 1}

    credential_check_record(**late, is_accepted=False, code="invalid_grant")

    assert ProviderCredential.objects.get().checked_at is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "Missing in the JSON: project_id, client_email"),
        (GOOGLE | {"private_key": WEAK}, "private_key: The RSA key has 1024 bits."),
        ({"type": "authorized_user"}, "This is an “authorized_user” file."),
        ({"project_id": "alices-shop"}, "Missing in the JSON: client_email, private_key."),
        (GOOGLE | {"client_email": "x"}, "client_email: Must be an e-mail address."),
    ],
)
def test_an_unusable_file_is_refused_and_the_entries_are_kept(alice, given, says):
    page = manager(alice).post(
        address("channel_credentials", alice), {"android-text": json.dumps(given)}
    )

    assert page.status_code == 400
    assert says in unescape(page.content.decode())
    assert "This field is required" not in page.content.decode()
    assert not ProviderCredential.objects.exists()


def test_a_channel_without_credentials_offers_no_check(alice):
    assert "No credentials are stored" in check_result(alice, "android")


def test_every_figure_of_the_overview_links_to_the_notifications_that_it_sums(alice):
    make_sent_notification(alice.channel, title="Spring sale")
    make_sent_notification(alice.channel, title="Half done", status="processing", finished_at=None)
    client = signed_in(alice.members["viewer"])
    figures = client.get(address("channels_app_channel_change", alice)).context["figures"]

    sent, *others = (client.get(figure["url"]).content.decode() for figure in figures)

    assert "Spring sale" in sent
    assert "Half done" not in sent
    assert len(others) == 4
    assert all("Spring sale" in page and "Half done" in page for page in others)


# --- bounds ---------------------------------------------------------------------------------------


def test_an_account_has_a_limit_of_channels_for_all_but_superusers(alice, root, settings):
    settings.CHANNELS_PER_ACCOUNT = 1
    given = {"vapid_subject": "mailto:push@example.com", "account": alice.account.pk}
    new = reverse("admin:channels_app_channel_add")

    refused = manager(alice).post(new, given | {"name": "Second"})

    assert refused.status_code == 400
    assert "The account has 1 channels" in refused.content.decode()
    assert Channel.objects.filter(account=alice.account).count() == 1
    assert signed_in(root).post(new, given | {"name": "Second"}).status_code == 302


def test_a_channel_has_a_limit_of_api_keys_in_use(alice, monkeypatch):
    assert (services.MOST_API_KEYS, services.MOST_ENDED_API_KEYS) == (100, 1_000)
    monkeypatch.setattr(services, "MOST_API_KEYS", ApiKey.objects.count() + 1)
    client, page = manager(alice), address("channel_keys", alice)
    given = {"name": "Shop", "scopes": ["send"]}
    assert client.post(page, given).status_code == 200

    refused = client.post(page, given)

    assert refused.status_code == 400
    assert "Revoke one first" in refused.content.decode()
    revoked = ApiKey.objects.filter(name="Shop").get()
    client.post(address("channel_key_revoke", alice, revoked.pk))
    assert client.post(page, given).status_code == 200


def test_of_the_api_keys_that_ended_the_newest_are_kept(alice, monkeypatch):
    monkeypatch.setattr(services, "MOST_ENDED_API_KEYS", 2)
    for number in range(5):
        key, _ = services.api_key_issue(channel=alice.channel, name=str(number))
        services.api_key_revoke(api_key=key)

    kept = ApiKey.objects.filter(revoked_at__isnull=False).order_by("created_at")
    assert [each.name for each in kept] == ["2", "3", "4"]


def test_a_channel_has_a_limit_of_web_push_keys(alice, monkeypatch):
    assert services.MOST_VAPID_KEYS == 100
    monkeypatch.setattr(services, "MOST_VAPID_KEYS", 2)
    client, page = manager(alice), address("channel_vapid", alice)

    def rotated():
        shown = {"key": alice.channel.vapid_keys.get(retired_at=None).public_key}
        return client.post(page, shown, follow=True).content.decode()

    assert "subscribe with a new key" in rotated()
    assert "cannot get another one" in rotated()
    assert alice.channel.vapid_keys.count() == 2
