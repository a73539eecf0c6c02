"""Calls of threads that are carried out as one."""

from concurrent.futures import Future
from threading import Event, Thread

import pytest

from pushsvc.common.store.group_commit import GroupCommit
from tests.pipeline.support import until

SECONDS = 20  # seconds, for what never happens
MOST = 3


def begun(call, *arguments):
    """The future of a call in a thread that no test waits for if it hangs."""
    future = Future()

    def run():
        try:
            future.set_result(call(*arguments))
        except BaseException as error:  # noqa: BLE001 (it is the future's)
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


class Act:
    """Records its arguments. A test can hold it up and make it fail."""

    def __init__(self):
        self.calls = []
        self.began, self.may_go_on = Event(), Event()
        self.may_go_on.set()
        self.failure = None

    def __call__(self, items):
        self.calls.append(items)
        self.began.set()
        assert self.may_go_on.wait(timeout=SECONDS)
        if self.failure:
            raise self.failure


@pytest.fixture
def act():
    return Act()


def meanwhile(commit, act, *calls):
    """Makes a first call and, while that is carried out, these; the results of all."""
    act.may_go_on.clear()
    first = begun(commit, ["first"])
    assert act.began.wait(timeout=SECONDS)
    others = [begun(commit, items) for items in calls]
    until(lambda: len(commit._waiting) == len(calls))
    act.may_go_on.set()
    return [done.exception(timeout=SECONDS) for done in (first, *others)]


def test_a_single_call_is_carried_out_at_once(act):
    begun(GroupCommit(act, most=MOST), ["a", "b"]).result(timeout=SECONDS)

    assert act.calls == [["a", "b"]]


def test_waiting_calls_are_carried_out_as_one(act):
    outcomes = meanwhile(GroupCommit(act, most=MOST), act, ["a", "b"], ["c"], [])

    assert outcomes == [None] * 4
    assert [sorted(items) for items in act.calls] == [["first"], ["a", "b", "c"]]


def test_calls_with_more_items_together_than_a_group_may_have_take_turns(act):
    outcomes = meanwhile(GroupCommit(act, most=MOST), act, ["a", "b"], ["c", "d"], ["e"])

    assert outcomes == [None] * 4
    assert sorted(item for items in act.calls[1:] for item in items) == ["a", "b", "c", "d", "e"]
    assert [len(items) <= MOST for items in act.calls] == [True] * 3


def test_a_call_with_more_items_than_a_group_may_have_is_carried_out_alone(act):
    outcomes = meanwhile(GroupCommit(act, most=MOST), act, ["a", "b", "c", "d"], ["e"])

    assert outcomes == [None] * 3
    assert sorted(act.calls[1:]) == [["a", "b", "c", "d"], ["e"]]


def test_a_failure_reaches_every_call_of_its_group_and_not_the_next_call(act):
    commit = GroupCommit(act, most=MOST)
    act.failure = OSError("the database is away")

    outcomes = meanwhile(commit, act, ["a"], ["b"])
    assert outcomes == [act.failure] * 3

    act.failure = None
    begun(commit, ["c"]).result(timeout=SECONDS)
    assert act.calls[-1] == ["c"]


def test_every_call_of_many_threads_is_carried_out_once_before_it_returns():
    counted, turns = set(), []

    def act(items):
        turns.append(len(items))
        counted.update(items)

    commit = GroupCommit(act, most=MOST)

    def call(numbers):
        for number in numbers:
            commit([number])
            assert number in counted

    threads = [begun(call, range(thread, 800, 16)) for thread in range(16)]
    for thread in threads:
        thread.result(timeout=SECONDS)

    assert counted == set(range(800))
    assert sum(turns) == 800
