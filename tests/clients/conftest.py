"""The whole service as its clients use it: over HTTP only, with workers that deliver."""

import json
from dataclasses import dataclass

import httpx
import pytest
from django.test import override_settings

from channels_app.models import Channel
from pushsvc.common.store.redis_client import redis_client
from sandbox import WebSandbox, running_sandbox
from tests.browser.database import emptied_at_the_end
from tests.clients.generators import Workshop
from tests.factories import make_channel, make_key
from tests.pipeline.processes import running_web


@dataclass(frozen=True)
class Shop:
    """A channel of the service, as the author of a client sees it."""

    url: str
    channel: str
    key: str
    push_service: WebSandbox

    def browser(self):
        """The PushSubscription of a new browser."""
        return self.push_service.subscribe().subscription

    def subscribe(self):
        """Registers a new browser, as its page does."""
        headers = {"X-Channel-ID": self.channel}
        httpx.post(f"{self.url}/subscribe", json=self.browser(), headers=headers).raise_for_status()

    def enable_android(self):
        Channel.objects.filter(pk=self.channel).update(android_enabled=True)

    def environment(self):
        """The environment variables that examples/README.md lists."""
        return {
            "PUSHSVC_URL": self.url,
            "PUSHSVC_CHANNEL": self.channel,
            "PUSHSVC_KEY": self.key,
            "PUSHSVC_SUBSCRIPTION": json.dumps(self.browser()),
        }


@pytest.fixture(scope="module")
def _push_service():
    with running_sandbox() as running:
        yield running


@pytest.fixture(scope="module")
def transactional_db(django_db_setup, django_db_blocker):
    """Emptied when the module ends, because the processes work on between its tests."""
    with emptied_at_the_end(django_db_blocker):
        yield


@pytest.fixture(scope="module")
def _service(_push_service, transactional_db, tmp_path_factory):
    log = tmp_path_factory.mktemp("service") / "log"
    trusted = frozenset({_push_service.origin})
    with override_settings(WEBPUSH_TRUSTED_ORIGINS=trusted):
        redis_client().flushdb()
        with running_web(log, "worker-plan", "worker-web", "beat") as address:
            yield address


@pytest.fixture(scope="session")
def workshop(request):
    return Workshop(request.config.cache.mkdir("clients"))


@pytest.fixture
def shop(_service, _push_service):
    channel = make_channel()
    return Shop(_service, str(channel.id), make_key(channel), _push_service)
