"""Work that coverage does not measure, because with it Python takes more than twice the processor
time."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from types import ModuleType

import pytest


@contextmanager
def unmeasured() -> Iterator[None]:
    """Stops coverage in this thread during the block, except for imports: the lines that define
    something run once in each process."""
    trace = sys.gettrace()
    if not trace:
        yield
        return
    execute = SourceFileLoader.exec_module

    def execute_measured(loader: SourceFileLoader, module: ModuleType) -> None:
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            execute(loader, module)
        finally:
            sys.settrace(before)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SourceFileLoader, "exec_module", execute_measured)
        sys.settrace(None)
        try:
            yield
        finally:
            sys.settrace(trace)
