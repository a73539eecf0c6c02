"""Importing a file in the console: the browser reads it, and sends it in parts."""

import csv
import json
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest
from auditlog.models import LogEntry
from playwright.sync_api import expect

from subscriptions_app.models import Subscription
from tests.api.devices import FID
from tests.browser.console.support import (
    PHONE,
    choose_scheme,
    errors_of,
    is_wider_than_screen,
    violations_of,
)

PART = 2_000  # rows
GERMAN = (
    "Gerät;Schlüssel;Kunde;Notiz;Stadt\r\n"
    f'Android;{FID};Jürgen;"zwei\nZeilen";Köln\r\n'
    'Android;kaputt;=HYPERLINK("x");;"Bonn; -2"\r\n'
)


def token(number):
    return f"{FID[:14]}{number:08}"


def tokens(numbers, header="platform,token,plan"):
    rows = [f"android,{token(each) if each else 'none'},pro" for each in numbers]
    return "\n".join([header, *rows, ""])


@pytest.fixture(autouse=True)
def android(alice):
    alice.channel.android_enabled = True
    alice.channel.save()


@pytest.fixture
def opened(console, alice, manager):
    path = f"/admin/subscriptions_app/subscription/import/{alice.channel.pk}/"

    def opened(**options):
        page = console.open(path, manager, **options)
        page.on("dialog", lambda dialog: dialog.accept())
        return page

    opened.path = path
    return opened


def choose(page, data, name="tokens.csv"):
    buffer = data if isinstance(data, bytes) else data.encode()
    file = {"name": name, "mimeType": "text/csv", "buffer": buffer}
    page.locator("#import-file").set_input_files(file)


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def state(page):
    return page.locator("#import-state")


def counts(page):
    return page.locator("#import-results .ps-stat dd").all_text_contents()


def refused(page, button="Download refused rows (CSV)"):
    with page.expect_download() as download:
        press(page, button)
    return download.value.path().read_text("utf-8-sig")


@contextmanager
def lines_sent(page):
    """The lines at which the sent parts begin."""
    lines = []
    page.on(
        "request",
        lambda request: (
            "/part/" in request.url
            and lines.append(int(parse_qs(urlsplit(request.url).query)["line"][0]))
        ),
    )
    yield lines


def stored(alice):
    return Subscription.objects.filter(channel=alice.channel)


def test_a_german_table_of_excel_is_mapped_by_hand_and_imported(opened, alice, manager):
    page = opened()
    choose(page, GERMAN.encode("utf-16"))
    expect(page.locator("#import-encoding")).to_have_value("utf-16le")
    expect(page.locator("#import-first-rows tr").first).to_contain_text("platform: Must be one of")
    for column, meaning in (
        ("Gerät", "Platform"),
        ("Schlüssel", "Token (Android, iOS)"),
        ("Kunde", "External id"),
        ("Notiz", "Ignore"),
    ):
        page.get_by_label(f"Column {column} contains").select_option(meaning)
    good, bad = page.locator("#import-first-rows tr").all()
    expect(good).to_contain_text("Jürgen")
    expect(good).to_contain_text("Stadt: Köln")
    expect(bad).to_contain_text("4refusedprovider_token: Must be an FCM registration token")

    press(page, "Dry run")
    expect(state(page)).to_have_text("The dry run has ended. Nothing was stored.")
    assert counts(page) == ["1", "0", "0", "1"]
    expect(page.locator("#import-codes-rows")).to_contain_text("not_a_token1Line 4:")
    assert not stored(alice).exists()
    assert not LogEntry.objects.filter(
        additional_data__note__contains="imported", actor=manager
    ).exists()

    press(page, "Import")
    expect(state(page)).to_have_text("The file is imported.")
    (row,) = stored(alice)
    assert (row.address, row.person.external_id, row.attributes) == (
        FID,
        "Jürgen",
        {"Stadt": "Köln"},
    )
    note = "Subscribers imported: 1 created, 0 updated."
    entry = LogEntry.objects.get(additional_data__note=note, actor=manager)
    assert entry.additional_data["via"] == "console"

    text = refused(page)
    head, line = csv.reader(text.splitlines(), delimiter=";")
    assert head[:5] == ["import_line", "import_code", "import_field", "import_reason", "Gerät"]
    assert line[:3] == ["4", "not_a_token", "provider_token"]
    assert line[4:] == ["Android", "kaputt", '\'=HYPERLINK("x")', "", "Bonn; '-2"]


def test_an_import_goes_on_after_its_tab_was_closed(opened, console, alice):
    console.answers.add(503)
    data = tokens([*range(1, PART), 0, *range(PART, 2 * PART + 100), 0])
    page = opened()
    choose(page, data)
    busy = {"status": 503, "headers": {"Retry-After": "300"}}
    page.route("**/part/*line=4002&*", lambda route: route.fulfill(**busy))
    press(page, "Import")
    expect(state(page)).to_have_text("The service responded with 503. Next try in 300 s.")
    expect(page.locator("#import-pace")).to_contain_text("line 4,001")
    page.close()
    assert stored(alice).count() == 2 * PART - 1

    page = page.context.new_page()
    page.goto(opened.path)
    earlier = page.locator("#import-earlier")
    expect(earlier).to_contain_text("“tokens.csv” stopped before line 4,002 (97 %): 3,999 created")
    assert refused(page, "Download refused rows").count("not_a_token") == 1
    choose(page, data.replace("pro", "max"))
    expect(page.get_by_role("button", name="Import", exact=True)).to_be_visible()
    choose(page, data)
    expect(state(page)).to_have_text("This file is imported up to line 4,001.")
    expect(page.get_by_label("Days to take over a row")).to_be_disabled()
    with lines_sent(page) as lines:
        press(page, "Continue")
        expect(state(page)).to_have_text("The file is imported.")
    assert lines == [4002]
    assert counts(page) == ["4,099", "0", "0", "2"]
    assert stored(alice).count() == 2 * PART + 99
    found = [line.split(",")[0] for line in refused(page).splitlines()]
    assert found == ["import_line", "2001", "4102"]


def test_a_cancelled_import_goes_on_and_a_busy_service_is_asked_again(opened, console, alice):
    console.answers.add(503)
    data = tokens(range(1, PART + 100))
    page = opened()
    choose(page, data)
    answers = [{"status": 503, "headers": {"Retry-After": "1"}}]

    def answer(route):
        if answers:
            return route.fulfill(**answers.pop())
        if "line=2&" in route.request.url:
            press(page, "Cancel")
        return route.continue_()

    page.route("**/part/*", answer)
    press(page, "Import")
    expect(state(page)).to_have_text("Stopped before line 2,002. The rows before it are imported.")
    assert stored(alice).count() == PART

    page.unroute("**/part/*")
    press(page, "Continue")
    expect(state(page)).to_have_text("The file is imported.")
    assert stored(alice).count() == PART + 99
    press(page, "Import")
    expect(state(page)).to_have_text("The file is imported.")
    assert counts(page) == ["0", "0", "2,099", "0"]


def test_a_double_click_on_a_button_of_the_import_counts_once(opened, console, alice):
    """Otherwise the second one hits the button that has taken its place."""
    console.answers.add(400)
    page = opened()
    choose(page, tokens(range(1, 2 * PART)) + 'android,"open\n')
    button = page.get_by_role("button", name="Dry run")
    with lines_sent(page) as lines:
        button.dblclick()
        expect(page.locator("#import-error")).to_contain_text("Line")
        assert lines == [2, 2002]
        press(page, "Import")
        expect(state(page)).to_contain_text("Stopped before line 2,002.")
        lines.clear()
        page.get_by_role("button", name="Continue").dblclick()
        expect(state(page)).to_contain_text("Stopped before line 2,002.")
        assert lines == [2002]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (b'android,"a"b\n', "Line 2502, column 12: After a double quote"),
        (b'android,"open\n', "Line 2502, column 9: A field that begins here"),
        (b"android,\xe4\n", "Line 2502, column 9: This is not utf-8."),
    ],
)
def test_an_error_has_the_line_and_column_of_the_file(opened, console, alice, row, words):
    console.answers.add(400)
    page = opened()
    choose(page, tokens(range(1, 2501)).encode() + row + b"x" * 100)
    press(page, "Import")
    expect(page.locator("#import-error")).to_contain_text(words)
    expect(state(page)).to_contain_text("Stopped before line 2,002.")
    assert stored(alice).count() == PART


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK\x03\x04rest", "Save the table as “CSV UTF-8”"),
        (b"\x1f\x8brest", "Decompress it first"),
        (b"", "The file is empty"),
        (b"[\n{}]", "one JSON array"),
        (b"a,b,a\n", "Line 1, column 3: Two columns have the name 'a'"),
    ],
)
def test_what_is_no_table_is_refused_with_advice(opened, console, data, words):
    console.answers.add(400)
    page = opened()
    choose(page, data)
    expect(page.locator("#import-file-error")).to_contain_text(words)
    expect(page.locator("#import-run")).to_be_hidden()


def test_options_and_an_old_encoding(opened, alice):
    page = opened()
    choose(page, f"Token,Ort,themen\n{FID},Köln,a b\n".encode("windows-1252"))
    expect(page.locator("#import-encoding")).to_have_value("windows-1252")
    page.get_by_label("Platform of rows that name none").select_option("Android")
    page.get_by_label("Make tags of the attribute").fill("themen")
    page.get_by_label("Days to take over a row").fill("30")
    expect(page.locator("#import-first-rows tr")).to_contain_text("createdAndroid")
    press(page, "Import")
    expect(state(page)).to_have_text("The file is imported.")
    (row,) = stored(alice)
    assert (row.attributes, [each.tag for each in row.tags.order_by("tag")]) == (
        {"Ort": "Köln"},
        ["a", "b"],
    )
    assert row.takeover_until is not None


def test_json_lines_with_attributes_to_take(opened, alice):
    point = {"ChannelType": "GCM", "Address": FID, "Attributes": {"city": ["Rome"], "x": ["y"]}}
    page = opened()
    choose(page, json.dumps(point) + "\n", "endpoints.json")
    expect(page.locator("#import-format")).to_have_value("pinpoint_json")
    expect(page.locator("#import-attributes-help")).to_contain_text("not taken: city, x")
    expect(page.locator("#import-columns")).to_be_hidden()
    page.get_by_label("Attributes to take").fill("city")
    press(page, "Import")
    expect(state(page)).to_have_text("The file is imported.")
    assert stored(alice).get().attributes == {"city": "Rome"}
    expect(page.locator("#import-dropped")).to_have_text("Attributes that are not taken: x.")


def test_every_step_is_readable_in_german_too(opened):
    page = opened(axe=True, color_scheme="light", locale="de-DE")
    choose(page, GERMAN.replace("Gerät;Schlüssel", "platform;token"))
    rows = page.locator("#import-first-rows tr")
    expect(rows.first).to_contain_text("angelegtAndroid")
    expect(rows.last).to_contain_text("abgelehnt")
    press(page, "Probelauf")
    expect(state(page)).to_have_text("Der Probelauf ist beendet. Nichts wurde gespeichert.")
    expect(page.locator("#import-codes-rows")).to_contain_text("Zeile 4:")
    for scheme in ("light", "dark"):
        choose_scheme(page, scheme)
        assert [*errors_of(page), *violations_of(page)] == []
    page.set_viewport_size(PHONE)
    assert not is_wider_than_screen(page)


def test_without_javascript_the_page_names_the_other_ways(console, opened):
    page = opened(java_script_enabled=False)
    expect(page.locator("#import")).to_be_hidden()
    expect(page.locator("noscript .ps-note")).to_contain_text("requires JavaScript")
    expect(page.locator("noscript .ps-note")).to_be_visible()
