from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_core import BoundMemory, Memory

sys.path.insert(0, str(Path(__file__).parent))  # tests are no package, and they share `foreign_parts`


@pytest.fixture
async def everybodys(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(tmp_path / "ann.db") as memory:
        yield memory


@pytest.fixture
def ann(everybodys: Memory) -> BoundMemory:
    return everybodys.bind(user="ann")
