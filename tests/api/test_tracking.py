import pytest

from notifications_app.content.tracking import TOKEN_LENGTH, make_token, read_token
from pushsvc.common.ids import uuid7


@pytest.fixture
def ids():
    return uuid7(), uuid7()


def test_a_token_names_its_delivery(ids):
    token = make_token(*ids)
    assert len(token) == TOKEN_LENGTH
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert read_token(token) == ids


def test_tokens_of_different_deliveries_differ(ids):
    notification, subscription = ids
    assert len({make_token(*ids), make_token(subscription, notification), make_token(*ids)}) == 2


@pytest.mark.parametrize("position", [0, 21, 42, 63])
def test_a_token_with_one_changed_character_is_invalid(ids, position):
    token = make_token(*ids)
    other = "A" if token[position] != "A" else "B"
    assert read_token(token[:position] + other + token[position + 1 :]) is None


def test_a_token_made_with_another_secret_is_invalid(ids, settings):
    token = make_token(*ids)
    settings.SECRET_KEY = "another"
    assert read_token(token) is None


def test_a_token_from_before_the_secret_was_replaced_is_valid(ids, settings):
    token = make_token(*ids)
    settings.SECRET_KEY_FALLBACKS = ["another", settings.SECRET_KEY]
    settings.SECRET_KEY = "new"
    assert read_token(token) == ids
    assert make_token(*ids) != token


@pytest.mark.parametrize("token", ["", "A", "A" * 64, "é" * 64, "=" * 64, "!" * 64, "A" * 65])
def test_a_text_that_is_no_token_is_invalid(token):
    assert read_token(token) is None
