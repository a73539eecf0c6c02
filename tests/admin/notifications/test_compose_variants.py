"""Writing variants and their test in the console."""

import re

import pytest

from notifications_app.models import Notification
from tests.admin.notifications.composing import COMPOSE, review, send, shown_in, written

TEST = {"share": 10, "minutes": 60, "metric": "received", "inconclusive": "long"}
VARIANTS = {
    "variants.0.name": "short",
    "variants.0.title": "Sale",
    "variants.0.weight": "1",
    "variants.1.name": "long",
    "variants.1.title": "Our sale begins",
    "variants.1.weight": "3",
    "variants.1.ios.subtitle": "Today",  # has no input, and stays
}
FORM = VARIANTS | {f"test_{name}": str(value) for name, value in TEST.items()}


def inputs(page):
    """The values of the page's inputs for variants and their test."""
    found = re.findall(r'<input[^>]* name="((?:variants|test_s|test_m)[^"]*)"[^>]*', page)
    values = [
        re.search(rf'name="{re.escape(name)}"[^>]* value="([^"]*)"', page)[1] for name in found
    ]
    return dict(zip(found, values, strict=True))


def test_a_test_is_written_reviewed_and_sent(sender, alice):
    page = review(sender, written(alice, **FORM))

    shown = [
        (name, part, found[0].shown[0].content.title)
        for name, part, found in page.context["variants_shown"]
    ]
    assert shown == [("short", "25 %", "Sale"), ("long", "75 %", "Our sale begins")]
    words = "10 % of the audience get one of the variants at once, and the rest the better one"
    assert (
        f"{words} after 1 h, by displays. If the numbers say nothing, it is “long”."
        in (page.context["test_words"])
    )
    assert words in page.content.decode()
    send(sender, written(alice, **FORM))
    row = Notification.objects.get()
    assert row.test == TEST
    first, second = row.content.variants
    assert (first["name"], second["ios"]) == ("short", {"subtitle": "Today"})


def test_variants_are_added_and_removed(sender, alice):
    def edit(change, **form):
        answer = sender.post(COMPOSE, written(alice, **form) | {"variant": change})
        assert answer.status_code == 200
        return inputs(answer.content.decode())

    added = edit("add")
    assert (added["variants.0.name"], added["variants.1.name"]) == ("A", "B")
    more = edit("add", **FORM)
    assert more.items() >= {"variants.2.name": "A", "test_share": "10"}.items()
    left = edit("remove.0", **FORM | {"variants.2.name": "third"})
    assert (left["variants.0.name"], left["variants.1.name"]) == ("long", "third")
    assert left["variants.0.ios.subtitle"] == "Today"
    assert "variants.2.name" not in left


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"test_share": "100"}, "test", "Percent of the audience: "),
        ({"test_minutes": "soon"}, "test", "Minutes: "),
        ({"test_inconclusive": "gone"}, "test", "If the numbers say nothing: "),
        ({"variants.1.name": "short"}, "variants", "Name (variant 2): "),
        ({"variants.1.weight": "0"}, "variants", "Weight (variant 2): "),
        ({"variants.2.name": ""}, "variants", "Name (variant 3): "),
    ],
)
def test_bad_input_is_refused_at_its_place_and_kept(sender, alice, change, field, words):
    form = FORM | change

    answer = review(sender, written(alice, **form))

    assert answer.status_code == 400
    (error,) = answer.context["errors"][field]
    assert error.startswith(words)
    page = answer.content.decode()
    texts = {
        name: value
        for name, value in form.items()
        if name not in {"test_metric", "test_inconclusive"}
    }
    assert inputs(page).items() >= texts.items()
    chosen = re.search(r'name="test_inconclusive">.*?value="([^"]*)" selected', page)
    assert chosen[1] == form["test_inconclusive"]
    assert not Notification.objects.exists()


def test_the_last_variant_becomes_the_content_of_all(sender, alice):
    form = written(alice, title="Old", **FORM) | {
        "variants.1.body": "Until Sunday.",
        "variants.1.web.title.none": "on",
        "variants.1.translations.de.title": "Ausverkauf",
        "web.title": "In browsers",
        "web.tag": "sale",
        "translations.de.title": "Alt",
        "translations.de.body": "Nur heute",
    }

    answer = sender.post(COMPOSE, form | {"variant": "remove.0"})

    one = answer.context["form"]
    assert (one.title, one.body, one.url) == (
        "Our sale begins",
        "Until Sunday.",
        "https://shop.example/sale",
    )
    assert one.extras == {
        "topic": "",
        "ios.subtitle": "Today",
        "web.tag": "sale",
        "web.title.none": "on",
        "translations.de.title": "Ausverkauf",
        "translations.de.body": "Nur heute",
    }
    page = answer.content.decode()
    assert inputs(page) == {}
    for replaced in ("Old", "Twenty per cent off.", "In browsers", "Alt"):
        assert f'<li class="ps-notification-text">{replaced}</li>' in page
    send(sender, shown_in(answer))
    row = Notification.objects.get()
    assert (row.title, row.content.variants, row.test) == ("Our sale begins", [], None)
