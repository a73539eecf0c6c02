"""How much larger a run is than `make test`, and how much longer its waits may be."""

import os

SCALE = int(os.environ.get("FAULTS_SCALE", "1"))


def patience(seconds):
    """The limit of a wait for something that never happens: larger runs take longer."""
    return seconds * SCALE
