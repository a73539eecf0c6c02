"""A segment from a file: the browser reads it, and sends the ids in parts."""

import csv
import json

import pytest
from playwright.sync_api import expect

from subscriptions_app.models import Segment, Tag
from subscriptions_app.people.linking import devices_link
from subscriptions_app.tags.services import MAX_MEMBERS
from tests.browser.console.support import (
    PHONE,
    choose_scheme,
    errors_of,
    is_wider_than_screen,
    violations_of,
)
from tests.factories import add_subscriptions, add_tags


@pytest.fixture
def people(alice):
    """user-1 has two devices, and user-2 to user-9 have one each."""
    devices = add_subscriptions(alice.channel, 10)
    links = {one.pk: f"user-{max(n, 1)}" for n, one in enumerate(devices)}
    devices_link(channel=alice.channel, links=links)
    return devices


@pytest.fixture
def opened(console, alice):
    path = f"/admin/subscriptions_app/segment/file/{alice.channel.pk}/"

    def opened(**options):
        return console.open(path, alice.members["editor"], **options)

    return opened


def choose(page, text, name="people.csv"):
    data = text if isinstance(text, bytes) else text.encode()
    file = {"name": name, "mimeType": "text/csv", "buffer": data}
    page.locator("#ids-file").set_input_files(file)


def press(page):
    page.get_by_role("button", name="Create segment", exact=True).click()


def results(page):
    return page.locator("#ids-results .ps-stat dd").all_text_contents()


def tagged(alice, tag):
    return Tag.objects.filter(channel_id=alice.channel.pk, tag=tag).count()


def test_the_people_of_a_file_become_a_segment_and_unknown_ids_a_list(opened, alice, people):
    page = opened()
    page.get_by_label("Name", exact=True).fill("Spring sale für Zoë")
    expect(page.get_by_label("Tag", exact=True)).to_have_value("list-spring-sale-fur-zoe")
    rows = "".join(f'"Nr. {n}\nAnn";user-{n}\r\n' for n in (1, 2, 2, 3))
    choose(page, f"Name;Customer_ID\r\n{rows}=1+1;=1+1\r\n;\r\nZoë;Zoë\r\n".encode("utf-16"))
    expect(page.get_by_label("Column with the ids")).to_have_value("1")
    expect(page.locator("#ids-samples")).to_have_text("First values: user-1 · user-2 · user-2")
    press(page)
    expect(page.get_by_role("link", name="Open the segment")).to_be_focused()
    assert results(page) == ["3", "4", "2"]
    assert page.locator("#ids-missing-list li").all_text_contents() == ["=1+1", "Zoë"]
    with page.expect_download() as download:
        page.get_by_role("button", name="Download unknown ids (CSV)").click()
    lines = download.value.path().read_text("utf-8-sig").splitlines()
    assert list(csv.reader(lines)) == [["external_id"], ["'=1+1"], ["Zoë"]]

    page.get_by_role("link", name="Open the segment").click()
    expect(page.locator("#segment-preview .ps-stat dd")).to_have_text("4")
    segment = Segment.objects.get(channel=alice.channel)
    assert (segment.name, segment.rule) == (
        "Spring sale für Zoë",
        {"tag": "list-spring-sale-fur-zoe"},
    )


def test_ids_without_a_header_are_sent_at_most_a_thousand_at_a_time(opened, alice, people):
    page, sizes = opened(), []
    page.on(
        "request",
        lambda request: (
            request.url.endswith("/part/")
            and sizes.append(len(json.loads(request.post_data)["external_ids"]))
        ),
    )
    page.get_by_label("Name", exact=True).fill("Many")
    choose(page, "".join(f"user-{n}\n" for n in range(1, 2 * MAX_MEMBERS + 101)))
    expect(page.locator("#ids-header")).not_to_be_checked()
    press(page)
    expect(page.get_by_role("link", name="Open the segment")).to_be_visible()
    assert sizes == [MAX_MEMBERS, MAX_MEMBERS, 100]
    assert results(page) == ["9", "10", "2,091"]
    assert tagged(alice, "list-many") == 10


def test_errors_are_at_their_fields_and_inputs_are_kept(opened, console, alice, people):
    console.answers |= {400, 409}
    Segment.objects.create(channel=alice.channel, name="VIPs", rule={"tag": "x"})
    add_tags(people[:1], "list-vips")
    page = opened()
    press(page)
    expect(page.locator("#ids-name-error")).to_contain_text("Must have")
    expect(page.locator("#ids-tag-error")).to_contain_text("Enter a tag")
    expect(page.locator("#ids-file-error")).to_have_text("Choose a file.")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    choose(page, b"PK\x03\x04")
    expect(page.locator("#ids-file-error")).to_contain_text("This is a workbook")

    page.get_by_label("Name", exact=True).fill("VIPs")
    choose(page, "id\nuser-1\nuser-2\n")
    press(page)
    expect(page.locator("#ids-name-error")).to_contain_text("has this name")
    expect(page.locator("#ids-tag-error")).to_contain_text("have this tag already")
    expect(page.locator("#ids-file-error")).to_be_hidden()
    assert tagged(alice, "list-vips") == 1

    page.get_by_label("Name", exact=True).fill("VIPs of May")
    page.get_by_label("Tag", exact=True).fill("list-vips")
    page.get_by_label("Add to the devices").check()
    press(page)
    expect(page.get_by_role("link", name="Open the segment")).to_be_visible()
    assert results(page) == ["2", "3", "0"]
    assert tagged(alice, "list-vips") == 3


def test_a_run_goes_on_after_it_was_refused(opened, console, alice, people):
    console.answers.add(403)
    page = opened()
    page.get_by_label("Name", exact=True).fill("Many")
    choose(page, "id\n" + "".join(f"user-{n}\n" for n in range(1, MAX_MEMBERS + 101)))
    sent = []

    def once(route):
        sent.append(json.loads(route.request.post_data)["external_ids"][0])
        return route.fulfill(status=403) if len(sent) == 2 else route.continue_()

    page.route("**/part/", once)
    press(page)
    expect(page.locator("#ids-error")).to_contain_text("may no longer do this")
    assert not Segment.objects.filter(channel=alice.channel).exists()
    press(page)
    expect(page.get_by_role("link", name="Open the segment")).to_be_visible()
    assert results(page) == ["9", "10", "1,091"]
    assert Segment.objects.filter(channel=alice.channel).count() == 1


def test_a_file_without_known_people_makes_no_segment(opened, alice, people):
    page = opened()
    page.get_by_label("Name", exact=True).fill("Nobody")
    choose(page, "id\nnobody\n")
    press(page)
    expect(page.locator("#ids-file-error")).to_contain_text("so there is no segment")
    assert not Segment.objects.filter(channel=alice.channel).exists()
    choose(page, "id\nuser-1\n")
    press(page)
    expect(page.get_by_role("link", name="Open the segment")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_readable(opened, alice, people, scheme):
    page = opened(axe=True, viewport=PHONE)
    choose_scheme(page, scheme)
    page.get_by_label("Name", exact=True).fill("Many")
    choose(page, "".join(f"somebody-with-a-rather-long-id-{n}\n" for n in range(99)) + "user-1\n")
    expect(page.locator("#ids-how")).to_be_visible()
    assert not violations_of(page)
    press(page)
    expect(page.get_by_role("link", name="Open the segment")).to_be_visible()
    assert not violations_of(page)
    assert not errors_of(page)
    assert not is_wider_than_screen(page)


def test_how_far_a_file_has_come_is_said_in_the_readers_language(console, alice, people):
    path = f"/admin/subscriptions_app/segment/file/{alice.channel.pk}/"
    page = console.open(path, alice.members["editor"], locale="de-DE")
    page.locator("#ids-name").fill("Sale")
    choose(page, "user_id\n" + "\n".join(f"nobody-{n}" for n in range(60)))

    page.locator("#ids-start").click()

    expect(page.locator("#ids-missing-more")).to_have_text("und 10 weitere")
    expect(page.locator("#ids-state")).to_have_text("60 von 60 Ids")
