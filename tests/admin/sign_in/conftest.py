import pytest

from tests.admin.sign_in import mail_server, providers
from tests.admin.sign_in.mail_orders import VIEWER
from tests.admin.sign_in.mail_server import running_mail_server
from tests.admin.sign_in.providers import forging_provider


@pytest.fixture(scope="module")
def _server(tmp_path_factory):
    with running_mail_server(tmp_path_factory.mktemp("mail")) as server:
        yield server


@pytest.fixture
def server(_server, settings):
    """A mail server that the settings name."""
    _server.mails.clear()
    _server.logins.clear()
    _server.refusal = ""
    mail_server.use(settings, _server)
    return _server


@pytest.fixture
def viewer(alice):
    """The user, with an e-mail address."""
    user = alice.members["viewer"]
    user.email = VIEWER
    user.save()
    return user


@pytest.fixture(scope="module")
def _forger():
    with forging_provider() as forger:
        yield forger


@pytest.fixture
def forger(_forger, settings, viewer):
    """A provider for whom Alice's viewer is known. Its answers are honest until a test forges."""
    _forger.reset()
    providers.use(settings, _forger.issuer)
    return _forger
