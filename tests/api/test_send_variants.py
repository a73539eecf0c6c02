"""POST /send-notification: variants of the content."""

import pytest
from django.test import Client

from notifications_app.models import Batch, Notification, VariantCount
from tests.api.events import reached
from tests.api.support import accepted, errors

pytestmark = pytest.mark.django_db
SHORT, LONG = {"name": "short", "title": "Sale"}, {"name": "long", "title": "Our sale", "weight": 3}


def send(owner, **fields):
    return owner.send({"body": "Fresh bread"} | fields)


def test_variants_are_stored_and_shown_with_their_weights(alice):
    row = accepted(alice, {"body": "x", "variants": [SHORT, LONG]})

    details = alice.call("GET", f"/notification/{row.id}/details").json()

    stored = [SHORT | {"weight": 1}, LONG]
    assert details["content"]["variants"] == stored == row.extras["variants"]
    shown = [
        (each["name"], each["weight"], each["recipient_count"]) for each in details["variants"]
    ]
    assert shown == [("short", 1, 0), ("long", 3, 0)]


def test_without_variants_nothing_is_stored(alice):
    row = accepted(alice, {"body": "x", "variants": []})

    assert row.extras is None
    assert alice.call("GET", f"/notification/{row.id}/details").json()["variants"] == []


@pytest.mark.parametrize(
    ("variants", "attr", "code"),
    [
        ([SHORT], "variants", "out_of_range"),
        ([{"name": f"v{n}"} for n in range(11)], "variants", "too_many"),
        ([SHORT, SHORT], "variants.1.name", "given_twice"),
        ([SHORT, {"title": "x"}], "variants.1.name", "required"),
        ([SHORT, {"name": "a b"}], "variants.1.name", "malformed"),
        ([SHORT, LONG | {"weight": 0}], "variants.1.weight", "out_of_range"),
        ([SHORT, LONG | {"weight": 101}], "variants.1.weight", "out_of_range"),
        ([SHORT, LONG | {"ttl": 5}], "variants.1.ttl", "unknown_field"),
        ([SHORT, LONG | {"url": "no"}], "variants.1.url", "not_a_url"),
        ([SHORT, LONG | {"ios": {"subtitle": 1}}], "variants.1.ios.subtitle", "not_a_string"),
        (
            [SHORT, LONG | {"translations": {"de": {"actions": {"buy": "x"}}}}],
            "variants.1.translations.de.actions.buy",
            "unknown_field",
        ),
        ({"short": {}}, "variants", "not_a_list"),
    ],
)
def test_an_error_is_named_with_its_variant(alice, variants, attr, code):
    refused = send(alice, variants=variants)

    assert errors(refused) == [(attr, code)]
    assert not Notification.objects.exists()


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_variant_that_is_too_large_is_refused(alice, dry_run):
    large = LONG | {"body": "🙂" * 255}

    refused = send(alice, data={"x": "y" * 3_400}, variants=[SHORT, large], dry_run=dry_run)

    assert errors(refused) == [("variants.1", "payload_too_large")]


def test_a_placeholder_of_a_variant_is_checked(alice):
    refused = send(alice, personalize=True, variants=[SHORT, LONG | {"title": "{{ a.b }}"}])

    assert errors(refused) == [("variants.1.title", "not_a_template")]


def test_a_waiting_send_gets_other_variants(alice):
    at = "2035-01-01T00:00:00Z"
    row = accepted(alice, {"body": "x", "scheduled_at": at, "variants": [SHORT, LONG]})

    edited = alice.call("PATCH", f"/notification/{row.id}", {"variants": None, "title": "One"})

    row.refresh_from_db()
    assert (edited.status_code, row.extras, row.title) == (200, None, "One")


@pytest.mark.parametrize(
    ("change", "status"),
    [({"title": "Sale!"}, 200), ({"name": "brief"}, 409), ({"weight": 2}, 409)],
)
def test_names_and_weights_are_fixed_from_the_start_on(alice, change, status):
    row = accepted(alice, {"body": "x", "variants": [SHORT, LONG]})
    Notification.objects.filter(pk=row.pk).update(
        status="processing", started_at=row.created_at, paused_at=row.created_at
    )

    edited = alice.call("PATCH", f"/notification/{row.id}", {"variants": [SHORT | change, LONG]})

    assert edited.status_code == status


@pytest.mark.parametrize("number", [0, 1])
def test_a_click_follows_the_url_of_its_variant(alice, number):
    urls = ["https://shop.example/a", "https://shop.example/b"]
    variants = [{"name": url[-1], "weight": 1, "url": url} for url in urls]
    notification, (token,) = reached(alice, 1, extras={"variants": variants})
    Batch.objects.filter(notification=notification).update(variant=number)

    answer = Client().get(f"/c/{token}")

    assert answer.headers["Location"] == urls[number]
    assert VariantCount.objects.get(notification=notification).clicked == 1
