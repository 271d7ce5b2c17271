from pathlib import Path

import pytest

from tests.networks import Tables


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """A small, sound network as files, for a test to change or break."""
    return Tables(tmp_path)
