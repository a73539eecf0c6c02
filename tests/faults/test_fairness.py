"""A small send behind a very large one."""

from tests.faults.exactness import assert_exact
from tests.faults.support import many, seconds_taken, status
from tests.faults.system import until


def test_a_small_send_waits_for_a_batch_of_a_large_one_not_for_all_of_it(system, channel):
    for _, device in channel.subscribe(many(2_400)):
        device.behave("slow", seconds=0.1)
    small = system.channel()
    small.subscribe(20)

    large_one = channel.send()
    until(lambda: _is_planned(channel, large_one), "the large one is planned")
    small_one = small.send()

    until(lambda: status(small, small_one) == "sent", "the small one is sent")
    left = _unclaimed(channel, large_one)
    assert left > 0
    assert_exact(small, [small_one])
    assert_exact(channel, [large_one])
    print(  # noqa: T201 (figures for who reads the run)
        f"20 devices behind {many(2_400)}: {seconds_taken(small, small_one):.1f} s, the large send"
        f" {seconds_taken(channel, large_one):.1f} s; {left} of its batches were not begun then"
    )


def _is_planned(channel, notification_id):
    return channel.system.value(
        "SELECT coalesce(bool_and(status <> 'planning'), false) FROM notifications_app_plan"
        " WHERE notification_id = %s",
        [notification_id],
    )


def _unclaimed(channel, notification_id):
    return channel.system.value(
        "SELECT count(*) FROM notifications_app_batch WHERE notification_id = %s AND attempt = 0",
        [notification_id],
    )
