import subprocess
import sys

from tests.ops.helpers import CHECKOUT

ASK = "from bench.ports import own_port; print(*[own_port() for _ in range(200)])"


def test_no_two_processes_get_the_same_port():
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", ASK], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    given = [port for each in asking for port in each.communicate(timeout=60)[0].split()]
    assert len(given) == len(set(given)) == 800
