"""A Firefox without a screen: its profile, its pages, and the notifications that it shows.

It reaches only this machine: every other address goes to a proxy that does not exist.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from functools import cached_property

from tests.browser.firefox.marionette import Marionette

_STARTS_WITHIN = 60
_OPTIONS = ("--headless", "--no-remote", "--marionette", "--remote-allow-system-access")

_PREFERENCES = {
    # its push service
    "dom.push.testing.allowInsecureServerURL": True,
    "dom.push.retryBaseInterval": 100,
    # a permission prompt is answered with yes, and notifications are windows of Firefox's own
    "permissions.default.desktop-notification": 1,
    "alerts.useSystemBackend": False,
    "ui.prefersReducedMotion": 1,  # they close at once when they are clicked
    # Any free port, written to a file. A driver's usual preferences would switch push off.
    "marionette.port": 0,
    "remote.prefs.recommended": False,
    # no questions at the first start
    "termsofuse.bypassNotification": True,
    "browser.preonboarding.enabled": False,
    "datareporting.policy.firstRunURL": "",
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "browser.newtabpage.enabled": False,
    # no calls to other hosts
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "app.update.disabledForTesting": True,
    "datareporting.healthreport.uploadEnabled": False,
    "toolkit.telemetry.enabled": False,
    "app.normandy.enabled": False,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
}


def installed():
    """The path of Debian's or another Firefox, or None."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


class Firefox:
    """Runs from `start` to `stop`. `folder` becomes its home; its output goes to `log`.

    `start` does not wait until Firefox is ready, which takes seconds; the first use does.
    """

    def __init__(self, folder, push_server, log):
        self._profile = folder / "profile"
        self._profile.mkdir()
        _write_preferences(self._profile, _PREFERENCES | {"dom.push.serverURL": push_server})
        self._home, self._log = folder, log
        self._process = None

    def start(self):
        self._process = subprocess.Popen(
            [installed(), *_OPTIONS, "--profile", str(self._profile)],
            env=os.environ | {"HOME": str(self._home), "MOZ_CRASHREPORTER_DISABLE": "1"},
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    @cached_property
    def _remote(self):
        remote = Marionette(self._port())
        remote.call("WebDriver:NewSession")
        return remote

    def _port(self):
        path = self._profile / "MarionetteActivePort"
        end = time.monotonic() + _STARTS_WITHIN
        while not (path.exists() and path.read_text()):
            assert self._process.poll() is None, "Firefox has ended"
            assert time.monotonic() < end, "Firefox did not start"
            time.sleep(0.05)
        return int(path.read_text())

    def stop(self):
        """Ends it and every process that it started."""
        if "_remote" in vars(self):
            self._remote.close()
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def open(self, url):
        self._remote.call("WebDriver:Navigate", url=url)

    def click(self, selector):
        """Clicks in the open page, as a visitor does."""
        element = self._remote.call("WebDriver:FindElement", using="css selector", value=selector)
        self._remote.call("WebDriver:ElementClick", id=next(iter(element.values())))

    def click_inside(self, host, selector):
        """The same in the shadow tree of an element."""
        element = self._remote.call("WebDriver:FindElement", using="css selector", value=host)
        root = self._remote.call("WebDriver:GetShadowRoot", id=next(iter(element.values())))
        button = self._remote.call(
            "WebDriver:FindElementFromShadowRoot",
            shadowRoot=next(iter(root.values())),
            using="css selector",
            value=selector,
        )
        self._remote.call("WebDriver:ElementClick", id=next(iter(button.values())))

    def script(self, body, *arguments):
        """The return value of the body of an async function, run in the open page."""
        return self._execute(f"return (async (...given) => {{ {body} }})(...arguments)", arguments)

    def in_page(self, expression):
        """The value of an expression of the page's own; a promise is awaited."""
        return self.script("return await window.eval(given[0]);", expression)

    def notifications(self):
        """The notifications that the worker's registration of the open page lists as shown."""
        return self.script(
            """const registration = await navigator.serviceWorker.ready;
            return (await registration.getNotifications()).map(
                ({title, body, tag, data}) => ({title, body, tag, data}));"""
        )

    def on_screen(self):
        """(title, body) of the notifications that a visitor sees."""
        return [
            tuple(each)
            for each in self._in_chrome(
                """return [...Services.wm.getEnumerator("alert:alert")]
                    .filter(({gIsActive}) => gIsActive)  // loaded, and ready to be clicked
                    .map(({document}) =>
                        [document.getElementById("alertTitleLabel").getAttribute("value"),
                         document.getElementById("alertTextLabel").textContent]);"""
            )
        ]

    def click_notification(self):
        """Clicks the only notification that is shown."""
        self._in_chrome(
            """const [alert, ...others] = Services.wm.getEnumerator("alert:alert");
            if (!alert || others.length) throw new Error("not one notification on the screen");
            alert.document.getElementById("alertNotification").click();"""
        )

    def close_notifications(self):
        """Closes every notification with its button."""
        self._in_chrome(
            """for (const {document} of Services.wm.getEnumerator("alert:alert"))
                document.getElementById("alert-close").click();"""
        )

    def pages(self):
        """The addresses of all tabs, in their order."""
        return self._in_chrome(
            """const {gBrowser} = Services.wm.getMostRecentWindow("navigator:browser");
            return gBrowser.browsers.map((browser) => browser.currentURI.spec);"""
        )

    def set_offline(self, is_offline):
        """As in the menu *Work Offline*: the connection to the push service is cut, too."""
        self._in_chrome("Services.io.offline = arguments[0];", is_offline)

    @contextmanager
    def blocking_site_data(self):
        """As with *Block all cookies* in its settings."""
        name = "network.cookie.cookieBehavior"
        self._in_chrome("Services.prefs.setIntPref(...arguments);", name, 2)
        try:
            yield
        finally:
            self._in_chrome("Services.prefs.clearUserPref(arguments[0]);", name)

    def forget(self):
        """Back to one empty tab, without notifications, site data, workers and subscriptions."""
        self._in_chrome(
            """for (const alert of Services.wm.getEnumerator("alert:alert")) alert.close();
            const {gBrowser} = Services.wm.getMostRecentWindow("navigator:browser");
            for (const tab of gBrowser.tabs.slice(1)) gBrowser.removeTab(tab);"""
        )
        self.open("about:blank")
        # Workers first: they would subscribe again when they lose their subscriptions.
        for kind in ("CLEAR_DOM_QUOTA", "CLEAR_DOM_PUSH_NOTIFICATIONS"):
            self._in_chrome(
                """const kind = Ci.nsIClearDataService[arguments[0]];
                return new Promise((done) => Services.clearData.deleteData(kind, done));""",
                kind,
            )

    def _in_chrome(self, script, *arguments):
        """Runs with the rights of Firefox itself."""
        self._remote.call("Marionette:SetContext", value="chrome")
        try:
            return self._execute(script, arguments)
        finally:
            self._remote.call("Marionette:SetContext", value="content")

    def _execute(self, script, arguments):
        return self._remote.call("WebDriver:ExecuteScript", script=script, args=list(arguments))


def _write_preferences(profile, preferences):
    lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in preferences.items()]
    (profile / "user.js").write_text("".join(lines))
