"""`make test-engines`: a short fault suite on each server that an installation may have instead of
the wheels'.

    make test-engines
    make test-engines ARGS="rabbitmq pgbouncer"
    make test-engines ARGS="postgresql-15,redis-7,rabbitmq"    # all three in one installation

It skips an engine whose programs are missing, and says which package has them. With FAULTS_SEED the
tests make the same choices.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time

from tests.faults.engines.engine import ENGINES

SHORT = (
    "tests/faults/test_broker_faults.py",
    "tests/faults/test_database_faults.py",
    "tests/faults/test_deploys.py::test_a_deploy_under_load_loses_and_doubles_nothing",
    "tests/faults/test_worker_faults.py::"
    "test_workers_killed_repeatedly_repeat_only_unwritten_outcomes",
    "tests/faults/test_random_faults.py",
)
OTHERS = {
    "pgbouncer": (*SHORT, "tests/faults/engines/test_pgbouncer.py"),
    "standby": ("tests/faults/engines/test_standby.py",),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, prog="make test-engines")
    parser.add_argument("engines", nargs="*", default=list(ENGINES), type=_known)
    results = {engine: _try(engine) for engine in parser.parse_args().engines}
    _say("\n".join(f"{engine}: {result}" for engine, result in results.items()))
    sys.exit(any("failed" in result for result in results.values()))


def _known(names):
    if not ENGINES.keys() >= set(names.split(",")):
        raise argparse.ArgumentTypeError(f"{names!r} is not one of {', '.join(ENGINES)}")
    return names


def _try(names):
    """Some words about what became of it."""
    missing = [lack for name in names.split(",") if (lack := ENGINES[name].lack())]
    if missing:
        return f"skipped, because {' and '.join(missing)}"
    versions = ", ".join(
        _version(said) for name in names.split(",") for said in ENGINES[name].versions
    )
    _say(f"{names}: {versions}")
    began = time.monotonic()
    tests = {test for name in names.split(",") for test in OTHERS.get(name, SHORT)}
    command = [sys.executable, "-m", "pytest", "-v", "-o", "faulthandler_timeout=0"]
    environment = os.environ | {"FAULTS_ENGINE": names}
    ended = subprocess.run([*command, *sorted(tests)], env=environment, check=False)
    seconds = time.monotonic() - began
    return f"{'failed' if ended.returncode else 'passed'} in {seconds:.0f} s ({versions})"


def _version(command):
    words = shlex.split(command)
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return " ".join(said.split()[:3])


def _say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
