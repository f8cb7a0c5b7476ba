"""Measure one line of the table of docs/measured.md, and print one JSON object.

    python tests/benchmarks/line.py NAME [--short]

With `--short`, sizes are tiny and the figures say nothing: it shows that the line still works.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import platform
import subprocess
import sys
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

# Also in the Python of the peers, which need not have installed them.
sys.path.insert(1, str(Path(__file__).parents[2]))
sys.path.insert(2, str(Path(__file__).parents[2] / "adapters"))

from lines.every import LINES
from lines.installed import missing
from lines.result import Measured, Result, SkippedError

ROOT: Final = Path(__file__).parents[2]


def commit() -> str:
    """The version that is measured, with a `+` if files were changed."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return git("rev-parse", "--short=10", "HEAD") + (
        "+" if git("status", "--porcelain", "memory_core", "adapters") else ""
    )


def measured(name: str, *, short: bool) -> Result:
    """Run a line here, or say why not."""
    found, skipped, start = Measured(()), None, time.perf_counter()
    if absent := missing(LINES[name].needs):
        skipped = f"not installed: {', '.join(absent)}"
    else:
        try:
            found = importlib.import_module(f"lines.{name}").measure(short=short)
        except SkippedError as error:
            skipped = str(error)
    return Result(
        line=name,
        figures=found.figures,
        skipped=skipped,
        notes=found.notes,
        date=datetime.now(UTC).date().isoformat(),
        commit=commit(),
        python=platform.python_version(),
        cpus=len(os.sched_getaffinity(0)),
        seconds=round(time.perf_counter() - start, 1),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=LINES)
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    print(json.dumps(measured(given.name, short=given.short).as_json()))


if __name__ == "__main__":
    main()
