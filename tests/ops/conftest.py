import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def home():
    """A home that does not exist yet. The test must stop what it starts in it."""
    with tempfile.TemporaryDirectory(prefix="pushsvc-ops-") as folder:
        yield Path(folder) / "home"
