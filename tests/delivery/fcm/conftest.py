import pytest

from sandbox import running_fcm_sandbox


@pytest.fixture(scope="module")
def sandbox():
    with running_fcm_sandbox() as running:
        yield running
