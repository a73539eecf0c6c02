"""Staff at their browsers, and measurements of the pages that they see."""

import re
from contextlib import ExitStack
from pathlib import Path

import axe_playwright_python
from playwright.sync_api import expect

from tests.admin.support import signed_in

TIMEOUT = 120_000  # milliseconds; machines that run tests are busy
expect.set_options(timeout=TIMEOUT)
PHONE = {"width": 390, "height": 844}
_AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")


class Console:
    """Pages of staff, each with cookies of its own, and the browser's complaints about them.

    `answers`: statuses of refusals that the test is about; the browser reports these as errors.
    """

    def __init__(self, chromium, service):
        self.address = service
        self.answers = set()
        self.complaints = []
        self._chromium = chromium
        self._contexts = ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self._contexts.close()
        if kind is None:
            complaints = [each for each in self.complaints if not self._is_expected(each)]
            assert not complaints, complaints

    def open(self, path="/admin/", user=None, *, axe=False, **options):
        """A page at `path`, in a browser in which `user` has signed in; with axe-core for
        `violations_of` if that is wanted."""
        context = self._chromium.new_context(base_url=self.address, **options)
        self._contexts.enter_context(context)
        context.set_default_timeout(TIMEOUT)
        context.set_default_navigation_timeout(TIMEOUT)
        context.on("console", self._note)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        if user is not None:
            session = signed_in(user).cookies["sessionid"].value
            cookie = {"name": "sessionid", "value": session, "url": self.address}
            context.add_cookies([cookie])
        if axe:
            context.add_init_script(path=_AXE)
        page = context.new_page()
        page.goto(path)
        return page

    def _note(self, said):
        if said.type in ("error", "warning"):
            self.complaints.append(f"{said.page.url if said.page else ''}: {said.text}")

    def _is_expected(self, complaint):
        found = re.search(r"responded with a status of (\d+)", complaint)
        return found is not None and int(found[1]) in self.answers


def path_of(page):
    return page.url.partition("/admin/")[2].partition("?")[0]


def post(page, path, **fields):
    """The status of a request that no button of the page makes, with the page's cookies and
    token."""
    token = page.locator("[name=csrfmiddlewaretoken]").first.input_value()
    form = {"csrfmiddlewaretoken": token} | fields
    headers = {"Referer": page.url}
    return page.request.post(path, form=form, headers=headers, max_redirects=0).status


def is_wider_than_screen(page):
    return page.evaluate("document.documentElement.scrollWidth > innerWidth")


def press_until(page, key, condition, *, most=150):
    """Presses the key until the focused element meets the condition, a script about `it`."""
    for _ in range(most):
        page.keyboard.press(key)
        if page.evaluate(f"(() => {{ const it = document.activeElement; return {condition}; }})()"):
            return
    raise AssertionError(f"{key} does not lead to {condition}")


def errors_of(page):
    """Errors of the page for a reader with a screen reader or poor sight."""
    return page.evaluate(_ERRORS)


def violations_of(page, *rules):
    """What axe-core finds on the page, which must have been opened with it. `rules`: those
    that are asked; all if none is given."""
    return page.evaluate(
        """async (rules) => {
          const asked = rules.length ? { runOnly: { type: "rule", values: rules } } : {};
          const { violations } = await axe.run({ resultTypes: ["violations"], ...asked });
          return violations.flatMap(({ id, nodes }) => nodes.map(
            ({ target, html }) => `${id}: ${target} ${html.slice(0, 120)}`));
        }""",
        rules,
    )


def choose_scheme(page, scheme):
    """As the button of the side bar does. Colours that change gradually have changed at the end."""
    menu = page.locator("#user-menu")
    menu.get_by_role("button", name=scheme, include_hidden=True).dispatch_event("click")
    page.locator(f"html.{scheme}").wait_for(state="attached")
    page.evaluate("document.getAnimations().forEach((each) => each.finish())")


# Contrast by WCAG 2.2 (success criterion 1.4.3). A canvas turns any notation of a colour into
# bytes, and lays what is half transparent over what is beneath.
_ERRORS = """
() => {
  const errors = [];
  const isShown = (it) => it.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const name = (it) => [it.tagName, it.id, ...[...it.classList].slice(0, 4)].join(".");

  const headings = [...document.querySelectorAll("h1")].filter(isShown);
  if (headings.length !== 1) errors.push(`${headings.length} h1`);
  for (const image of document.images)
    if (!image.hasAttribute("alt")) errors.push(`no alt: ${image.src}`);
  for (const field of document.querySelectorAll("input, select, textarea")) {
    if (field.type === "hidden" || !isShown(field)) continue;
    const labels = [...(field.labels ?? [])].map((label) => label.textContent.trim());
    const given = field.getAttribute("aria-label") ?? field.getAttribute("aria-labelledby");
    if (!given && !labels.some(Boolean) && field.type !== "submit")
      errors.push(`no label: ${name(field)} ${field.name}`);
  }
  for (const it of document.querySelectorAll("a[href], button")) {
    if (!isShown(it) || it.closest("[aria-hidden=true]")) continue;
    const picture = it.querySelector("img[alt]")?.alt;
    if (it.textContent.trim() || it.ariaLabel || it.title || picture) continue;
    errors.push(`no name: ${name(it)}`);
  }
  for (const cell of document.querySelectorAll("thead th"))
    if (!cell.hasAttribute("scope")) errors.push(`no scope: ${cell.textContent.trim()}`);

  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const painted = (...layers) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const layer of layers) {
      canvas.fillStyle = layer;
      canvas.fillRect(0, 0, 1, 1);
    }
    return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const beneath = (it) => {
    const layers = [];
    for (let at = it; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== "none") return null;
      layers.unshift(style.backgroundColor);
    }
    return ["#fff", ...layers];
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((byte) => byte / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const seen = new Set();
  for (const it of document.querySelectorAll("body *")) {
    const own = [...it.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data);
    const isField = it.matches("input:not([type=checkbox], [type=radio], [type=hidden]), select");
    if (!own.join("").trim() && !(isField && it.value)) continue;
    if (it.matches(":disabled, :disabled *, .material-symbols-outlined")) continue;
    if (it.matches("option, script, style, template")) continue;
    if (!isShown(it) || it.closest(".ps-hidden, .sr-only, [aria-hidden=true]")) continue;
    const layers = beneath(it);
    if (layers === null) continue;
    const style = getComputedStyle(it);
    const [low, high] = [luminance(painted(...layers)), luminance(painted(...layers, style.color))]
      .sort((one, other) => one - other);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const error = `contrast ${ratio.toFixed(1)}: ${name(it)}`;
    if (ratio < (isLarge ? 3 : 4.5) - 0.01 && !seen.has(error)) {
      seen.add(error);
      errors.push(`${error} "${own.join("").trim().slice(0, 30)}"`);
    }
  }
  return errors;
}
"""
