"""`make cluster`: pushsvc on several machines, which are network namespaces of this one.

    make cluster
    make cluster ARGS="-k vanish"         # some of the faults, and no rates
    make cluster ARGS="--only-rates --messages 20000"

It needs root, iproute2, and a C compiler for clocks that differ. With FAULTS_SEED the tests make
the same choices.
"""

import os
import subprocess
import sys

from tests.faults.cluster import network, system

_TESTS = ("-m", "pytest", "tests/faults/cluster", "-v", "-s", "-o", "faulthandler_timeout=0")
_RATES = ("-m", "tests.faults.cluster.rates")


def main():
    lack = network.lack() or system.lack()
    if lack:
        sys.exit(f"make cluster cannot run here: {lack}")
    given = sys.argv[1:]
    if given[:1] == ["--only-rates"]:
        sys.exit(_run(*_RATES, *given[1:]))
    failed = _run(*_TESTS, *given)
    sys.exit(failed or (0 if given else _run(*_RATES)))


def _run(*words):
    environment = os.environ | {"FAULTS_CLUSTER": "yes"}
    return subprocess.run([sys.executable, *words], env=environment, check=False).returncode


if __name__ == "__main__":
    main()
