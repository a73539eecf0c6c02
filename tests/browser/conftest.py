"""The package clients/browser, as npm makes it."""

import pytest

from tests.browser.built import pack
from tests.clients.generators import require_tools


@pytest.fixture(scope="session")
def tarball(tmp_path_factory):
    require_tools()
    return pack(tmp_path_factory.mktemp("package"))
