"""Processes of tests/forked.py are as independent as those that exec(2) starts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked

SHOW = """#!python
import os, sys
print(sys.argv, os.environ["TOLD"], os.getsid(0) == os.getpid())
print(sorted(os.listdir("/proc/self/fd")))
print([name for name in sys.modules if name.startswith(("pushsvc", "tests.leftovers"))])
print("warned", file=sys.stderr)
sys.exit(3)
"""
SLEEP = "#!python\nimport time\nprint('begun')\ntime.sleep(600)"


ORDER = """
import sys
from tests import forked
print(forked.run(f"python {sys.argv[1]}/program", {}, timeout=60)[1])
"""
SHARE = """
import subprocess, sys
from pathlib import Path
from tests import forked
program, folder = sys.argv[1:]
forked.share_nursery(Path(folder))
for _ in range(2):
    subprocess.run([sys.executable, "-c", program, folder], check=True)
"""


@pytest.fixture
def start(tmp_path):
    """Starts a Python program that a command names."""

    def start(program, command="program"):
        script = tmp_path / "program"
        script.write_text(program)
        script.chmod(0o755)
        environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "TOLD": "told"}
        with (tmp_path / "log").open("w") as log:
            return forked.start(command, environment, log)

    return start


@pytest.mark.parametrize("program", ["program", 'python "$HOME/program"'])
def test_it_runs_the_script_with_its_own_arguments_environment_and_streams(
    program, start, tmp_path
):
    process = start(SHOW, program + ' --port ${PORT:-8000} "$TOLD"')

    assert process.wait(timeout=60) == 3
    arguments, descriptors, modules, warned = (tmp_path / "log").read_text().splitlines()
    assert arguments == f"{[str(tmp_path / 'program'), '--port', '8000', 'told']} told True"
    assert descriptors == "['0', '1', '2', '3']"  # the last is that of the list itself
    assert modules == "[]"
    assert warned == "warned"


def test_it_runs_a_module(start, tmp_path):
    process = start("", "python -m json.tool --help")

    assert process.wait(timeout=60) == 0
    assert "infile" in (tmp_path / "log").read_text()


def test_it_ends_as_the_signal_ends_it(start):
    process = start(SLEEP)

    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.01)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(timeout=60) == -signal.SIGKILL
    assert process.poll() == -signal.SIGKILL
    assert not Path(f"/proc/{process.pid}").exists()


def test_it_ends_as_python_does_after_an_exception(start, tmp_path):
    process = start("#!/x\nraise KeyError('lost')")

    assert process.wait(timeout=60) == 1
    assert (tmp_path / "log").read_text().endswith("KeyError: 'lost'\n")


def test_processes_order_from_the_nursery_that_is_shared_with_them(tmp_path):
    (tmp_path / "program").write_text("import os; print(os.getppid())")
    share = [sys.executable, "-c", SHARE, ORDER, str(tmp_path)]

    done = subprocess.run(
        share, cwd=forked.CHECKOUT, capture_output=True, text=True, check=True, timeout=120
    )

    one, other = done.stdout.split()
    assert one == other
