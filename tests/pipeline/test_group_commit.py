"""Calls of threads that are carried out as one."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from pushsvc.common.group_commit import GroupCommit
from tests.pipeline.support import until


class Act:
    """Notes what it was called with. It can be held up, and fail."""

    def __init__(self):
        self.calls = []
        self.began, self.may_go_on = Event(), Event()
        self.may_go_on.set()
        self.failure = None

    def __call__(self, items):
        self.calls.append(items)
        self.began.set()
        assert self.may_go_on.wait(timeout=20)
        if self.failure:
            raise self.failure


@pytest.fixture
def act():
    return Act()


def meanwhile(commit, act, *calls):
    """Makes a first call and, while that is carried out, these; what became of all."""
    act.may_go_on.clear()
    with ThreadPoolExecutor(1 + len(calls)) as pool:
        first = pool.submit(commit, ["first"])
        assert act.began.wait(timeout=20)
        others = [pool.submit(commit, items) for items in calls]
        until(lambda: len(commit._waiting) == len(calls))
        act.may_go_on.set()
    return [done.exception() for done in (first, *others)]


def test_a_call_by_itself_is_carried_out_at_once(act):
    GroupCommit(act)(["a", "b"])

    assert act.calls == [["a", "b"]]


def test_calls_that_wait_are_carried_out_as_one(act):
    outcomes = meanwhile(GroupCommit(act), act, ["a", "b"], ["c"], [])

    assert outcomes == [None] * 4
    assert [sorted(items) for items in act.calls] == [["first"], ["a", "b", "c"]]


def test_who_was_taken_along_is_told_of_the_failure_and_the_next_call_is_not(act):
    commit = GroupCommit(act)
    act.failure = OSError("the database is away")

    outcomes = meanwhile(commit, act, ["a"], ["b"])
    assert outcomes == [act.failure] * 3

    act.failure = None
    commit(["c"])
    assert act.calls[-1] == ["c"]


def test_every_call_of_many_threads_is_carried_out_once_and_answered_by_then():
    counted, turns = set(), []

    def act(items):
        turns.append(len(items))
        counted.update(items)

    commit = GroupCommit(act)

    def call(number):
        commit([number])
        return number in counted

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(call, range(800)))

    assert counted == set(range(800))
    assert sum(turns) == 800
