import pytest

from sandbox import running_fcm_sandbox
from tests.sandbox.fcm.sender import PROJECT, FcmSender


@pytest.fixture(scope="module")
def sandbox():
    with running_fcm_sandbox() as running:
        yield running


@pytest.fixture(scope="module")
def sender(sandbox):
    return FcmSender(sandbox)


@pytest.fixture
def device(sandbox):
    return sandbox.register(PROJECT)
