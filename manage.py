#!/usr/bin/env python
"""Django's commands, with the settings and servers of `make run` where the environment has none."""

import os
import sys
from importlib.util import find_spec


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pushsvc.settings")
    if find_spec("local"):  # not part of the production image
        from local.embedded import prepare_environment

        prepare_environment(sys.argv)

    # After the environment is complete: settings are read from it once.
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
