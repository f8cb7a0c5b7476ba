"""Counts in a process of its own: `python -m tests.budget.process operations|turns FILE` writes what it counted.

Nothing else runs there: no other test, no coverage, no threads from before the counter was made.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from memory_core.adapting import core_loop
from tests.budget.counting import Counter
from tests.budget.operations import count_operations
from tests.budget.turns import count_turns

PARTS: Final = {"operations": count_operations, "turns": count_turns}


def main(part: str, into: str) -> None:
    """Count one part and write figures and details as JSON."""
    counter = Counter()
    core_loop()  # before a framework chooses another kind of loop, whose crossings no profile shows
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        found = runner.run(PARTS[part](counter, Path(folder)))
    written = {name: {"counts": each.counts()._asdict(), "details": each.details()} for name, each in found.items()}
    Path(into).write_text(json.dumps(written), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
