"""Forms without a CSRF token, changes by GET, disclosed secrets, and extreme times."""

import json
from hashlib import sha256

import pytest
from allauth.mfa.models import Authenticator
from auditlog.models import LogEntry
from cryptography.hazmat.primitives.asymmetric import ec
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.urls import reverse

from channels_app.models import VapidKey
from channels_app.services import api_key_issue, provider_credentials_store
from notifications_app.models import Notification
from pushsvc.common.store.crypto import decrypt
from subscriptions_app.models import Subscription
from tests.admin.attacks.test_tenancy import written
from tests.admin.console.test_scope import addresses, everything_of, text_of
from tests.admin.sign_in.steps import app_of, turned_on
from tests.admin.support import PASSWORD, signed_in, stocked
from tests.api.credentials import APPLE, GOOGLE, pem
from tests.factories import make_sent_notification

THE_SAME_FOR_ALL = {"jsi18n", "password_change_done"}  # Django's own; they hold nobody's data
COMPOSE = "/admin/notifications_app/notification/compose/"


@pytest.fixture
def house(alice):
    return stocked(alice)


def everything(house):
    return [
        *everything_of(house),
        sorted(User.objects.values_list("username", "password", "is_superuser")),
        Notification.objects.count(),
        LogEntry.objects.exclude(action=LogEntry.Action.ACCESS).count(),
    ]


def test_every_form_without_its_csrf_token_is_refused(house, root):
    """As another site's page would send it with the user's cookies."""
    clients = [signed_in(user) for user in (root, house.members["owner"])]
    before = everything(house)
    for client in clients:
        client.handler.enforce_csrf_checks = True
        for name, path in addresses(house):
            response = client.post(path, written(house.channel) | {"do": "begin", "post": "yes"})
            assert response.status_code == 403, (name, path)
            assert "The form has expired" in response.content.decode()

    assert everything(house) == before
    assert not Authenticator.objects.exists()


@pytest.mark.parametrize("method", ["get", "head", "put", "patch", "delete", "options"])
def test_only_post_changes_anything(house, root, method):
    clients = [signed_in(user) for user in (root, house.members["owner"])]
    before = everything(house)
    fields = written(house.channel) | {"do": "begin", "post": "yes", "action": "clear"}
    for client in clients:
        for name, path in addresses(house):
            ask = getattr(client, method)
            response = ask(path, fields) if method in {"get", "head"} else ask(path)
            assert response.status_code < 500, (name, path)
            text_of(response)

    assert everything(house) == before
    assert not Authenticator.objects.exists()


def test_a_link_signs_nobody_out(house):
    client = signed_in(house.members["viewer"])

    assert client.get(reverse("admin:logout")).status_code == 405
    assert client.get("/admin/").status_code == 200


def test_a_session_from_before_the_sign_in_does_not_become_signed_in(alice):
    client = Client()
    client.cookies["sessionid"] = "planted0planted0planted0planted0"
    client.post("/admin/login/", {"login": "alice-viewer", "password": PASSWORD})

    assert client.get("/admin/").status_code == 200
    assert client.cookies["sessionid"].value != "planted0planted0planted0planted0"
    assert not Session.objects.filter(pk__startswith="planted").exists()


@pytest.fixture
def secrets(house, root):
    """Every secret that the service stores, by its kind."""
    channel, device = house.channel, house.rows["subscription"]
    apple = APPLE | {"key": pem(ec.generate_private_key(ec.SECP256R1()))}
    provider_credentials_store(
        channel=channel, fcm_service_account=json.dumps(GOOGLE), apns_key=json.dumps(apple)
    )
    Subscription.objects.filter(pk=device.pk).update(p256dh="planted-p256dh", auth="planted-auth")
    _, text = api_key_issue(channel=channel, name="planted")
    codes = turned_on(house.members["owner"])
    app = app_of(house.members["owner"]).data["secret"]
    vapid = VapidKey.objects.get(channel=channel)
    return {
        "API key": text[13:],
        "its hash": sha256(text.encode()).hexdigest(),
        "Google's key": GOOGLE["private_key"].splitlines()[1],
        "Apple's key": apple["key"].splitlines()[1],
        "VAPID key as stored": vapid.private_key_encrypted,
        "VAPID key": decrypt(vapid.private_key_encrypted),
        "endpoint": device.address,
        "p256dh": "planted-p256dh",
        "auth": "planted-auth",
        "app's secret as stored": app,
        "app's secret": decrypt(app),
        "recovery code": codes[0],
        "password": root.password,
    }


def test_no_page_shows_a_secret(house, root, secrets, caplog):
    export = reverse("admin:subscription_export", args=[house.rows["subscription"].pk])
    owner = signed_in(house.members["owner"])
    session = owner.session
    session["second_step"] = app_of(house.members["owner"]).pk
    session.save()
    seen = 0
    for client in (owner, signed_in(root)):
        for name, path in addresses(house):
            if path == export or name == "logout":
                continue
            response = client.get(
                path, {"q": secrets["endpoint"][:12], "channel": house.channel.pk}
            )
            text = text_of(response)
            seen += response.status_code == 200
            assert not [what for what, secret in secrets.items() if secret in text], path

    assert seen > 40
    assert not [what for what, secret in secrets.items() if secret in caplog.text]


def test_an_error_page_does_not_disclose_the_cause(house, secrets, caplog):
    """A secret cannot be decrypted: pages fail, or explain it in their own words."""
    VapidKey.objects.update(private_key_encrypted="planted-and-broken")
    client = Client(raise_request_exception=False)
    client.force_login(
        house.members["manager"], backend="channels_app.sign_in.backend.StaffBackend"
    )

    for name, path in addresses(house):
        if name != "logout":
            text = text_of(client.get(path)) + text_of(client.post(path, {"platform": "android"}))
            assert "planted-and-broken" not in text
            assert "Traceback" not in text
    assert "planted-and-broken" not in caplog.text


@pytest.mark.parametrize(
    ("zone", "local"),
    [
        ("America/New_York", "9999-12-31T12:00"),
        ("America/New_York", "0001-01-01T12:00"),
        ("Asia/Tokyo", "9999-12-31T23:59"),
        ("Pacific/Kiritimati", "2031-01-01T00:00"),
    ],
)
def test_a_time_in_the_distant_future_is_shown_on_every_page_of_the_notification(
    house, zone, local
):
    client = signed_in(house.members["sender"])
    form = written(house.channel, when="later", local_time=local, time_zone=zone)

    review = client.post(COMPOSE, form | {"step": "review"})
    assert review.status_code == 200
    assert client.post(COMPOSE, form | {"seen": review.context["seen"]}).status_code == 302
    sent = Notification.objects.latest("id")
    for name in ("notifications_app_notification_change", "notification_progress"):
        assert client.get(reverse(f"admin:{name}", args=[sent.pk])).status_code == 200
    for path in ("/admin/", reverse("admin:notifications_app_notification_changelist")):
        assert client.get(path).status_code == 200


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        # The last minute before clocks are put forward to three.
        ("2031-03-09T01:59", "2031-03-09T06:59"),
        ("2031-03-09T03:00", "2031-03-09T07:00"),
        ("2031-11-02T00:59", "2031-11-02T04:59"),
        ("2031-11-02T01:30", "2031-11-02T05:30"),  # comes twice; the first is meant
        ("2031-11-02T02:00", "2031-11-02T07:00"),
    ],
)
def test_local_times_around_a_clock_change_are_shown_as_entered(house, local, utc):
    form = written(house.channel, when="later", local_time=local, time_zone="America/New_York")

    signed_in(house.members["sender"]).post(COMPOSE, form)

    assert f"{Notification.objects.latest('id').scheduled_at:%Y-%m-%dT%H:%M}" == utc


def test_a_schedule_with_an_offset_is_refused(house):
    """Browsers send none. Read as local time, it would be hours away from what it says."""
    client = signed_in(house.members["sender"])
    for local in ("2031-01-02T09:00Z", "2031-01-02T09:00+05:00"):
        form = written(house.channel, when="later", local_time=local, time_zone="Europe/Berlin")
        response = client.post(COMPOSE, form)
        assert response.status_code == 400, local
        assert list(response.context["errors"]) == ["scheduled_at"]


@pytest.mark.django_db(transaction=True)
def test_a_log_download_that_fails_before_it_starts_frees_its_place(house):
    """The audit log cannot be written, four times: as many downloads as may run at once."""
    path = reverse("admin:notification_log", args=[make_sent_notification(house.channel).pk])
    client = signed_in(house.members["viewer"])
    client.raise_request_exception = False
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE auditlog_logentry ADD CONSTRAINT shut CHECK (false) NOT VALID")
    try:
        for _ in range(4):
            assert client.get(path).status_code == 500
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE auditlog_logentry DROP CONSTRAINT shut")

    response = client.get(path)
    assert response.status_code == 200
    assert b"".join(response)


def test_every_page_of_the_console_forbids_caching(house):
    client = signed_in(house.members["owner"])

    for name, path in addresses(house):
        response = client.get(path)
        text_of(response)
        if response.status_code == 200 and name not in THE_SAME_FOR_ALL:
            kept = response.headers.get("Cache-Control", "")
            assert "no-store" in kept, (name, path)
            assert "private" in kept, (name, path)
