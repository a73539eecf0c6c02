"""Debian's Chromium, driven by Playwright."""

import shutil
from contextlib import contextmanager

import pytest
from playwright.sync_api import sync_playwright

_PATH = shutil.which("chromium")


def skip_without_chromium():
    if _PATH is None:
        pytest.skip("Chromium is not installed (Debian and Ubuntu: apt install chromium)")


@contextmanager
def running_chromium(*arguments):
    """The browser. Playwright keeps an event loop in this thread, and Django refuses to run in
    one."""
    skip_without_chromium()
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(
            executable_path=_PATH, args=["--no-sandbox", *arguments]
        )
        yield browser
        browser.close()
