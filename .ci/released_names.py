"""Keeps the names that clients use: no operation or schema of a released OpenAPI document goes.

`make lint` runs it. `make released-names` adds the names of a version that is about to be released.
"""

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
RELEASED = ROOT / ".ci" / "released-names.txt"
DOCUMENT = ROOT / "docs" / "openapi.yaml"


def main(*arguments: str) -> int:
    current, released = _names(), set(RELEASED.read_text(encoding="utf-8").splitlines())
    if missing := sorted(released - current):
        rule = "docs/openapi.yaml lacks names that clients of a released version use:"
        print(rule, *missing, sep="\n", file=sys.stderr)
        return 1
    if arguments == ("--add",):
        RELEASED.write_text("".join(f"{name}\n" for name in sorted(current)), encoding="utf-8")
    return 0


def _names() -> set[str]:
    document = yaml.load(DOCUMENT.read_text(encoding="utf-8"), yaml.CSafeLoader)
    operations = [each for path in document["paths"].values() for each in path.values()]
    return {f"operation {each['operationId']}" for each in operations} | {
        f"schema {name}" for name in document["components"]["schemas"]
    }


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
