"""Sites that bundlers and frameworks build with clients/browser, from files of the project and its
documents."""

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.error import URLError
from urllib.request import urlopen

from bench.ports import own_port
from tests.clients.generators import CHECKOUT, NODE, TOOLS, run
from tests.pipeline.processes import kill
from tests.pipeline.support import until

PACKAGE = CHECKOUT / "clients" / "browser"
_FRAMEWORKS = CHECKOUT / ".venv" / "recipes"  # .ci/recipes, installed
_SERVICE = "https://push.example.com"
_CHANNEL = "00000000-0000-0000-0000-000000000000"
# The plugin for Vite adds its script to `head`, and does without if there is none.
_PAGE = """<!doctype html><html lang="en"><head><title>Alice</title></head>
<body><button id="push-subscribe">Get notifications</button>
<script type="module" src="/main.js"></script></body></html>"""
# Added to the module with `push`, in JavaScript or TypeScript: a test has no other way to it.
_EXPOSED = """
const told: string[] = [];
push.addEventListener("error", (event) => told.push(event.detail.code));
Object.assign(globalThis, { push, told });
"""
# A click on a button that the server has rendered is lost until React handles it.
IS_READY = """(() => {
  const button = document.getElementById("push-subscribe");
  const isRendered = document.querySelector("script[src*='/_next/']");
  const isHandled = ([name]) => name.startsWith("__reactProps");
  return Boolean(button && (!isRendered || Object.entries(button).some(isHandled)));
})()"""
_NEXT = {
    "app/layout.js": """export default function Layout({ children }) {
      return <html lang="en"><body>{children}</body></html>;
    }""",
    "app/page.js": """import Subscribe from "./subscribe";
    export default function Page() {
      return <Subscribe />;
    }""",
}
_NEW_ANGULAR_APP = ("--minimal", "--skip-install", "--skip-git", "--defaults", "--style=css")
_BUNDLED = (
    "Workbox: generateSW",
    "Workbox: injectManifest",
    "Vite PWA: generateSW",
    "Vite PWA: injectManifest",
    'A worker of type "module"',
    "A worker in a subfolder",
)
# The sections of docs/recipes.md to test: `make recipes` tests those of frameworks.
SECTIONS = ("Angular", "Next") if "RECIPES" in os.environ else _BUNDLED


def pack(folder):
    """The tarball of the package. It is made of copies, because npm writes into its folder."""
    for name in ("clients/browser", "pushsvc/sdk"):
        shutil.copytree(CHECKOUT / name, folder / name)
    run("npm", "pack", "--silent", folder / "clients" / "browser", cwd=folder)
    (tarball,) = folder.glob("*.tgz")
    return tarball


def install(tarball, project):
    """Installs the package, beside the pinned packages of .ci/clients."""
    _write(project, "package.json", '{"type": "module"}')
    _unpack(tarball, project)
    for each in (TOOLS / "node_modules").iterdir():
        (project / "node_modules" / each.name).symlink_to(each)


def _unpack(tarball, project):
    shutil.unpack_archive(tarball, project / "node_modules", "gztar", filter="data")
    (project / "node_modules" / "package").rename(project / "node_modules" / "pushsvc-browser")


@contextmanager
def running_recipe(section, tarball, folder, names):
    """Builds the site of this section of docs/recipes.md, and yields the origin that serves it.

    `names` are those of `names_for`. Its pages have `push`, and `told`: the codes of the errors
    outside of calls.
    """
    if section == "Next":
        with _beside_frameworks(tarball) as project:
            _build_next(section, project, names)
            with _running_next(project) as origin:
                yield origin
    elif section == "Angular":
        with (
            _beside_frameworks(tarball) as project,
            serving(_built_angular(section, project, names)) as origin,
        ):
            yield origin
    else:
        install(tarball, folder)
        with serving(_bundled(section, folder, names)) as origin:
            yield origin


def names_for(service, channel_id):
    """What to write for the address and the id in the documents."""
    return {_SERVICE: service, _CHANNEL: str(channel_id)}


def scope_of(section):
    return "/shop/" if "subfolder" in section else "/"


@contextmanager
def serving(folder):
    """The origin of a site with these files."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        try:
            yield f"http://localhost:{server.server_port}"
        finally:
            server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Keeps requests out of the tests' output."""


# --- with bundlers --------------------------------------------------------------------------------


def _bundled(section, project, names):
    _write(project, "index.html", _PAGE)
    _follow(section, project, names)
    run("vite", "build", cwd=project)
    dist = project / "dist"
    if (project / "build-sw.mjs").exists():
        run(NODE, "build-sw.mjs", cwd=project)
    for name in ("sw.js", "shop/sw.js"):
        if (project / name).exists():
            (dist / name).parent.mkdir(exist_ok=True)
            shutil.copy(project / name, dist / name)
    return dist


# --- with frameworks ------------------------------------------------------------------------------


@contextmanager
def _beside_frameworks(tarball):
    """A project that has installed the package, below the pinned packages of .ci/recipes."""
    with tempfile.TemporaryDirectory(dir=_FRAMEWORKS) as folder:
        _unpack(tarball, Path(folder))
        yield Path(folder)


def _run_framework(*command, cwd):
    run(*command, cwd=cwd, **_environment())


def _environment():
    folders = [TOOLS / "bin", _FRAMEWORKS / "node_modules" / ".bin"]
    return {
        "PATH": ":".join([*map(str, folders), os.environ["PATH"]]),
        "HOME": tempfile.gettempdir(),  # not the project: Next looks for packages only below it
        "NG_CLI_ANALYTICS": "false",
        "NEXT_TELEMETRY_DISABLED": "1",
        "npm_config_offline": "true",
    }


def _built_angular(section, project, names):
    """What `ng` makes, with the files of the section."""
    _run_framework("ng", "new", "shop", "--routing=false", *_NEW_ANGULAR_APP, cwd=project)
    app = project / "shop"
    package = (app / "package.json").read_text()
    # Without it, `ng generate` would call the registry.
    known = '"@angular/core":'
    needed = f'"@angular/service-worker": "^22.2.0", {known}'
    assert known in package
    (app / "package.json").write_text(package.replace(known, needed))
    _run_framework("ng", "generate", "service-worker", cwd=app)
    _follow(section, app, names)
    _run_framework("ng", "build", cwd=app)
    return app / "dist" / "shop" / "browser"


def _build_next(section, project, names):
    _write(project, "package.json", '{"private": true}')
    for name, text in _NEXT.items():
        _write(project, name, text)
    _follow(section, project, names)
    _run_framework("next", "build", cwd=project)


@contextmanager
def _running_next(project):
    port = own_port()
    program = _FRAMEWORKS / "node_modules" / ".bin" / "next"
    with (project / "log").open("w") as log:
        process = subprocess.Popen(
            [str(program), "start", "--hostname", "127.0.0.1", "--port", str(port)],
            cwd=project,
            env=_environment(),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            origin = f"http://localhost:{port}"
            until(lambda: process.poll() is not None or _answers(origin), seconds=60)
            assert process.poll() is None, (project / "log").read_text()
            yield origin
        finally:
            kill(process)


def _answers(origin):
    try:
        with urlopen(origin):
            return True
    except URLError:
        return False


# --- files ----------------------------------------------------------------------------------------


def _follow(section, project, names):
    """Writes the files of the section of docs/recipes.md; their first lines name them."""
    text = (CHECKOUT / "docs" / "recipes.md").read_text()
    first, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    (found,) = [each for each in sections if each.startswith(f"{section}\n")]
    blocks = re.findall(r"```(?:js|jsx|ts)\n// (\S+)\n(.*?)```", first + found, re.DOTALL)
    for name, block in blocks:
        text = block
        for name_there, name_here in names.items():
            text = text.replace(name_there, name_here)
        exposed = _EXPOSED if name.endswith(".ts") else _EXPOSED.replace(": string[]", "")
        _write(project, name, text + (exposed if "const push = init(" in text else ""))


def _write(project, name, text):
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
