"""`make soak`: the fault suite with five times the devices, full waits and an hour of random
faults.

    make soak ARGS="--seed 7"
    make soak ARGS="--seed 7 --minutes 10 -k random"

For `--minutes` one random fault is made after another, fifty with each channel; the other tests
take their time besides. The same seed makes the same choices; the moment at which a fault meets the
processes depends on the machine. Other arguments are pytest's. With `--scale` times the devices,
waits are `--scale` times as long.
"""

import argparse
import os
import random
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__, prog="make soak")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--minutes", type=int, default=60, help="minutes of random faults")
    parser.add_argument(
        "--scale", type=int, default=5, help="devices, as a multiple of `make test`"
    )
    arguments, of_pytest = parser.parse_known_args()
    print(f"seed {arguments.seed}", flush=True)  # noqa: T201 (a command's output)
    os.environ["FAULTS_SEED"] = str(arguments.seed)
    os.environ["FAULTS_MINUTES"] = str(arguments.minutes)
    os.environ["FAULTS_SCALE"] = str(arguments.scale)
    os.environ["FAULTS_LONG"] = "yes"
    command = [
        "-m",
        "pytest",
        "tests/faults",
        "tests/pipeline/test_model.py",
        "-v",
        "-s",
        "-o",
        "faulthandler_timeout=0",
    ]
    seeded = [f"--hypothesis-seed={arguments.seed}", "-p", "no:randomly"]
    os.execv(sys.executable, [sys.executable, *command, *seeded, *of_pytest])  # noqa: S606 (no shell is wanted)


if __name__ == "__main__":
    main()
