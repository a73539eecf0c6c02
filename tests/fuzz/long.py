"""`make fuzz`: 100,000 requests, as the OpenAPI document allows them, to a web process on a socket.

    make fuzz ARGS="--cases 20000 --seed 7"

It prints how many requests each operation got and how they were answered. It fails for an answer
that the document does not name: a 5xx, another status, content type, header or body. Other
arguments are pytest's.

    make fuzz ARGS="--texts 1000000"

reads so many random texts with placeholders instead. It fails for an error other than the one that
says a text is no template, and prints how long the slowest took.
"""

import argparse
import os
import random
import sys

from tests.fuzz.texts import check_texts

_TEST = "tests/fuzz/test_stateful.py::test_every_answer_of_a_web_process_is_named_by_the_document"


def main():
    parser = argparse.ArgumentParser(description=__doc__, prog="make fuzz")
    parser.add_argument("--cases", type=int, default=100_000, help="at least so many requests")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--texts", type=int, default=0, help="so many texts instead of requests")
    arguments, of_pytest = parser.parse_known_args()
    print(f"seed {arguments.seed}", flush=True)  # noqa: T201 (a command's output)
    if arguments.texts:
        accepted, slowest, slow = check_texts(arguments.texts, arguments.seed)
        told = f"{arguments.texts:,} texts, {accepted:,} of them templates with a placeholder."
        print(told, f"Slowest: {slowest * 1000:.2f} ms; over 1 ms: {slow}.")  # noqa: T201
        return
    os.environ["FUZZ_CASES"] = str(arguments.cases)
    os.environ["FUZZ_SEED"] = str(arguments.seed)
    command = ["-m", "pytest", _TEST, "-s", "-o", "faulthandler_timeout=0", "-p", "no:randomly"]
    os.execv(sys.executable, [sys.executable, *command, *of_pytest])  # noqa: S606 (no shell is wanted)


if __name__ == "__main__":
    main()
