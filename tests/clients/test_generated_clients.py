"""Clients that others generate from docs/openapi.yaml: their types fit, and they do a round."""

import re

import pytest

from tests.clients import generators
from tests.clients.generators import NODE, PYTHON, require_go, require_php, require_tools

SAID = r"""subscribed [-0-9a-f]{36}
sent [-0-9a-f]{36}
result sent: 1 of 1
refused 400 segment_not_found
"""
CLIENTS = {
    generators.openapi_python_client: (PYTHON, "openapi_python_client.py"),
    generators.openapi_generator_for_python: (PYTHON, "openapi_generator.py"),
    generators.openapi_generator_for_typescript: (NODE, "openapi_generator.js"),
    generators.openapi_generator_for_go: ("./program",),
    generators.openapi_generator_for_php: ("php", "openapi_generator.php"),
    generators.openapi_fetch: (NODE, "openapi_fetch.js"),
}
NEEDS = {
    generators.openapi_generator_for_go: require_go,
    generators.openapi_generator_for_php: require_php,
}


@pytest.mark.parametrize("make", CLIENTS, ids=lambda each: each.__name__)
def test_a_generated_client_subscribes_sends_reads_and_knows_an_error(make, shop, workshop):
    require_tools()
    NEEDS.get(make, require_tools)()
    folder = workshop.kept(make)

    said = generators.run(*CLIENTS[make], cwd=folder, **shop.environment())

    assert re.fullmatch(SAID, said), said
