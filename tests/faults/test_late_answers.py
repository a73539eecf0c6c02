"""Answers that nobody read, and messages that come again after one."""

from dataclasses import replace

import pytest

from tests.faults.exactness import assert_exact, called_again, unread
from tests.faults.processes import DELIVERING, PLATFORMS, until
from tests.faults.support import audience, standing_still_early


def test_a_message_comes_again_only_after_an_answer_that_came_too_late(stopped, channel):
    """The push services stand still for longer than a call may take."""
    system = stopped
    audience(channel, 15)  # too few for a breaker
    for name in DELIVERING:
        system.start(name, FAULTS_CALL_SECONDS="2")

    with standing_still_early(channel, PLATFORMS) as wait_until_called:
        notification = channel.send(*PLATFORMS)
        wait_until_called()
        until(lambda: called_again(channel, notification), "the calls in flight timed out")

    assert_exact(channel, [notification])
    assert unread(channel, notification).keys() == set(PLATFORMS)


def test_a_second_message_is_a_fault_unless_the_first_answer_was_left_unread(system, channel):
    """A test of the judge."""
    audience(channel, 3)
    notification = channel.send(*PLATFORMS)
    assert_exact(channel, [notification])

    device = system.random.choice(list(channel.devices.values()))
    (receipt,) = device.receipts
    device.receipts.append(replace(receipt))
    with pytest.raises(AssertionError, match="got it too often"):
        assert_exact(channel, [notification])

    receipt.unread = True
    assert_exact(channel, [notification])
