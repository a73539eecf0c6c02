"""Static files: names with a hash, compressed, kept by browsers for a year."""

import gzip
import re

import brotli
import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.test import Client

NAME = "console/console.css"
FOR_EVER = "public, max-age=31536000, immutable"


def get(path, method="get", **headers):
    return getattr(Client(), method)(path, headers=headers)


def source(name=NAME):
    with open(finders.find(name), "rb") as file:
        return file.read()


def test_a_page_names_files_by_their_hash():
    assert re.fullmatch(r"/static/console/console\.[0-9a-f]{16}\.css", static(NAME))


@pytest.mark.parametrize(
    ("accepted", "encoding", "decompress"),
    [
        ("gzip, deflate, br, zstd", "br", brotli.decompress),
        ("gzip", "gzip", gzip.decompress),
        ("gzip;q=0.5, br; q=0.0", "gzip", gzip.decompress),
        ("identity, gzip;q=0", None, bytes),
    ],
)
def test_a_file_is_compressed_as_the_browser_accepts_it(accepted, encoding, decompress):
    served = get(static(NAME), accept_encoding=accepted)

    assert served.status_code == 200
    assert served.get("Content-Encoding") == encoding
    assert served["Vary"] == "Accept-Encoding"
    assert served["Content-Type"] == "text/css; charset=utf-8"
    assert decompress(served.content) == source()


def test_a_hashed_name_is_kept_for_a_year():
    first = get(static(NAME), accept_encoding="br")
    assert first["Cache-Control"] == FOR_EVER
    again = get(static(NAME), accept_encoding="br", if_none_match=first["ETag"])
    assert (again.status_code, again.content) == (304, b"")


def test_the_hash_of_another_version_gets_the_current_file_for_a_short_time():
    other = re.sub(r"\.[0-9a-f]{16}\.", f".{'0' * 16}.", static(NAME))
    served = get(other)
    assert served.content == source()
    assert served["Cache-Control"] == "public, max-age=300"


def test_a_plain_name_is_served_too():
    served = get(f"/static/{NAME}")
    assert b"".join(served) == source()
    assert "immutable" not in served["Cache-Control"]


@pytest.mark.parametrize(
    "path",
    [
        f"/static/console/nothing.{'0' * 16}.css",
        f"/static/../settings.{'0' * 16}.py",
        f"/static/%2e%2e/settings.{'0' * 16}.py",
        f"/console/console.{'0' * 16}.css",
    ],
)
def test_only_static_files_have_hashed_names(path):
    assert get(path).status_code == 404


def test_a_hashed_name_refuses_posts():
    assert get(static(NAME), "post").status_code in {404, 405}


@pytest.mark.parametrize("bundle", settings.STATIC_BUNDLES)
def test_a_bundle_is_all_of_its_files_in_one(bundle):
    served = get(static(bundle))
    parts = settings.STATIC_BUNDLES[bundle]
    assert served.content == b"".join(map(source, parts))
    assert served["Cache-Control"] == FOR_EVER
    kind = "css" if bundle.endswith("css") else "javascript"
    assert served["Content-Type"] == f"text/{kind}; charset=utf-8"


def test_a_bundle_that_lacks_a_file_is_not_served(settings):
    settings.STATIC_BUNDLES = {"console/half.css": (NAME, "console/nothing.css")}
    assert get(f"/static/console/half.{'0' * 16}.css").status_code == 404
