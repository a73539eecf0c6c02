"""Which routes have a limit, for whom, what comes after it, and what clients are told."""

import json
import re

import pytest
from django.test import Client
from django.urls import get_resolver

from channels_app.http import ApiKeyAuthentication
from pushsvc.common.http.drf import ApiView
from pushsvc.common.store.redis_client import redis_client
from tests.api.events import report
from tests.api.support import NOWHERE, asked_of_redis, code, owner_of
from tests.factories import browser

pytestmark = pytest.mark.django_db

JSON = "application/json"
# RFC 9651: a list of one string with whole numbers as its parameters.
POLICY = re.compile(r'"([a-z-]+)";q=(\d+);w=(\d+)', re.ASCII)
LEFT = re.compile(r'"([a-z-]+)";r=(\d+);t=(\d+)', re.ASCII)


def policy(response):
    """(name, quota, window). Checks that the other field agrees with it."""
    name, quota, window = POLICY.fullmatch(response.headers["RateLimit-Policy"]).groups()
    same_name, left, reset = LEFT.fullmatch(response.headers["RateLimit"]).groups()
    assert same_name == name
    assert int(left) < max(1, int(quota))
    assert 0 <= int(reset) <= int(window)
    return name, int(quota), int(window)


def left(response):
    return int(LEFT.fullmatch(response.headers["RateLimit"])[2])


def views():
    """Every view of the API, by its route."""
    found = {str(each.pattern): getattr(each.callback, "cls", None) for each in _patterns()}
    return {route: cls for route, cls in found.items() if cls and issubclass(cls, ApiView)}


def _patterns():
    return [each for each in get_resolver().url_patterns if hasattr(each, "callback")]


def test_every_route_that_takes_a_key_has_a_limit():
    keyed = [cls for cls in views().values() if ApiKeyAuthentication in cls.authentication_classes]

    assert len(keyed) >= 14  # they were found
    assert all(cls.limit is not ApiView.limit and cls.is_limit_told for cls in keyed)


def test_every_other_route_without_a_limit_costs_next_to_nothing():
    free = {route for route, cls in views().items() if cls.limit is ApiView.limit}

    assert free == {
        *("", "docs", "docs/errors", "docs/examples", "docs/<str:name>"),
        *("openapi.json", "sdk/<str:name>", "healthz"),
        *("test-device/<id:channel_id>", "test-device/<id:channel_id>/sw.js"),
        "metrics",  # needs a token, or a peer on this machine
        # served only on a developer's machine
        *("demo", "demo/sw.js", "demo/send", "demo/notifications/<id:notification_id>"),
    }


def requests(owner):
    here = f"/channel/{owner.channel.id}"
    gone = f"{here}/segments/{NOWHERE}"
    segment = {"name": "a", "rule": {"attribute": "a", "operator": "eq", "value": 1}}
    return [
        ("sends", 202, lambda: owner.send({"body": "x"})),
        ("sends", 400, lambda: owner.send({"bdoy": "x"})),
        ("reads", 200, lambda: owner.call("GET", here)),
        ("reads", 404, lambda: owner.call("GET", f"/channel/{NOWHERE}")),
        ("reads", 200, lambda: owner.call("GET", f"/notifications/{owner.channel.id}")),
        ("reads", 404, lambda: owner.call("GET", f"/notification/{NOWHERE}")),
        ("reads", 404, lambda: owner.call("GET", f"/notification/{NOWHERE}/details")),
        ("reads", 200, lambda: owner.call("GET", f"{here}/platforms")),
        ("manage", 404, lambda: owner.call("DELETE", f"/cancel-notification/{NOWHERE}")),
        ("manage", 400, lambda: owner.call("PUT", f"{here}/providers", {})),
        ("manage", 200, lambda: owner.call("GET", f"{here}/segments")),
        ("manage", 201, lambda: owner.call("POST", f"{here}/segments", segment)),
        ("manage", 404, lambda: owner.call("GET", gone)),
        ("manage", 400, lambda: owner.call("PUT", gone, {})),
        ("manage", 404, lambda: owner.call("DELETE", gone)),
        ("manage", 404, lambda: owner.call("GET", f"{gone}/size")),
        ("manage", 404, lambda: owner.call("GET", f"{here}/person?external_id=a")),
        ("manage", 400, lambda: owner.call("GET", f"{here}/person/export")),
        ("manage", 404, lambda: owner.call("DELETE", f"{here}/person?external_id=a")),
        ("manage", 400, lambda: owner.call("POST", f"{here}/explain", {})),
        ("manage", 200, lambda: owner.call("GET", f"{here}/categories")),
        ("manage", 400, lambda: owner.call("POST", f"{here}/categories", {})),
        ("manage", 400, lambda: owner.call("PUT", f"{here}/categories/gone", {})),
        ("manage", 404, lambda: owner.call("DELETE", f"{here}/categories/gone")),
        ("manage", 200, lambda: owner.call("GET", f"{here}/schedules")),
        ("manage", 400, lambda: owner.call("POST", f"{here}/schedules", {})),
        ("manage", 404, lambda: owner.call("DELETE", f"{here}/schedules/{NOWHERE}")),
        ("manage", 200, lambda: owner.call("GET", f"{here}/templates")),
        ("manage", 400, lambda: owner.call("POST", f"{here}/templates", {})),
        ("manage", 404, lambda: owner.call("DELETE", f"{here}/templates/{NOWHERE}")),
        ("subscribes", 201, lambda: owner.subscribe(browser())),
        ("subscribes", 400, lambda: owner.subscribe({})),
        (
            "unsubscribes",
            200,
            lambda: owner.device("/unsubscribe", {"endpoint": "https://a.example"}),
        ),
        (
            "preferences",
            200,
            lambda: owner.device("/preferences", {"endpoint": "https://a.example"}),
        ),
        ("inboxes", 400, lambda: owner.device("/inbox", {"endpoint": "https://a.example"})),
        (
            "prompts",
            204,
            lambda: owner.device("/prompt-events", {"kind": "bell", "event": "shown"}),
        ),
        ("prompt-options", 200, lambda: public(owner, "/prompt")),
        ("web-push-keys", 200, lambda: public(owner, "/web-push-key")),
    ]


def public(owner, path):
    headers = {"X-Channel-ID": str(owner.channel.id), "Origin": "https://shop.example"}
    return Client().get(path, headers=headers)


def test_every_answer_tells_the_client_its_remaining_quota(alice):
    for name, status, ask in requests(alice):
        response = ask()

        assert (response.status_code, policy(response)[0]) == (status, name)
        assert "Retry-After" not in response.headers


def test_the_remaining_quota_counts_down_and_a_refusal_states_it_too(alice, settings):
    settings.READS_PER_MINUTE = 2
    ask = lambda: alice.call("GET", f"/channel/{alice.channel.id}")  # noqa: E731

    assert [left(ask()) for _ in range(2)] == [1, 0]
    refused = ask()

    assert code(refused, 429) == "rate_limited"
    assert policy(refused) == ("reads", 2, 60)
    assert left(refused) == 0
    # The draft: it should not name a time before the reset.
    assert refused.headers["RateLimit"].endswith(f";t={refused.headers['Retry-After']}")


@pytest.mark.parametrize("setting", ["SENDS_PER_SECOND", "READS_PER_MINUTE", "MANAGE_PER_MINUTE"])
def test_keys_of_a_channel_share_its_limit_and_channels_do_not(alice, bob, settings, setting):
    name = setting.partition("_")[0].lower()
    other_key = owner_of(alice.channel)

    def asked(owner):
        return next(ask for limited, _, ask in requests(owner) if limited == name)().status_code

    setattr(settings, setting, 1)
    count = f"limit:{name}:{alice.channel.id}"
    redis_client().set(count, 0, ex=600)  # so that the window does not end meanwhile
    assert asked(alice) != 429
    assert redis_client().get(count) == "1"
    assert asked(other_key) == 429
    assert asked(bob) != 429


def test_a_key_without_the_scope_does_not_use_up_the_limit(alice, settings):
    settings.SENDS_PER_SECOND = 1
    settings.REFUSED_KEYS_PER_MINUTE = 2
    reader = owner_of(alice.channel, ["read"])

    assert [code(reader.send({"body": "x"}), 403) for _ in range(2)] == ["missing_scope"] * 2
    assert code(reader.send({"body": "x"}), 429) == "rate_limited"

    assert alice.send({"body": "x"}).status_code == 202


BROKEN = b'{"' * 100


@pytest.mark.parametrize(
    ("method", "path", "setting"),
    [
        ("POST", "/send-notification", "SENDS_PER_SECOND"),
        ("PUT", "/channel/{}/providers", "MANAGE_PER_MINUTE"),
        ("POST", "/channel/{}/segments", "MANAGE_PER_MINUTE"),
        ("POST", "/subscribe", "SUBSCRIBES_PER_MINUTE"),
        ("POST", "/unsubscribe", "SUBSCRIBES_PER_MINUTE"),
        ("POST", "/events", "FORGED_EVENTS_PER_MINUTE"),
    ],
)
@pytest.mark.parametrize("body", [BROKEN, b"", b"\xff"])
def test_a_client_over_the_limit_is_refused_before_its_body_is_read(
    alice, settings, method, path, setting, body
):
    headers = {"X-Channel-ID": str(alice.channel.id), "Authorization": f"Key {alice.key}"}

    def ask():
        where = path.format(alice.channel.id)
        return Client().generic(method, where, body, content_type=JSON, headers=headers)

    assert code(ask(), 400) == "malformed_json"
    setattr(settings, setting, 0)
    assert code(ask(), 429) == "rate_limited"


@pytest.mark.parametrize("path", ["/subscribe", "/unsubscribe"])
def test_an_unknown_channel_costs_one_query_and_no_body_is_read(path, django_assert_num_queries):
    with django_assert_num_queries(1):
        answer = Client().post(path, BROKEN, content_type=JSON, headers={"X-Channel-ID": NOWHERE})

    assert code(answer, 404) == "channel_not_found"


def test_requests_for_unknown_channels_have_a_limit_of_their_own(alice, settings):
    settings.UNKNOWN_CHANNELS_PER_MINUTE = 1
    unknown = {"content_type": JSON, "headers": {"X-Channel-ID": NOWHERE}}

    assert code(Client().post("/subscribe", BROKEN, **unknown), 404) == "channel_not_found"
    for path in ("/subscribe", "/unsubscribe"):
        refused = Client().post(path, BROKEN, **unknown)
        assert code(refused, 429) == "rate_limited"
        assert policy(refused) == ("unknown-channels", 1, 60)
    assert alice.subscribe(browser()).status_code == 201


@pytest.mark.parametrize("path", ["/", "/docs", "/docs/errors", "/openapi.json", "/sdk/push.js"])
def test_pages_and_files_use_neither_the_database_nor_redis(path, django_assert_num_queries):
    with asked_of_redis() as asked, django_assert_num_queries(0):
        assert Client().get(path).status_code == 200

    assert asked == []


def test_a_send_asks_redis_once_for_its_limits(alice):
    with asked_of_redis() as asked:
        alice.send({"body": "x"})

    assert [command for _, command in asked].count("EVAL") == 1


def test_a_limit_that_redis_cannot_count_refuses_nobody(alice, caplog):
    redis_client().lpush(f"limit:reads:{alice.channel.id}", "another program's")

    response = alice.call("GET", f"/channel/{alice.channel.id}")

    assert response.status_code == 200
    assert "RateLimit" not in response.headers
    (record,) = [record for record in caplog.records if record.message == "limit.failed"]
    assert record.exc_info is None  # there may be one for each request
    assert "WRONGTYPE" in record.error


# --- Devices --------------------------------------------------------------------------------------


def test_a_malformed_report_with_a_valid_token_does_not_count_against_its_address(sent, settings):
    settings.FORGED_EVENTS_PER_MINUTE = 0
    _, (token, _) = sent

    assert code(report((token, "nonsense")), 400) == "validation_error"
    assert report((token, "clicked"), ("forged", "clicked")).status_code == 204
    assert code(report(("forged", "clicked")), 429) == "rate_limited"


def test_a_valid_token_is_found_anywhere_in_the_body(sent, settings):
    settings.FORGED_EVENTS_PER_MINUTE = 0
    _, (token, _) = sent
    forged = [{"token": "A" * 64, "event": "clicked"}] * 19
    body = json.dumps({"events": [*forged, {"event": "clicked", "token": token}]}, indent=8)

    answer = Client().post("/events", body, content_type="text/plain")

    assert answer.status_code == 204


def test_a_report_may_have_8_kib(sent):
    _, (token, _) = sent
    body = json.dumps({"events": [{"token": token, "event": "clicked"}]})

    answers = [
        Client().post("/events", body.ljust(size), content_type=JSON) for size in (8192, 8193)
    ]

    assert answers[0].status_code == 204
    assert code(answers[1], 413) == "body_too_large"


def test_the_headers_do_not_disclose_whether_a_token_is_valid(sent):
    """Only a refusal tells the address its remaining quota."""
    _, (token, _) = sent
    forged = Client().get("/c/forged")

    for response in (report((token, "clicked")), report(("forged", "clicked")), forged):
        assert "RateLimit" not in response.headers
        assert "RateLimit-Policy" not in response.headers


def test_a_refused_report_says_when_to_retry(settings):
    settings.FORGED_EVENTS_PER_MINUTE = 0

    for refused in (report(("forged", "clicked")), Client().get("/c/forged")):
        assert code(refused, 429) == "rate_limited"
        assert policy(refused) == ("forged-events", 0, 60)


def test_the_web_push_key_is_limited_by_address_before_the_channel_is_looked_up(
    alice, settings, django_assert_num_queries
):
    settings.WEB_PUSH_KEYS_PER_MINUTE = 1
    assert public(alice, "/web-push-key").status_code == 200

    with django_assert_num_queries(0):
        assert code(public(alice, "/web-push-key"), 429) == "rate_limited"


def test_pages_of_any_origin_may_read_their_remaining_quota(alice, settings):
    allowed = public(alice, "/web-push-key")
    settings.WEB_PUSH_KEYS_PER_MINUTE = 0
    refused = public(alice, "/web-push-key")

    for response in (allowed, refused):
        shown = response.headers["Access-Control-Expose-Headers"].split(", ")
        assert sorted(shown) == ["ratelimit", "ratelimit-policy", "retry-after", "x-request-id"]


def test_the_reference_names_the_headers():
    paths = Client().get("/openapi.json").json()["paths"]

    send = paths["/send-notification"]["post"]["responses"]
    assert {"RateLimit", "RateLimit-Policy"} == set(send["202"]["headers"])
    assert {"RateLimit", "RateLimit-Policy", "Retry-After"} == set(send["429"]["headers"])
    events = paths["/events"]["post"]["responses"]
    assert "headers" not in events["204"]
    assert {"RateLimit", "RateLimit-Policy", "Retry-After"} == set(events["429"]["headers"])
