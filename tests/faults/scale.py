"""How much larger a run is than `make test`, and how much longer its waits may be for it."""

import os

SCALE = int(os.environ.get("FAULTS_SCALE", "1"))


def patience(seconds):
    """The limit of a wait for what never happens: what is done for many takes longer."""
    return seconds * SCALE
