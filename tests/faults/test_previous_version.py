"""Processes of the previous version work beside those of this version, on its schema."""

import os
from pathlib import Path

from tests.faults.exactness import assert_exact, stored
from tests.faults.processes import EVERYTHING
from tests.faults.support import (
    assert_called_once,
    await_part,
    requests,
    under_load,
)


def test_two_versions_beside_one_another_lose_and_double_nothing(system, channel):
    """Each process goes back to the previous version, one after another, and forward again."""
    previous = {"checkout": Path(os.environ["FAULTS_PREVIOUS"])}
    with under_load(channel) as notifications:
        for version in (previous, {}):
            for name in system.random.sample(EVERYTHING, len(EVERYTHING)):
                await_part(channel, 0.5, since=requests(channel))
                system.replace(name, **version)
    assert_exact(channel, notifications)
    assert stored(channel) == set(notifications)
    assert_called_once(channel, len(notifications) * len(channel.devices))
