"""The sandbox's limit for each VAPID key, over a real socket."""

from tests.sandbox.services import call
from tests.sandbox.webpush.sender import Sender


def statuses(sender, device, times):
    return [sender.send(device).status for _ in range(times)]


def test_more_messages_of_a_vapid_key_than_the_limit_are_429(sandbox, sender, device):
    sandbox.limit(2)

    assert statuses(sender, device, 4) == [201, 201, 429, 429]
    assert "Retry-After" not in sender.send(device).headers


def test_each_vapid_key_has_the_limit_for_itself(sandbox, sender):
    device = sandbox.subscribe()
    sandbox.limit(1)
    assert statuses(sender, device, 2) == [201, 429]

    assert statuses(Sender(), device, 2) == [201, 429]


def test_a_rejection_states_the_rest_of_the_minute_if_the_limit_says_so(sandbox, sender, device):
    sandbox.limit(1, retry_after=True, seconds=3600)
    assert statuses(sender, device, 1) == [201]

    assert 3000 < int(sender.send(device).headers["Retry-After"]) <= 3600


def test_the_next_minute_allows_as_many_again(sandbox, sender, device):
    sandbox.limit(1, seconds=0.000001)  # shorter than any request

    assert statuses(sender, device, 3) == [201, 201, 201]


def test_the_limit_is_set_over_http_and_ends_with_a_reset(sandbox, sender, device):
    assert call(sandbox, "PUT", "/limit", {"messages": 1, "retry_after": True}) == (204, None)
    assert statuses(sender, device, 2) == [201, 429]
    assert call(sandbox, "PUT", "/limit", {"messages": 0})[0] == 400
    assert call(sandbox, "PUT", "/limit", {"messages": 1, "second": 1})[0] == 400

    sandbox.reset()

    fresh = sandbox.subscribe()
    assert statuses(sender, fresh, 2) == [201, 201]
