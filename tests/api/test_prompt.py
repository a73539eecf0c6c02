"""GET /prompt: the options that the console gave the channel's prompt."""

import pytest
from auditlog.models import LogEntry
from django.test import Client
from django.urls import reverse

from channels_app.models import Channel
from tests.admin.support import make_house, signed_in, submit
from tests.api.support import NOWHERE, code
from tests.factories import make_category

pytestmark = pytest.mark.django_db
GIVEN = {
    "is_on": "on",
    "kind": "slide-in",
    "after_pages": 2,
    "after_seconds": 10,
    "again_after_days": 30,
    "max_refusals": 3,
    "scheme": "auto",
    "lang": "de",
    "accent": "#9a3412",
    "title": "Frisches Brot",
}
OPTIONS = {
    "kind": "slide-in",
    "afterPages": 2,
    "afterSeconds": 10,
    "againAfterDays": 30,
    "maxRefusals": 3,
    "scheme": "auto",
    "colors": {"accent": "#9a3412"},
    "texts": {"de": {"title": "Frisches Brot"}},
}


@pytest.fixture
def house():
    return make_house("Alice")


def page_of(house):
    return reverse("admin:channel_prompt", args=[house.channel.pk])


def saved(house, role="manager", **given):
    return submit(signed_in(house.members[role]), page_of(house), GIVEN | given)


def prompt_of(channel):
    response = Client().get("/prompt", headers={"X-Channel-ID": str(channel.pk)})
    assert response.headers["Cache-Control"] == "public, max-age=300"
    assert "X-Channel-ID" in response.headers["Vary"]
    return response.json().get("prompt")


def test_sites_get_what_the_console_says(house):
    assert prompt_of(house.channel) is None

    assert saved(house).status_code == 302

    assert prompt_of(house.channel) == OPTIONS
    page = signed_in(house.members["viewer"]).get(page_of(house)).content.decode()
    assert 'value="Frisches Brot"' in page


def test_a_prompt_can_be_switched_off(house):
    saved(house)
    saved(house, is_on="")
    assert prompt_of(house.channel) is None
    page = signed_in(house.members["viewer"]).get(page_of(house)).content.decode()
    assert 'value="Frisches Brot"' in page  # for when it is switched on again


def test_a_choice_of_categories_offers_the_channels(house):
    saved(house, kind="categories")
    assert prompt_of(house.channel) is None  # there is nothing to choose

    make_category(house.channel, "news")

    (offered,) = prompt_of(house.channel)["categories"]
    assert (offered["key"], offered["name"], set(offered)) == (
        "news",
        "News",
        {"key", "name", "description", "chosen"},
    )


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"kind": "banner"}, "kind"),
        ({"kind": "button"}, "target"),
        ({"after_pages": 0}, "after_pages"),
        ({"accent": "red"}, "accent"),
        ({"accent": "#9a3412;position:fixed"}, "accent"),
        ({"lang": "de_DE"}, "lang"),
        ({"title": "x" * 101}, "title"),
    ],
)
def test_an_invalid_option_is_refused_next_to_its_field(house, given, field):
    refused = saved(house, **given)
    assert refused.status_code == 400
    assert list(refused.context["form"].errors) == [field]
    assert Channel.objects.get(pk=house.channel.pk).prompt is None


def test_visits_within_a_second_cost_one_read(house, settings, django_assert_num_queries):
    make_category(house.channel, "news")
    saved(house, kind="categories")
    settings.ROWS_KEPT_SECONDS = 3_600
    prompt_of(house.channel)

    with django_assert_num_queries(0):
        assert prompt_of(house.channel)["categories"]


def test_the_audit_log_shows_the_change(house):
    saved(house)
    saved(house, title="Neues Brot")

    entry = LogEntry.objects.get_for_object(house.channel)[0]
    assert entry.actor == house.members["manager"]
    assert list(entry.changes) == ["prompt"]
    before, after = (each["texts"]["de"]["title"] for each in entry.changes["prompt"])
    assert (before, after) == ("Frisches Brot", "Neues Brot")


def test_only_a_manager_changes_the_prompt(house):
    assert saved(house, role="sender").status_code == 403
    assert Channel.objects.get(pk=house.channel.pk).prompt is None


def test_an_unknown_channel_has_no_prompt(house):
    response = Client().get("/prompt", headers={"X-Channel-ID": NOWHERE})
    assert code(response, 404) == "channel_not_found"
