"""A small send behind a very large one."""

from tests.faults.exactness import assert_exact
from tests.faults.processes import until
from tests.faults.support import each_in_the_middle, is_planned, many, seconds_taken, status


def test_a_small_send_waits_for_one_batch_of_a_large_send_and_not_for_all(system, channel):
    devices = [device for _, device in channel.subscribe(many(2_400))]
    for device in devices:
        device.behave("slow", seconds=0.3)
    small = system.channel()
    small.subscribe(20)

    # The worker stands still in the middle of the large send until the small one waits beside it.
    with each_in_the_middle(channel, ["web"], lambda _: system.pause("worker-web")):
        large_one = channel.send()
    until(lambda: is_planned(channel, large_one), "the large one is planned")
    small_one = small.send()
    until(lambda: is_planned(small, small_one), "the small one is planned")
    system.wake("worker-web")

    until(lambda: status(small, small_one) == "sent", "the small one is sent")
    left = _unclaimed(channel, large_one)
    assert left > 0
    for device in devices:  # how long the rest takes does not matter
        device.behave("accept")
    assert_exact(small, [small_one])
    assert_exact(channel, [large_one])
    print(  # noqa: T201 (figures for who reads the run)
        f"20 devices behind {many(2_400)}: {seconds_taken(small, small_one):.1f} s;"
        f" {left} of the large send's batches were not begun then"
    )


def _unclaimed(channel, notification_id):
    return channel.system.value(
        "SELECT count(*) FROM notifications_app_batch"
        " WHERE notification_id = %s AND lease_number = 0",
        [notification_id],
    )
