import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def home():
    """A home of its own, not yet there; what runs in it is the test's to stop."""
    with tempfile.TemporaryDirectory(prefix="pushsvc-ops-") as folder:
        yield Path(folder) / "home"
