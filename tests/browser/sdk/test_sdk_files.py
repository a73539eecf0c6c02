"""The files under /sdk/, and the snippet that loads them."""

import gzip
import re
import shutil
from base64 import b64encode
from hashlib import sha256, sha384

import brotli
import pytest
from django.conf import settings
from django.test import Client

from pushsvc.sdk import files, snippet, worker_snippet

HOST, CHANNEL = "https://push.example.com", "00000000-0000-0000-0000-000000000000"


def get(name, **headers):
    return Client().get(f"/sdk/{name}", headers=headers)


def doc(name="browser.md"):
    return (settings.BASE_DIR / "docs" / name).read_text(encoding="utf-8")


def code_blocks(language, name="browser.md"):
    return re.findall(rf"```{language}\n(.*?)```", doc(name), re.DOTALL)


def types():
    return get("push.d.ts").content.decode()


def hashed_name():
    return re.search(r"/sdk/(push\.\w+\.js)", snippet(HOST, CHANNEL)).group(1)


def test_the_guide_shows_the_snippet_of_the_console():
    assert code_blocks("html")[0] == snippet(HOST, CHANNEL)
    assert code_blocks("js")[0] == worker_snippet(HOST)


def test_the_snippet_holds_the_hash_of_its_script():
    served = get(hashed_name()).content
    assert hashed_name() == f"push.{sha256(served).hexdigest()[:16]}.js"
    integrity = b64encode(sha384(served).digest()).decode()
    assert f'integrity="sha384-{integrity}"' in snippet(HOST, CHANNEL)


@pytest.mark.parametrize("name", ["push-sw.js", "push-sw.mjs", "push.d.ts", "prompt.d.ts"])
def test_the_served_file_is_the_source_itself(name):
    source = (settings.BASE_DIR / "pushsvc" / "sdk" / name.replace("mjs", "js")).read_bytes()
    assert get(name).content == source


def test_the_script_holds_each_of_its_modules_and_links_to_none():
    served = get("push.js").content.decode()
    modules = (settings.BASE_DIR / "pushsvc" / "sdk" / "page").glob("*.js")
    names = [
        name
        for path in modules
        for name in re.findall(r"^export (?:const|class) (\w+)", path.read_text(), re.MULTILINE)
    ]
    assert "PushError" in names
    defined = re.findall(r"^(?:const|class) (\w+)", served, re.MULTILINE)
    assert [name for name in names if defined.count(name) != 1] == []
    assert re.findall(r"^(?:import|export)\b.*", served, re.MULTILINE) == []
    assert "@param" not in served  # visitors need no types


def test_the_prompt_is_its_source_without_comments_for_developers():
    source = (settings.BASE_DIR / "pushsvc" / "sdk" / "prompt.mjs").read_text(encoding="utf-8")
    lines = get("prompt.mjs").content.decode().splitlines()
    left_out = [each.strip() for each in source.splitlines() if each not in lines]
    assert "* @param {string} tag" in left_out
    assert [each for each in left_out if not each.startswith(("*", "/**"))] == []


def test_the_module_is_the_script_and_its_exports():
    module = get("push.mjs").content
    assert module.startswith(get("push.js").content)
    assert b"export const { init, PushError }" in module


@pytest.mark.parametrize(
    ("accepted", "encoding", "decompress"),
    [("gzip, deflate, br", "br", brotli.decompress), ("gzip", "gzip", gzip.decompress)],
)
def test_the_scripts_are_under_8_kb_compressed(accepted, encoding, decompress):
    for name in (hashed_name(), "prompt.mjs"):
        served = get(name, accept_encoding=accepted)
        assert served["Content-Encoding"] == encoding
        assert len(served.content) < 8000
        assert decompress(served.content) == get(name).content


def test_a_hashed_name_is_cached_for_a_year_and_a_plain_one_for_minutes():
    assert get(hashed_name())["Cache-Control"] == "public, max-age=31536000, immutable"
    for name in ("push.js", "push.mjs", "push-sw.js", "push-sw.mjs", "push.d.ts"):
        assert get(name)["Cache-Control"] == "public, max-age=300"


def test_an_unchanged_file_is_not_sent_again():
    for encoding in ("identity", "gzip", "br"):
        first = get("push-sw.js", accept_encoding=encoding)
        again = get("push-sw.js", accept_encoding=encoding, if_none_match=first["ETag"])
        assert (again.status_code, again.content) == (304, b"")
        assert again["Access-Control-Allow-Origin"] == "*"
    assert get("push-sw.js", if_none_match='"another"').status_code == 200


@pytest.mark.parametrize("name", ["push.js", "push.mjs", "push-sw.js", "push-sw.mjs", "prompt.mjs"])
def test_any_origin_may_load_the_scripts(name):
    served = get(name, origin="https://alice.example")
    assert served["Access-Control-Allow-Origin"] == "*"
    assert served["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert served["Content-Type"] == "text/javascript; charset=utf-8"
    assert served["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name", ["push.0000000000000000.js", "files.py", "..%2Ffiles.py"])
def test_an_unknown_name_is_not_found(name):
    served = get(name)
    assert (served.status_code, served.json()["code"]) == (404, "not_found")


def test_a_released_script_is_served_permanently(tmp_path, monkeypatch):
    current = get("push.js").content
    shutil.copytree(files._FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "released" / "1.0.0.js").write_bytes(current)
    with (tmp_path / "page" / "script.js").open("a") as last:
        last.write('void "newer";\n')
    monkeypatch.setattr(files, "_FOLDER", tmp_path)
    files.files.cache_clear()
    try:
        old = f"push.{sha256(current).hexdigest()[:16]}.js"
        assert get(old).content == current
        assert hashed_name() != old
        assert get(hashed_name()).content.endswith(b'void "newer";\n})();\n')
    finally:
        files.files.cache_clear()


def test_every_error_code_is_in_the_script_the_types_and_the_guide():
    script = get("push.js").content.decode()
    todo = script[script.index("const TODO") : script.index("class PushError")]
    in_script = re.findall(r"^  (\w+):", todo, re.MULTILINE)
    in_types = re.findall(r'^  \| "(\w+)"', types(), re.MULTILINE)
    table = doc().partition("\n## Errors\n")[2].partition("\n## ")[0]
    in_doc = re.findall(r"^\| `(\w+)` \| .+ \|$", table, re.MULTILINE)
    assert sorted(in_script) == sorted(in_types) == sorted(set(in_doc) - {"code"})
