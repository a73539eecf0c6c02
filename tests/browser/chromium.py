"""Debian's Chromium, driven by Playwright."""

import shutil
from contextlib import contextmanager

import pytest
from django.db import connections
from playwright.sync_api import sync_playwright

from tests import missing

_PATH = shutil.which("chromium")
_ARGUMENTS = ["--no-sandbox"]
# For pages without notifications. It has no windows, and takes much less processor time.
WINDOWLESS_PATH = shutil.which("chromium-headless-shell") or _PATH


def skip_without_chromium():
    if _PATH is None:
        missing.skip_without("Chromium")


@contextmanager
def running_chromium(*arguments, path=_PATH):
    """The browser. Playwright keeps an event loop in this thread, and Django refuses to run in
    one."""
    skip_without_chromium()
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        with _launched(playwright.chromium, path, *arguments) as browser:
            yield browser
        connections.close_all()  # Django has some of their own for the loop, and loses them with it


def beside(browser):
    """A Chromium with windows, and so with notifications, beside another browser of Playwright,
    which can run only once in a thread."""
    return _launched(browser.browser_type, _PATH)


@contextmanager
def beside_with_profile(browser, folder, environment):
    """The same with a profile in the folder, as its only context."""
    launched = browser.browser_type.launch_persistent_context(
        folder, executable_path=_PATH, env=environment, args=_ARGUMENTS
    )
    yield launched
    launched.close()


@contextmanager
def _launched(kind, path, *arguments):
    browser = kind.launch(executable_path=path, args=[*_ARGUMENTS, *arguments])
    yield browser
    browser.close()
