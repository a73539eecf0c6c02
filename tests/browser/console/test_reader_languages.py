"""Pages in German, whose words are longer, and in Arabic, which runs from right to left."""

import pytest
from playwright.sync_api import expect

from tests.admin.support import fill_hours
from tests.browser.console.support import PHONE, errors_of, is_wider_than_screen, violations_of
from tests.factories import add_crowd, make_sent_notification

TITLES = {
    "de": ("Dashboard", "Neue Benachrichtigung"),
    "ar": ("لوحة المعلومات", "إشعار جديد"),
}

# A title above a list.
IS_CUT = "[...document.querySelectorAll('h1.ps-crumbs')].some((h) => h.scrollWidth > h.clientWidth)"


@pytest.fixture
def paths(alice):
    add_crowd(alice.channel, 20)
    fill_hours(alice.channel, days=2)
    sent = make_sent_notification(alice.channel)
    return (
        "/admin/",
        "/admin/notifications_app/notification/",
        f"/admin/notifications_app/notification/{sent.pk}/change/",
        f"/admin/notifications_app/notification/compose/?channel={alice.channel.pk}",
    )


@pytest.mark.parametrize(
    ("language", "options"),
    [
        ("de", {"locale": "de-DE", "viewport": PHONE, "color_scheme": "dark"}),
        ("ar", {"locale": "ar-EG", "viewport": PHONE, "color_scheme": "light"}),
        ("ar", {"locale": "ar-EG", "color_scheme": "dark"}),
    ],
)
def test_axe_finds_no_violation_and_nothing_overflows(console, alice, paths, language, options):
    page = console.open("/admin/", alice.members["owner"], axe=True, **options)
    found = []

    for path in paths:
        page.goto(path, wait_until="networkidle")
        page.locator(f"html[lang={language}]:not([x-cloak])").wait_for(state="attached")
        found += [f"{path}: {error}" for error in (*errors_of(page), *violations_of(page))]
        if is_wider_than_screen(page):
            found.append(f"{path}: wider than the screen")
        if page.evaluate(IS_CUT):
            found.append(f"{path}: its title is cut")

    assert "\n".join(found) == ""
    expect(page.get_by_role("heading", level=1).last).to_have_text(TITLES[language][1])


def test_the_chosen_language_is_that_of_scripts_too(console, alice, paths):
    page = console.open("/admin/auth/user/time-zone/", alice.members["owner"])
    page.get_by_label("Language").select_option("de")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Ihre Wahl wurde gespeichert.")).to_be_visible()

    page.goto(paths[3])

    expect(page.locator("#count-title")).to_have_text("0 von 100 Zeichen")
