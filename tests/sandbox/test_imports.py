"""The sandbox and the embedded servers are for client teams too, and need no web framework."""

import subprocess
import sys

import pytest

LOADED = """
import sys
import {package}
print(*sorted({{name.partition(".")[0] for name in sys.modules}}))
"""


@pytest.mark.parametrize("package", ["sandbox", "local.embedded"])
def test_a_package_that_stands_alone_loads_neither_django_nor_celery(package):
    command = [sys.executable, "-c", LOADED.format(package=package)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert package.partition(".")[0] in loaded
    assert not {"django", "celery", "kombu", "rest_framework"} & set(loaded)
