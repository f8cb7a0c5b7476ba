"""The budget: how much work each main operation may do, in kept figures that are counted and never timed.

    python -m tests.budget.count                     # count everything and compare
    python -m tests.budget.count --write             # count everything and keep the figures
    python -m tests.budget.count --details "search"  # what an operation consists of, the most frequent first

`figures.json` has the figures. SQL statements, writes and crossings have to be the kept ones exactly; Python calls, of
which another version of Python may make some more, within `MARGIN`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.budget.counting import ROOT, Counts

KEPT: Final = Path(__file__).with_name("figures.json")
PARTS: Final = ("operations", "turns")
MARGIN: Final = 0.1
"""How far the number of calls may be from the kept one, as a share of it."""
WRITE: Final = "python -m tests.budget.count --write"
SEED: Final = "0"
"""Of the hashes of strings: the order of a set is the same in every run."""

Figures = Mapping[str, Counts]


class Found(NamedTuple):
    """What was counted, and what it consists of."""

    counts: Counts
    details: str


def counted(part: str) -> dict[str, Found]:
    """Count one of `PARTS` in a process of its own."""
    ours = {"PYTHONHASHSEED": SEED, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), *sys.path]))}
    others = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_"))}
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "counted.json"
        command = [sys.executable, "-m", "tests.budget.process", part, str(result)]
        done = subprocess.run(command, cwd=ROOT, env=others | ours, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"nothing was counted: {done.stdout}{done.stderr}")
        found = json.loads(result.read_text(encoding="utf-8"))
    return {name: Found(Counts(**each["counts"]), each["details"]) for name, each in found.items()}


def kept() -> dict[str, dict[str, Counts]]:
    """The kept figures of each part."""
    parts = json.loads(KEPT.read_text(encoding="utf-8"))
    return {part: {name: Counts(**each) for name, each in figures.items()} for part, figures in parts.items()}


def keep(parts: Mapping[str, Figures]) -> None:
    """Write the figures, an operation on a line."""
    blocks = [
        f"  {json.dumps(part)}: {{\n"
        + ",\n".join(f"    {json.dumps(name)}: {json.dumps(each._asdict())}" for name, each in figures.items())
        + "\n  }"
        for part, figures in parts.items()
    ]
    KEPT.write_text("{\n" + ",\n".join(blocks) + "\n}\n", encoding="utf-8")


def complaints(found: Figures, expected: Figures) -> Iterator[str]:
    """A sentence for each figure that is not the kept one, which says what to do.

    Operations that were not counted are passed over: their framework is not installed.
    """
    for name, counts in found.items():
        if name not in expected:
            yield f"{name}: no figures are kept; keep them: {WRITE}"
            continue
        for kind, now, before in zip(Counts._fields, counts, expected[name], strict=True):
            margin = MARGIN * before if kind == "calls" else 0
            if now > before + margin:
                yield (
                    f"{name}: {now} {kind}, and {before} are kept. It does more than it did: find out why "
                    f"(python -m tests.budget.count --details {name!r}), or, if it is worth it, keep the higher figure "
                    f"and say why in the commit: {WRITE}"
                )
            elif now < before - margin:
                yield f"{name}: {now} {kind}, and {before} are kept. It does less, well done: lower the figure: {WRITE}"


def _table(parts: Mapping[str, Figures]) -> Iterator[str]:
    yield f"{'':62}" + "".join(f"{kind:>12}" for kind in Counts._fields)
    for figures in parts.values():
        for name, counts in figures.items():
            yield f"{name:62}" + "".join(f"{count:12,}" for count in counts)


def main() -> int:
    """Count, and do what the arguments say; returns 1 if a figure is not the kept one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the counted figures")
    parser.add_argument("--details", metavar="NAME", help="what this operation consists of")
    given = parser.parse_args()
    found = {part: counted(part) for part in PARTS}
    figures = {part: {name: each.counts for name, each in some.items()} for part, some in found.items()}
    lines = list(_table(figures))
    if given.details:
        lines = [some[given.details].details for some in found.values() if given.details in some]
    elif given.write:
        keep(figures)
    else:
        lines += [line for part in PARTS for line in complaints(figures[part], kept()[part])]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(not (given.write or given.details) and len(lines) > 1 + sum(map(len, figures.values())))


if __name__ == "__main__":
    sys.exit(main())
