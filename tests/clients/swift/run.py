"""`make swift`: compiles and tests clients/ios, and the app of docs/apns.md, against the service.

    make swift
    make swift ARGS="-k token"

The compiler is Debian 13's, in a chroot in /var/cache/pushsvc-swift that the first run makes. It
needs root, debootstrap and 4 GB.
"""

import os
import subprocess
import sys

from tests.clients.swift import chroot


def main():
    lack = chroot.lack()
    if lack:
        sys.exit(f"make swift cannot run here: {lack}")
    tests = ("-m", "pytest", "tests/clients/swift", "-v", *sys.argv[1:])
    environment = os.environ | {"SWIFT": "yes"}
    with chroot.alone():
        chroot.make()
        done = subprocess.run([sys.executable, *tests], env=environment, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
