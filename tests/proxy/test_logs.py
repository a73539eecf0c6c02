"""What the logs of nginx and of the web process hold: no secret of any request."""

from urllib.parse import urlsplit

import pytest

from channels_app.sign_in.passwords import set_password_path
from notifications_app.content.tracking import make_token
from pushsvc.common.ids import uuid7
from tests.admin.support import make_root
from tests.factories import browser
from tests.pipeline.processes import running_web
from tests.pipeline.support import until
from tests.proxy.conftest import SETTINGS
from tests.proxy.nginx import running_nginx
from tests.proxy.wire import ask, message, post

pytestmark = pytest.mark.django_db(transaction=True)

SLOW = {"rate=10r/s": "rate=1r/m", "burst=50": "burst=10"}
BUSY = 12  # more requests than `limit_req` lets through then


@pytest.fixture
def secrets(owner):
    """(requests, what none of the logs may hold of them)."""
    link = set_password_path(user=make_root())
    click = make_token(uuid7(), uuid7())
    device = browser("https://fcm.googleapis.com/fcm/send/endpoint-1234")
    key = f"Authorization: Key {owner.key}"
    token = link.rstrip("/").rpartition("/")[2]
    escaped = link.replace("set-password", "set%2Dpassword")
    found = {
        token: message("GET", link),
        token[-12:]: message("GET", escaped),
        click: message("GET", f"/c/{click}"),
        f"{click[:-1]}B": message("GET", f"/%63/{click[:-1]}B"),
        "user-of-mine": message(
            "GET", f"/channel/{owner.channel.id}/person?external_id=user-of-mine", key
        ),
        "searched-for": message("GET", "/admin/subscriptions_app/person/?q=searched-for"),
        "code-of-provider": message("GET", "/admin/login/provider/?code=code-of-provider&state=x"),
        "endpoint-1234": post("/subscribe", device, f"X-Channel-ID: {owner.channel.id}"),
        device["keys"]["auth"]: post("/subscribe", device, f"X-Channel-ID: {owner.channel.id}"),
        owner.key: message("GET", f"/channel/{owner.channel.id}", key),
        "sessionid-1234": message("GET", "/admin/", "Cookie: sessionid=sessionid-1234"),
        "password-1234": message(
            "POST",
            "/admin/login/",
            "Content-Type: application/x-www-form-urlencoded",
            body="username=root&password=password-1234",
        ),
    }
    return list(found.values()), list(found)


def test_no_log_holds_a_secret_of_a_request(secrets, tmp_path, certificate):
    requests, forbidden = secrets
    log = tmp_path / "web.log"
    with (
        running_web(log, TRUSTED_PROXIES="1", **SETTINGS) as address,
        running_nginx(tmp_path / "nginx", certificate, urlsplit(address).port, **SLOW) as nginx,
    ):
        served = [ask(nginx.connect(), each)[0] for each in requests]
        for _ in range(BUSY):
            ask(nginx.connect(), requests[0])
    with running_nginx(tmp_path / "away", certificate, urlsplit(address).port) as away:
        refused = {ask(away.connect(), each)[0] for each in requests}
        until(lambda: away.log().count("upstream=502") >= len(requests))

    assert len(served) == len(requests)
    assert refused == {502}
    assert " 429 " in nginx.log()
    logs = {path: path.read_text() for path in tmp_path.rglob("*") if path.suffix == ".log"}
    assert {path.name for path in logs} == {"web.log", "access.log", "error.log"}
    assert len(logs) == 5
    found = [(path.name, each) for path, text in logs.items() for each in forbidden if each in text]
    assert found == []
