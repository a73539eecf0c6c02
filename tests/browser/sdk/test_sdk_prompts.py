"""prompt.mjs in Chromium, on a site with a strict content security policy."""

import json
import re
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import axe_playwright_python
import pytest
from django.conf import settings
from playwright.sync_api import expect

from channels_app.selectors import prompt_figures
from channels_app.services import channel_set_prompt
from subscriptions_app.models import Subscription
from tests.api.support import NOWHERE
from tests.browser.sdk.site import HTML, PUSH_SERVICE, SCRIPT, visit
from tests.factories import make_category
from tests.pipeline.support import until

pytestmark = pytest.mark.django_db(transaction=True)
LANGUAGES = ("en", "zh", "es", "ar", "pt", "id", "fr", "ja", "ru", "de")
NEWS = {"key": "news", "name": "News"}
OFFERS = {"key": "offers", "name": "Offers", "description": "Once a week.", "chosen": False}
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
TODAY = datetime(2027, 3, 1, 12, tzinfo=UTC)
PAGE = """<!DOCTYPE html><html lang="{lang}"><title>Alice</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self' {service};
  connect-src {service}; worker-src 'self'">
<meta name="viewport" content="width=device-width">
<main><h1>Alice</h1><p id="here"></p></main>
<script type="module" src="/notifications.js"></script></html>"""


def guide(site, call="addPrompt"):
    """The lines of docs/prompts.md that the site saves as a file, to call this function."""
    text = (settings.BASE_DIR / "docs" / "prompts.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```js\n(.*?)```", text, re.DOTALL)
    lines = next(each for each in blocks if f"import {{ {call} }}" in each)
    lines = lines.replace("https://push.example.com", site.service)
    return lines.replace("00000000-0000-0000-0000-000000000000", site.channel_id)


def use(site, lang="en", **options):
    """The site has a prompt with these options."""
    text = guide(site)
    text = text.replace('{ channel, kind: "slide-in" }', "{ channel, ...given }")
    text = text.replace("addPrompt(push", "globalThis.added = addPrompt(push")
    names = ["shown", "accepted", "refused", "blocked", "failed"]
    record = (
        "globalThis.push = push; globalThis.told = [];"
        f"for (const name of {names}) added.addEventListener(name, () => told.push(name));"
    )
    given = f"const given = {json.dumps(options)};\n"
    site.files["/notifications.js"] = (
        SCRIPT,
        f"{text}{record}".replace("const push", given + "const push"),
    )
    site.files["/"] = (HTML, PAGE.format(lang=lang, service=site.service))


def unanswered(context, answer="granted"):
    """Visitors whom the browser has not asked yet, and their answer when it does."""
    context.add_init_script(
        f"""
        Object.defineProperty(Notification, "permission", {{
          get: () => localStorage.getItem("permission") ?? "default",
        }});
        globalThis.asked = 0;
        Notification.requestPermission = async () => {{
          asked += 1;
          if ("{answer}" !== "default") localStorage.setItem("permission", "{answer}");
          return "{answer}";
        }};
        """
    )
    return context


def started(page):
    until(lambda: page.evaluate("Boolean(window.told)"))  # the policy forbids wait_for_function


def open_page(context, site, **options):
    """A page whose prompt has decided whether it appears."""
    page = visit(context, site, **options)
    started(page)
    page.evaluate("push.isSubscribed().then(() => new Promise((done) => setTimeout(done, 200)))")
    return page


def has_prompt(page):
    return page.locator("pushsvc-prompt").count() == 1


def told(page, *expected):
    until(lambda: page.evaluate("told") == list(expected))


def is_count(request):
    return request.url.endswith("/prompt-events") and request.method == "POST"


def counted(owner):
    figures = prompt_figures(owner.channel, days=1)
    return [(each.kind, each.shown, each.accepted) for each in figures]


def violations(page):
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return page.evaluate(
        """async () => (await axe.run({resultTypes: ["violations"]})).violations.flatMap(
             ({id, nodes}) => nodes.map(({target, html}) => `${id}: ${target} ${html}`))"""
    )


def test_the_browser_asks_only_after_a_click_and_the_visitor_is_subscribed(allowed, site, alice):
    use(site)
    page = open_page(unanswered(allowed), site)
    assert page.evaluate("Notification.permission") == "default"
    assert not page.evaluate("asked")
    page.get_by_role("button", name="Yes, notify me").click()
    told(page, "shown", "accepted")
    assert page.evaluate("asked") == 1
    expect(page.get_by_role("dialog")).to_contain_text("Notifications are on.")
    until(lambda: Subscription.objects.filter(channel=alice.channel).count() == 1)
    until(lambda: counted(alice) == [("slide-in", 1, 1)])
    page.get_by_role("button", name="Close").click()
    assert not has_prompt(page)
    assert not has_prompt(open_page(allowed, site))


def test_nobody_is_asked_who_is_subscribed_blocks_the_site_or_has_no_push(chromium, allowed, site):
    use(site, kind="bell")
    page = open_page(allowed, site)
    assert has_prompt(page)
    page.evaluate("push.subscribe()")
    expect(page.locator("pushsvc-prompt")).to_have_count(0)
    for lack in (
        'Object.defineProperty(Notification, "permission", {get: () => "denied"})',
        "delete window.Notification",
        "delete window.PushManager",
        'Object.defineProperty(window, "localStorage", {get: () => { throw new Error(); }})',
    ):
        with chromium.new_context() as other:
            other.grant_permissions(["notifications"], origin=site.origin)
            other.add_init_script(lack)
            assert not has_prompt(open_page(other, site, push_service=False)), lack


def test_it_appears_from_the_page_view_and_after_the_seconds_of_its_options(allowed, site):
    use(site, afterPages=2, afterSeconds=30)
    assert not has_prompt(open_page(allowed, site))
    allowed.clock.install(time=TODAY)
    page = visit(allowed, site)
    started(page)
    page.evaluate("push.isSubscribed()")
    allowed.clock.run_for(29_000)
    assert not has_prompt(page)
    allowed.clock.run_for(2_000)
    told(page, "shown")


def test_a_refusal_holds_for_days_and_the_last_for_good(allowed, site):
    use(site, againAfterDays=7, maxRefusals=2)
    allowed.clock.set_fixed_time(TODAY)
    page = open_page(allowed, site)
    page.get_by_role("button", name="Not now").click()
    told(page, "shown", "refused")
    assert not has_prompt(page)
    for days, is_shown in ((6, False), (8, True)):
        allowed.clock.set_fixed_time(TODAY + timedelta(days=days))
        page = open_page(allowed, site)
        assert has_prompt(page) == is_shown
    page.get_by_role("button", name="Not now").press("Escape")
    told(page, "shown", "refused")
    allowed.clock.set_fixed_time(TODAY + timedelta(days=900))
    assert not has_prompt(open_page(allowed, site))


def test_a_dialog_without_an_answer_appears_again_after_a_day(allowed, site):
    use(site)
    for days, is_shown in ((0, True), (0.9, False), (1.1, True)):
        allowed.clock.set_fixed_time(TODAY + timedelta(days=days))
        assert has_prompt(open_page(allowed, site)) == is_shown


@pytest.mark.parametrize(("answer", "event"), [("denied", "blocked"), ("default", "refused")])
def test_the_answer_to_the_browser_is_told(context, site, answer, event):
    use(site)
    page = open_page(unanswered(context, answer), site)
    page.get_by_role("button", name="Yes, notify me").click()
    told(page, "shown", event)
    if event == "blocked":
        expect(page.get_by_role("dialog")).to_contain_text("in its settings")
        page.keyboard.press("Escape")
    assert not has_prompt(page)
    assert not has_prompt(open_page(context, site))


def test_a_failure_is_told_and_can_be_repeated(allowed, site):
    use(site)
    page = open_page(allowed, site)
    page.evaluate("localStorage.setItem('push-service-fails', 'AbortError')")
    page.get_by_role("button", name="Yes, notify me").click()
    expect(page.get_by_role("status")).to_have_text("That did not work. Please try again later.")
    page.evaluate("localStorage.removeItem('push-service-fails')")
    page.get_by_role("button", name="Yes, notify me").click()
    told(page, "shown", "failed", "accepted")


def test_a_bell_opens_and_closes_with_the_keyboard(allowed, site):
    use(site, kind="bell")
    page = open_page(allowed, site)
    bell = page.get_by_role("button", name="Get notifications")
    assert not page.get_by_role("dialog").is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Get notifications")).to_be_visible()
    expect(page.get_by_role("button", name="Not now")).to_be_focused()
    page.keyboard.press("Escape")
    expect(bell).to_be_focused()
    expect(bell).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # on "Yes, notify me"
    told(page, "shown", "accepted")


def test_a_bell_counts_as_shown_once_a_day_and_not_at_all_if_the_site_says_so(allowed, site, alice):
    allowed.clock.set_fixed_time(TODAY)
    use(site, kind="bell", count=False)
    told(open_page(allowed, site), "shown")
    use(site, kind="bell")
    for days in (2, 2.5, 3.1):
        allowed.clock.set_fixed_time(TODAY + timedelta(days=days))
        with (
            allowed.expect_event("requestfinished", predicate=is_count)
            if days != 2.5
            else nullcontext()
        ):
            told(open_page(allowed, site), "shown")
    assert counted(alice) == [("bell", 2, 0)]


def test_a_visitor_who_unsubscribes_has_refused(allowed, site):
    use(site)
    page = open_page(allowed, site)
    page.evaluate("push.subscribe().then(() => push.unsubscribe())")
    assert not has_prompt(open_page(allowed, site))


def test_an_unsubscribe_is_one_refusal_however_many_tabs_learn_of_it(allowed, site):
    use(site, kind="bell", againAfterDays=0, maxRefusals=2)
    allowed.add_init_script(PUSH_SERVICE)
    pages = [open_page(allowed, site, push_service=False)]
    for _ in range(2):
        with pages[0].expect_popup() as opened:
            pages[0].evaluate("open('/')")
        pages.append(opened.value)
    for page in pages:
        started(page)
        page.evaluate("push.addEventListener('unsubscribed', () => told.push('left'))")
    pages[0].evaluate("push.subscribe().then(() => push.unsubscribe())")
    for page in pages:
        until(lambda page=page: "left" in page.evaluate("told"))
    assert has_prompt(open_page(allowed, site, push_service=False))


def test_a_button_in_the_page_subscribes_and_stays_after_a_refusal(allowed, site):
    use(site, kind="button", target="#here", afterPages=9)
    page = open_page(unanswered(allowed, "default"), site)
    button = page.locator("#here").get_by_role("button", name="Get notifications")
    button.click()
    told(page, "shown", "refused")
    page.evaluate(
        "Notification.requestPermission = async () => localStorage.permission = 'granted'"
    )
    button.click()
    told(page, "shown", "refused", "accepted")
    expect(page.locator("#here")).to_contain_text("Notifications are on.")


def test_chosen_categories_are_stored_for_the_new_subscription(allowed, site, alice):
    for each in (NEWS, OFFERS):
        make_category(alice.channel, each["key"])
    use(site, kind="categories", categories=[NEWS, OFFERS])
    page = open_page(allowed, site)
    yes = page.get_by_role("button", name="Yes, notify me")
    page.get_by_role("checkbox", name="News").uncheck()
    expect(yes).to_be_disabled()
    page.get_by_role("checkbox", name="Offers Once a week.").check()
    yes.click()
    expect(page.get_by_role("dialog")).to_contain_text("Notifications are on.")
    chosen = page.evaluate("push.preferences()")
    assert {each["key"]: each["chosen"] for each in chosen} == {"news": False, "offers": True}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "pop-up"}, "`kind` is one of"),
        ({"kind": "button"}, "needs a `target`"),
        ({"kind": "categories"}, "`categories` is empty"),
        ({"channel": ""}, "needs `push` and `channel`"),
    ],
)
def test_a_mistake_in_the_options_is_an_error(context, site, options, words):
    use(site, **options)
    with context.expect_event("weberror") as error:
        visit(context, site)
    assert words in str(error.value.error)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("lang", ["en", "ar"])
def test_axe_finds_no_violation_and_the_policy_blocks_nothing(chromium, site, lang, scheme):
    with chromium.new_context(color_scheme=scheme) as context:
        context.grant_permissions(["notifications"], origin=site.origin)
        complaints = []
        context.on("console", lambda said: complaints.append(said.text))
        for kind in ("slide-in", "bell", "button", "categories"):
            use(
                site,
                lang,
                kind=kind,
                target="#here" if kind == "button" else "body",
                categories=[NEWS, OFFERS],
            )
            page = open_page(context, site)
            page.evaluate("added.show()")
            if kind == "bell":
                page.locator(".bell").click()
            prompt = page.locator("pushsvc-prompt")
            assert prompt.get_attribute("dir") == ("rtl" if lang == "ar" else "ltr")
            prompt.evaluate("(each) => each.shadowRoot.getAnimations().forEach((a) => a.finish())")
            assert violations(page) == [], kind
        assert [said for said in complaints if "favicon" not in said and "404" not in said] == []


def test_the_dialog_is_at_the_side_where_lines_end_and_fits_a_phone(allowed, site):
    for lang, is_left in (("en", False), ("ar", True)):
        use(site, lang)
        page = open_page(allowed, site)
        page.evaluate("added.show()")
        page.set_viewport_size({"width": 1000, "height": 600})
        box = page.get_by_role("dialog").bounding_box()
        assert (box["x"] + box["width"] / 2 < 500) == is_left
        page.set_viewport_size({"width": 320, "height": 480})
        box = page.get_by_role("dialog").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 320
        assert box["y"] >= 0


def test_the_buttons_are_visible_in_a_low_window(allowed, site):
    many = [{"key": f"c{n}", "name": f"Category {n}"} for n in range(9)]
    use(site, kind="categories", categories=many)
    page = open_page(allowed, site)
    page.set_viewport_size({"width": 360, "height": 320})
    page.evaluate("added.show()")
    for button in page.locator(".buttons button").all():
        box = button.bounding_box()
        assert 0 <= box["y"] <= box["y"] + box["height"] <= 320
    last = page.get_by_label("Category 8")
    last.focus()
    box = last.bounding_box()
    assert box["y"] + box["height"] <= page.locator(".buttons").bounding_box()["y"]


def test_each_of_ten_languages_has_all_texts_and_a_site_replaces_them(allowed, site):
    own = {"en": {"title": "Fresh bread"}, "it": {"title": "Pane fresco", "allow": "Sì"}}
    use(site, kind="bell", texts=own)
    page = open_page(allowed, site)
    assert page.get_by_role("button", name="Fresh bread").count() == 1
    seen = set()
    for lang in LANGUAGES[1:]:
        use(site, f"{lang}-XX", kind="bell", texts=own)
        page.reload()
        page.locator(".bell").click()
        words = page.get_by_role("dialog").inner_text()
        assert "Not now" not in words
        seen.add(words)
    assert len(seen) == len(LANGUAGES) - 1
    use(site, "it", kind="bell", texts=own)
    page.reload()
    page.locator(".bell").click()
    expect(page.get_by_role("button", name="Sì")).to_be_visible()
    text = (settings.BASE_DIR / "pushsvc/sdk/prompt.mjs").read_text(encoding="utf-8")
    for name in ("choose", "close", "thanks", "blocked", "failed"):
        assert len(set(re.findall(rf'^    {name}:\s+"(.+)",$', text, re.MULTILINE))) == len(
            LANGUAGES
        )


def test_colours_come_from_variables(allowed, site):
    use(site)
    page = open_page(allowed, site)
    page.evaluate(
        "document.documentElement.style.setProperty('--pushsvc-background', 'rgb(1, 2, 3)')"
    )
    shown = page.get_by_role("dialog").evaluate("(each) => getComputedStyle(each).backgroundColor")
    assert shown == "rgb(1, 2, 3)"


def use_console(site, call="{ channel }"):
    """The site has the prompt that its owner sets up in the console."""
    text = guide(site, "addConsolePrompt").replace("{ channel })", f"{call})")
    text = text.replace("addConsolePrompt(push", "globalThis.added = addConsolePrompt(push")
    text += "globalThis.told = []; added.catch((error) => told.push(error.message));"
    site.files["/notifications.js"] = (SCRIPT, text)
    site.files["/"] = (HTML, PAGE.format(lang="en", service=site.service))


def set_up(owner, **options):
    rules = {"afterPages": 1, "afterSeconds": 0, "againAfterDays": 30, "maxRefusals": 3}
    options = {"kind": "slide-in", "scheme": "auto", **rules, **options}
    channel_set_prompt(channel_id=owner.channel.pk, is_on=True, options=options)


def test_a_site_shows_the_prompt_of_the_console_and_loads_it_once(allowed, site, alice):
    set_up(
        alice,
        kind="bell",
        colors={"background": "#102030", "accentText": "#ffeedd"},
        texts={"en": {"title": "Fresh bread"}},
    )
    use_console(site)
    complaints, loaded = [], []
    allowed.on("console", lambda said: complaints.append(said.text))
    page = visit(allowed, site)
    bell = page.get_by_role("button", name="Fresh bread")
    expect(bell).to_have_css("color", "rgb(255, 238, 221)")
    bell.click()
    expect(page.get_by_role("dialog")).to_have_css("background-color", "rgb(16, 32, 48)")
    assert [said for said in complaints if "favicon" not in said and "404" not in said] == []

    network = allowed.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.responseReceived", lambda told: loaded.append(told["response"]))
    page.reload()
    expect(bell).to_be_visible()
    options = [each for each in loaded if each["url"] == f"{site.service}/prompt"]
    assert [each["fromDiskCache"] for each in options] == [True]


def test_options_of_the_page_win_over_those_of_the_console(allowed, site, alice):
    set_up(alice, texts={"en": {"title": "Fresh bread"}})
    use_console(site, '{ channel, kind: "bell" }')
    page = visit(allowed, site)
    expect(page.get_by_role("button", name="Fresh bread")).to_be_visible()
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_a_chooser_of_the_console_offers_the_categories_of_the_channel(allowed, site, alice):
    make_category(alice.channel, "offers")
    make_category(alice.channel, "news", default=True)
    set_up(alice, kind="categories")
    use_console(site)
    page = visit(allowed, site)
    expect(page.get_by_role("checkbox", name="News")).to_be_checked()
    expect(page.get_by_role("checkbox", name="Offers")).not_to_be_checked()


def test_no_prompt_appears_without_one_in_the_console(allowed, site):
    use_console(site)
    page = visit(allowed, site)
    until(lambda: page.evaluate("Boolean(window.added)"))
    assert page.evaluate("added.then((prompt) => prompt === undefined)")
    assert not has_prompt(page)


def test_a_page_learns_why_it_has_no_prompt_of_the_console(allowed, site):
    use_console(site, f'{{ channel: "{NOWHERE}" }}')
    page = visit(allowed, site)
    until(lambda: page.evaluate("window.told?.length") == 1)
    assert "channel" in page.evaluate("told[0]")
