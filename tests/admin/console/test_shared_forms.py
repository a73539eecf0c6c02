"""Two managers change the same settings: nobody replaces a change without seeing it."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from channels_app.models import Channel
from channels_app.services import api_key_issue
from channels_app.webhooks import webhook_create
from subscriptions_app.models import Category
from tests.admin.support import signed_in
from tests.factories import make_category


class Opened:
    """A page with a form that a member opened. `save` posts what the page showed last, with these
    changes."""

    def __init__(self, member: Any, url: str, form: str = "form") -> None:
        self.client, self.url, self.form = signed_in(member), url, form
        self.page = self.client.get(url)

    def shown(self) -> dict[str, Any]:
        form = self.page.context[self.form] if self.form == "form" else self._category()
        values = {"seen": form.seen} | {field.html_name: field.value() for field in form}
        return {
            name: value
            for name, value in values.items()
            if value is not None and value is not False
        }

    def _category(self) -> Any:
        [(_, form)] = self.page.context["categories"]
        return form

    def save(self, **changes: Any) -> str:
        self.page = self.client.post(self.url, self.shown() | changes)
        return self.page.content.decode()


@pytest.fixture
def settings_url(alice):
    Channel.objects.update(name="Shop", web_click="navigate", identity="proof")
    return reverse("admin:channel_settings", args=[alice.channel.pk])


def channel():
    return Channel.objects.get()


def test_a_change_by_a_colleague_is_shown_and_replaced_only_by_a_second_save(alice, settings_url):
    mine = Opened(alice.members["owner"], settings_url)
    Opened(alice.members["manager"], settings_url).save(sends_per_second="5")

    text = mine.save(sends_per_second="7", site_url="https://shop.example/")

    assert mine.page.status_code == 409
    assert (channel().sends_per_second, channel().site_url) == (5, "")
    assert "Not saved: alice-manager changed the marked values" in text
    assert "alice-manager changed this" in text
    assert "It is now: 5</p>" in text
    assert text.count("It is now:") == 1
    assert 'name="sends_per_second" value="7"' in text
    assert 'value="https://shop.example/"' in text
    mine.save()
    assert mine.page.status_code == 302
    assert (channel().sends_per_second, channel().site_url) == (7, "https://shop.example/")


def test_what_the_user_left_as_it_was_gets_the_colleagues_value(alice, settings_url):
    mine = Opened(alice.members["owner"], settings_url)
    Opened(alice.members["manager"], settings_url).save(name="Bakery", enabled=[])

    text = mine.save(site_url="https://shop.example/")
    assert 'name="name" value="Bakery"' in text
    assert "It is now: empty</p>" in text
    mine.save()

    stored = channel()
    assert (stored.name, stored.web_enabled, stored.site_url) == (
        "Bakery",
        False,
        "https://shop.example/",
    )


def test_a_third_change_before_the_second_save_is_shown_too(alice, settings_url):
    mine = Opened(alice.members["owner"], settings_url)
    Opened(alice.members["manager"], settings_url).save(name="Bakery")
    mine.save(name="Mill")
    Opened(alice.members["manager"], settings_url).save(name="Oven")

    assert "It is now: Oven" in mine.save()
    assert channel().name == "Oven"


def test_an_error_in_the_form_does_not_hide_a_change(alice, settings_url):
    mine = Opened(alice.members["owner"], settings_url)
    Opened(alice.members["manager"], settings_url).save(name="Bakery")

    mine.save(name="Mill", sends_per_second="none")
    assert mine.page.status_code == 400
    assert "It is now: Bakery" in mine.save(sends_per_second="")
    assert channel().name == "Bakery"


def test_the_same_change_by_both_is_no_conflict(alice, settings_url):
    mine = Opened(alice.members["owner"], settings_url)
    Opened(alice.members["manager"], settings_url).save(name="Bakery")
    mine.save(name="Bakery")
    assert mine.page.status_code == 302


@pytest.mark.parametrize("seen", ["", "{", "[]", "1", '{"name": ["x"]}', "\x00"])
def test_a_form_that_does_not_name_what_it_showed_replaces_nothing_unseen(
    alice, settings_url, seen
):
    mine = Opened(alice.members["owner"], settings_url)
    text = mine.save(name="Mill", seen=seen)
    assert mine.page.status_code == 409
    assert "It is now: Shop" in text
    assert channel().name == "Shop"


def test_delivery_settings_and_a_change_by_an_api_key(alice, client):
    url = reverse("admin:channel_delivery", args=[alice.channel.pk])
    mine = Opened(alice.members["manager"], url)
    key, text = api_key_issue(channel=alice.channel, name="shop", scopes=["manage"])
    changed = client.put(
        f"/channel/{alice.channel.pk}/delivery-settings",
        {"caps": [{"limit": 3, "hours": 24}]},
        content_type="application/json",
        headers={"Authorization": f"Key {text}"},
    )
    assert changed.status_code == 200, changed.content

    page = mine.save(rate_per_minute="60")

    assert f"API key psk_{key.public_id}_… changed this" in page
    assert channel().rate_per_minute is None
    mine.save()
    assert (channel().rate_per_minute, channel().caps) == (60, [{"limit": 3, "hours": 24}])


def test_a_prompt(alice):
    url = reverse("admin:channel_prompt", args=[alice.channel.pk])
    mine = Opened(alice.members["owner"], url)
    first = {"kind": "bell", "scheme": "auto"}  # as a browser chooses
    Opened(alice.members["manager"], url).save(title="Fresh bread", **first)

    text = mine.save(body="Every morning", **first)
    assert "alice-manager changed this" in text
    mine.save()
    assert channel().prompt["texts"] == {"en": {"title": "Fresh bread", "body": "Every morning"}}


def test_a_category(alice):
    make_category(alice.channel, "news")
    url = reverse("admin:channel_categories", args=[alice.channel.pk])
    mine = Opened(alice.members["owner"], url, "category")
    own = {"do": "change", "key": "news"}
    Opened(alice.members["editor"], url, "category").save(name="All news", **own)

    text = mine.save(description="Daily", **own)

    assert "alice-editor changed this" in text
    assert "<details open>" in text
    assert Category.objects.get().description == ""
    mine.save(**own)
    category = Category.objects.get()
    assert (category.name, category.description) == ("All news", "Daily")


def test_a_webhook(alice):
    webhook, _ = webhook_create(
        channel=alice.channel, url="https://shop.example.com/", events=["notifications.finished"]
    )
    url = reverse("admin:channel_webhook", args=[alice.channel.pk, webhook.pk])
    mine = Opened(alice.members["owner"], url)
    other = Opened(alice.members["manager"], url).shown()
    del other["enabled"]
    signed_in(alice.members["manager"]).post(url, other | {"do": "save"})

    text = mine.save(do="save", description="Orders")

    assert "alice-manager changed this" in text
    assert "It is now: no</p>" in text
    mine.save(do="save")
    webhook.refresh_from_db()
    assert (webhook.is_enabled, webhook.description) == (False, "Orders")


def test_a_user_who_was_deactivated_meanwhile_stays_so(alice, root):
    viewer, owner = alice.members["viewer"], alice.members["owner"]
    User.objects.filter(pk=owner.pk).update(is_superuser=True)
    url = reverse("admin:auth_user_change", args=[viewer.pk])
    mine = Opened(root, url)
    other = Opened(owner, url).shown()
    del other["is_active"]
    signed_in(owner).post(url, other | {"do": "change"})

    text = mine.save(do="change", email="a@example.com")

    assert "alice-owner changed this" in text
    viewer.refresh_from_db()
    assert (viewer.is_active, viewer.email) == (False, "")
    mine.save(do="change")
    viewer.refresh_from_db()
    assert (viewer.is_active, viewer.email) == (False, "a@example.com")
