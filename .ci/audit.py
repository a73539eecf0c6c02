"""`make audit`: looks up every pinned package in the advisories that pip-audit knows.

The exit status is 1 if a known vulnerability is found or the requirements cannot be read. If the
advisories cannot be reached, the audit says so and does not fail, because nothing is known then.
Arguments are pip-audit's own.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
# All packages of all files: dev.txt holds those of base.txt and run.txt too.
FILES = ("dev.txt", "audit.txt", "uv.txt")

Package = dict[str, Any]


def main(options: list[str]) -> int:
    results = [_audit(name, options) for name in FILES]
    return 0 if all(results) else 1


def _audit(name: str, options: list[str]) -> bool:
    """Prints what is known of the packages in this file. Returns False if something must be
    repaired."""
    done = _pip_audit(name, *options)
    try:
        packages: list[Package] = json.loads(done.stdout)["dependencies"]
    except ValueError:
        return _without_answer(name, done.stderr)
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    vulnerable = [package for package in packages if package.get("vulns")]
    for package in vulnerable:
        _show(package)
    if len(unknown) == len(packages):
        _say(name, f"no advisories can be had, nothing is known of the {len(packages)} packages")
        return True
    counted = f"{len(packages) - len(unknown)} of {len(packages)} packages looked up"
    _say(name, f"{counted}, {len(vulnerable)} with a known vulnerability")
    if unknown:
        _say(name, f"no advisories can be had of {', '.join(unknown)}")
    return not vulnerable


def _without_answer(name: str, words: str) -> bool:
    """Whether at least the requirements can be read; then only the advisories are missing."""
    dry = _pip_audit(name, "--dry-run")
    if dry.returncode:
        _say(name, f"the requirements cannot be audited\n{dry.stderr}")
        return False
    reason = words.strip().splitlines()[-1:]
    _say(name, f"the advisories cannot be reached, nothing was looked up: {' '.join(reason)}")
    return True


def _show(package: Package) -> None:
    for found in package["vulns"]:
        fixed = ", ".join(found["fix_versions"]) or "no version yet"
        known = ", ".join([found["id"], *found["aliases"]])
        print(f"VULNERABLE {package['name']} {package['version']}: {known}; fixed in {fixed}")


def _say(name: str, text: str) -> None:
    print(f"audit: requirements/{name}: {text}")


def _pip_audit(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("pip-audit")
    fixed = ["--format=json", "--progress-spinner=off", "--disable-pip", "--require-hashes"]
    return subprocess.run(
        [program, *fixed, "--requirement", CHECKOUT / "requirements" / name, *options],
        capture_output=True,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
