"""Clients that others generate from docs/openapi.yaml: their types fit, and they do a round."""

import re

import pytest

from tests.clients import generators

SAID = r"""subscribed [-0-9a-f]{36}
sent [-0-9a-f]{36}
result sent: 1 of 1
refused 400 segment_not_found
"""
GENERATORS = [
    generators.openapi_python_client,
    generators.openapi_generator_for_python,
    generators.openapi_generator_for_typescript,
    generators.openapi_fetch,
]


@pytest.mark.parametrize("generate", GENERATORS, ids=lambda each: each.__name__)
def test_a_generated_client_subscribes_sends_reads_and_knows_an_error(generate, shop, tmp_path):
    generators.require_tools()
    program = generate(tmp_path)

    said = generators.run(*program, cwd=tmp_path, **shop.environment())

    assert re.fullmatch(SAID, said), said
