"""Measure all lines of the table, or some, one after the other; keep the results, and write the page and its plots.

    python tests/benchmarks/bench.py [LINE ...]

`make bench LINES="search insert"` does that. Nothing else should be running. `PEERS_PYTHON` names the Python that has
the peers, if they do not fit into this one; it needs what memory-core needs as well. Results are kept in
docs/benchmarks.json, and compared with the last ones.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lines.every import LINES
from lines.plots import plots
from lines.rendering import compared, rendered
from lines.result import Result, dumped, from_json, loaded

DOCS: Final = Path(__file__).parents[2] / "docs"
KEPT, PAGE, PLOTS = DOCS / "benchmarks.json", DOCS / "measured.md", DOCS / "plots"


def run(name: str, *options: str) -> Result:
    """Measure one line in a process of its own.

    Raises:
        RuntimeError: It failed.
    """
    python = os.environ.get("PEERS_PYTHON", sys.executable) if LINES[name].needs_peers else sys.executable
    command = [python, str(Path(__file__).with_name("line.py")), name, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode:
        raise RuntimeError(f"the line {name} failed")
    return from_json(json.loads(done.stdout.splitlines()[-1]))


def main(names: Sequence[str]) -> int:
    """Returns 1 if a line failed; the others are kept."""
    before = loaded(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    now: dict[str, Result] = {}
    for name in names:
        print(f"{name} ...", end=" ", flush=True)
        try:
            now[name] = run(name)
        except RuntimeError as error:
            print(error)
        else:
            print(now[name].skipped or f"{now[name].seconds:.0f} s")
    results = {name: (before | now)[name] for name in LINES if name in before | now}
    KEPT.write_text(dumped(results), encoding="utf-8")
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    for name, picture in plots(results).items():
        (PLOTS / name).write_text(picture, encoding="utf-8")
    print("\n".join(compared(before, now)))
    return int(len(now) < len(names))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", nargs="*", choices=[*LINES, []], metavar="LINE", help=", ".join(LINES))
    sys.exit(main(parser.parse_args().lines or [*LINES]))
