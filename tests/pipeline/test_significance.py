"""Which differences between variants are certain."""

import random
from itertools import repeat

import pytest

from notifications_app.significance import ALPHA, compared

RATE, RUNS = 0.05, 2_000


def drawn(source, trials, rate):
    """As a binomial distribution: how many of the recipients clicked."""
    spread = (trials * rate * (1 - rate)) ** 0.5
    return max(0, round(source.gauss(trials * rate, spread)))


def certain(source, rates, trials=1_000):
    """How often of RUNS tests one variant was certainly the best."""
    found = 0
    for _ in repeat(None, RUNS):
        counts = [(drawn(source, trials, rate), trials) for rate in rates]
        found += compared(counts).is_certain
    return found / RUNS


@pytest.mark.parametrize("variants", [2, 3, 5, 10])
def test_equal_variants_are_rarely_told_apart(variants):
    """In 2,000 tests of equal variants, 5 % or fewer have a winner. With two, 3.5 to 6.5 %."""
    wrong = certain(random.Random(variants), [RATE] * variants)  # noqa: S311 - a simulation

    assert wrong < ALPHA + 0.015
    if variants == 2:
        assert wrong > ALPHA - 0.015


def test_a_real_difference_is_found():
    source = random.Random(1)  # noqa: S311 - a simulation

    assert certain(source, [RATE, 2 * RATE]) > 0.95
    assert certain(source, [RATE, RATE, RATE, 2 * RATE]) > 0.95


def test_a_winner_must_be_better_than_every_other():
    best, second, worst = (100, 1_000), (95, 1_000), (10, 1_000)

    assert compared([best, worst]).is_certain
    assert not compared([best, second, worst]).is_certain


def test_the_p_value_is_that_of_the_literature():
    """Of 45 of 200 and 30 of 200: z = 1.9218, twice the normal distribution's tail."""
    found = compared([(45, 200), (30, 200)])

    assert found.best == 0
    assert found.p_value == pytest.approx(0.05464, abs=0.0005)


def test_values_of_several_comparisons_are_corrected():
    """Holm: the smaller of two values counts twice, unless the larger is larger still."""
    one, other = compared([(60, 500), (30, 500)]), compared([(60, 500), (31, 500)])
    both = compared([(60, 500), (30, 500), (31, 500)])

    assert one.p_value is not None
    assert other.p_value is not None
    assert both.p_value == pytest.approx(max(2 * one.p_value, other.p_value))


@pytest.mark.parametrize(
    "counts",
    [
        [(0, 0), (0, 0)],
        [(50, 99), (1, 10_000)],  # too few deliveries of one
        [(9, 100), (0, 100)],  # 4.5 clicks of each are expected
        [(100, 100), (91, 100)],  # the same without clicks
        [(100, 100), (100, 100)],
    ],
)
def test_too_few_numbers_decide_nothing(counts):
    found = compared(counts)

    assert (found.best, found.p_value, found.is_certain) == (0, None, False)


def test_more_events_than_deliveries_are_as_many():
    assert compared([(300, 200), (10, 200)]).is_certain
