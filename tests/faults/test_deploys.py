"""Processes that are told to stop."""

from tests.faults.exactness import assert_exact
from tests.faults.support import audience, await_part, each_in_the_middle, many, requests
from tests.faults.system import EVERYTHING, PLATFORMS


def test_a_deploy_under_load_doubles_nothing(system, channel):
    audience(channel, many(400))
    notifications = [channel.send(*PLATFORMS)]
    await_part(channel, 0.1)
    for name in system.random.sample(EVERYTHING, len(EVERYTHING)):
        system.replace(name)
        if name == "worker-plan":
            notifications.append(channel.send(*PLATFORMS))
    assert_exact(channel, notifications)
    assert requests(channel) == len(notifications) * 3 * many(400)


def test_workers_that_are_told_to_stop_hand_back_unsent_recipients(system, channel):
    pairs = audience(channel, many(200))
    for _, device in pairs:
        device.behave("slow", seconds=0.5)

    stopping = []
    with each_in_the_middle(
        channel, PLATFORMS, lambda of: stopping.append(system.begin_to_stop(f"worker-{of}"))
    ):
        notification = channel.send(*PLATFORMS)

    assert system.exit_codes(stopping) == [0] * len(PLATFORMS)
    assert system.value(_NOT_HANDED_BACK, [notification]) == 0
    assert 0 < requests(channel) < len(pairs)
    system.run_all()
    assert_exact(channel, [notification])
    assert requests(channel) == len(pairs)


_NOT_HANDED_BACK = """
SELECT count(*) FROM notifications_app_batch
WHERE notification_id = %s AND (status = 'leased' OR lapses > 0)
"""
