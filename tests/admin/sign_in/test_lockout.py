"""Failed sign-ins lock a name out for a while, and the answers disclose nothing."""

from datetime import timedelta

import pytest
from auditlog.models import LogEntry
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from notifications_app import retention
from tests.admin.support import PASSWORD, said, signed_in
from tests.factories import make_key

LOGIN = "/admin/login/"
LOCK_OUTS = "/admin/axes/accessattempt/"
NEW_PASSWORD = "another-long-battery-staple"


def sign_in(username, password=PASSWORD, *, client=None, **more):
    fields = {"login": username, "password": password, "next": "/admin/"}
    return (client or Client()).post(LOGIN, fields, **more)


def fail(username, times=5, **more):
    return [sign_in(username, f"guess {n}", **more).status_code for n in range(times)]


def test_a_correct_password_signs_in_with_a_new_session(alice):
    client = Client()
    client.get(LOGIN)
    answer = sign_in("alice-viewer", client=client)

    assert answer.status_code == 302
    assert answer["Location"] == "/admin/"
    cookie = answer.cookies["sessionid"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert cookie["max-age"] == 12 * 3600
    assert LogEntry.objects.filter(actor=alice.members["viewer"], changes={}).exists()


def test_the_fifth_failure_locks_out_for_fifteen_minutes_even_the_correct_password(alice):
    assert fail("alice-viewer") == [200] * 4 + [429]

    answer = sign_in("alice-viewer")
    assert answer.status_code == 429
    assert "15 minutes" in " ".join(answer.content.decode().split())
    assert 890 < int(answer.headers["Retry-After"]) <= 900


def test_further_failures_do_not_extend_the_lock_out(alice):
    fail("alice-viewer")
    tries = AccessAttempt.objects.filter(username="alice-viewer")
    ago = timedelta(minutes=10)
    tries.update(attempt_time=tries.get().attempt_time - ago)

    fail("alice-viewer", 3)
    assert 290 < int(sign_in("alice-viewer").headers["Retry-After"]) <= 300

    tries.update(attempt_time=tries.get().attempt_time - ago)
    assert sign_in("alice-viewer").status_code == 302


def test_failures_are_deleted_when_they_count_no_more_even_if_nobody_signs_in(alice):
    fail("alice-viewer", 1)
    fail("alice-sender", 1)
    old = AccessAttempt.objects.filter(username="alice-viewer")
    old.update(attempt_time=old.get().attempt_time - timedelta(minutes=15))

    retention.purge()

    assert AccessAttempt.objects.get().username == "alice-sender"


def test_a_lock_out_is_for_one_name_from_one_address(alice, settings):
    settings.TRUSTED_PROXIES = 1
    there = {"headers": {"X-Forwarded-For": "192.0.2.7"}}
    fail("alice-viewer", **there)

    assert sign_in("alice-viewer", **there).status_code == 429
    assert sign_in("alice-sender", **there).status_code == 302
    assert sign_in("alice-viewer", headers={"X-Forwarded-For": "192.0.2.8"}).status_code == 302
    assert AccessAttempt.objects.get().ip_address == "192.0.2.7"


def test_a_lock_out_counts_the_network_of_an_ipv6_address(alice, settings):
    settings.TRUSTED_PROXIES = 1
    near = [{"headers": {"X-Forwarded-For": f"2001:db8:1:2::{n}"}} for n in range(1, 7)]
    far = {"headers": {"X-Forwarded-For": "2001:db8:1:3::1"}}
    failures = [fail("alice-viewer", 1, **more)[0] for more in near[:5]]

    assert failures == [200] * 4 + [429]
    assert sign_in("alice-viewer", **near[5]).status_code == 429
    assert sign_in("alice-viewer", **far).status_code == 302
    attempt = AccessAttempt.objects.get()
    assert (attempt.ip_address, attempt.failures_since_start) == ("2001:db8:1:2::", 5)


def test_the_audit_log_keeps_the_whole_address(alice, settings):
    settings.TRUSTED_PROXIES = 1
    sign_in("alice-viewer", headers={"X-Forwarded-For": "[2001:DB8:1:2::7]:4711"})

    assert LogEntry.objects.get(actor=alice.members["viewer"]).remote_addr == "2001:db8:1:2::7"


def test_an_address_has_a_limited_number_of_password_checks_a_minute(alice, settings):
    settings.SIGN_INS_PER_MINUTE = 3
    settings.TRUSTED_PROXIES = 1
    client = signed_in(alice.members["viewer"])
    here = {"headers": {"X-Forwarded-For": "192.0.2.7"}}
    proof = reverse("account_reauthenticate")
    wrong = {"oldpassword": "wrong", "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    assert sign_in("alice-sender", **here).status_code == 302
    assert client.post("/admin/password_change/", wrong, **here).status_code == 200
    assert client.post(proof, {"password": "wrong"}, **here).status_code == 200

    refusals = [
        sign_in("alice-sender", **here),
        client.post("/admin/password_change/", wrong, **here),
        client.post(proof, {"password": "wrong"}, **here),
    ]
    for answer in refusals:
        assert answer.status_code == 429
        assert 0 < int(answer.headers["Retry-After"]) <= 60
        assert answer.headers["RateLimit-Policy"] == '"sign-ins";q=3;w=60'
        assert "Too many attempts from your address" in answer.content.decode()
    assert AccessAttempt.objects.get().failures_since_start == 2
    assert client.get("/admin/", **here).status_code == 200
    there = {"headers": {"X-Forwarded-For": "192.0.2.8"}}
    assert sign_in("alice-sender", **there).status_code == 302


def test_a_successful_sign_in_resets_the_failures(alice):
    fail("alice-viewer", 4)
    sign_in("alice-viewer")

    assert fail("alice-viewer", 4) == [200] * 4


def test_no_answer_tells_whether_a_user_exists(alice):
    User.objects.filter(username="alice-sender").update(is_active=False)
    User.objects.filter(username="alice-manager").update(is_staff=False)

    known = [said(sign_in("alice-viewer", "wrong")) for _ in range(6)]
    for name, password in [
        ("nobody", "wrong"),
        ("alice-sender", PASSWORD),
        ("alice-manager", PASSWORD),
    ]:
        assert [said(sign_in(name, password)) for _ in range(6)] == known, name


def test_the_api_still_serves_a_locked_out_address(alice):
    key = make_key(alice.channel)
    fail("alice-viewer", 6)

    answer = Client().get(f"/channel/{alice.channel.pk}", headers={"Authorization": f"Key {key}"})
    assert answer.status_code == 200


def test_a_failed_sign_in_stores_nothing_but_the_name(alice):
    client = Client()
    fields = {"login": "alice-viewer", "password": "typed-password", "code": "typed-code"}
    client.post(LOGIN, fields)

    kept = str(AccessAttempt.objects.values())
    assert "alice-viewer" in kept
    assert "typed-" not in kept


def test_a_superuser_sees_and_clears_a_lock_out(alice, root):
    fail("alice-viewer")
    client = signed_in(root)
    assert "locked out" in client.get(LOCK_OUTS).content.decode()

    chosen = [AccessAttempt.objects.get().pk]
    client.post(LOCK_OUTS, {"action": "clear", "_selected_action": chosen})

    assert sign_in("alice-viewer").status_code == 302
    note = LogEntry.objects.get(content_type__model="accessattempt")
    assert (note.actor, note.changes["username"]) == (root, ["alice-viewer", None])


def test_only_superusers_see_and_clear_lock_outs(alice):
    fail("alice-viewer")
    client = signed_in(alice.members["owner"])
    chosen = [AccessAttempt.objects.get().pk]

    assert client.get(LOCK_OUTS).status_code == 403
    answer = client.post(LOCK_OUTS, {"action": "clear", "_selected_action": chosen})
    assert answer.status_code == 403
    assert AccessAttempt.objects.exists()


def test_a_sign_in_and_the_list_take_few_queries(alice, root, django_assert_max_num_queries):
    AccessAttempt.objects.bulk_create(
        AccessAttempt(
            username=f"u{n}", ip_address="192.0.2.1", failures_since_start=n, user_agent=n
        )
        for n in range(200)
    )
    with django_assert_max_num_queries(25):
        assert sign_in("alice-viewer").status_code == 302
    client = signed_in(root)
    with django_assert_max_num_queries(25):
        assert client.get(LOCK_OUTS).status_code == 200


@pytest.mark.parametrize("path", ["https://evil.example/", "//evil.example/"])
def test_a_sign_in_redirects_to_no_other_site(alice, path):
    fields = {"login": "alice-viewer", "password": PASSWORD, "next": path}

    assert "evil" not in Client().post(LOGIN, fields)["Location"]


def test_signing_out_ends_the_session_on_the_server(alice):
    client = Client()
    sign_in("alice-viewer", client=client)
    cookie = client.cookies["sessionid"].value
    client.post(reverse("admin:logout"))

    client.cookies["sessionid"] = cookie
    assert client.get("/admin/").status_code == 302
