"""Ours beside other stores with 1,000 and 10,000 texts of one owner: search, first search, add, memory, disk.

Each store is filled through its own bulk call where it has one, and then opened in new processes, which take turns.
Vectors are given to all that take vectors; the others search by words. `PEERS_PYTHON` names the Python that has those
which do not fit into the environment of the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from lines.figure import Figure, absolute
from lines.installed import NOT_INSTALLED
from lines.result import Measured
from stores.every import LEFT_OUT, STORES

SIZES, ROUNDS = (1_000, 10_000), 3
LONGEST_FILL = 60.0
"""Seconds from which on a store is not filled with more."""
OURS: Final = "memory-core"
MEASURES: Final = {
    "search": ("search", "ms"),
    "first": ("first search", "ms"),
    "open": ("import and open", "ms"),
    "add": ("add", "ms"),
    "memory": ("memory", "MB"),
    "disk": ("disk", "MB"),
    "fill": ("filled", "/s"),
}
"""By the key of a process's answer, how the page calls it, and its unit."""

Answers = dict[tuple[str, int], list[dict[str, float]]]
"""By store and size, what its processes said."""


def pythons() -> list[str]:
    """The Pythons in which stores are looked for."""
    given = os.environ.get("PEERS_PYTHON")
    return [*([given] if given else []), sys.executable]


def answer(what: str, store: str, folder: str, size: int) -> dict[str, float] | str:
    """The figures that a process measures, or the reason why there are none."""
    script = str(Path(__file__).parents[1] / "store_process.py")
    failure = "not installed"
    for python in pythons():
        command = [python, script, what, store, folder, str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.returncode:
            found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
            return found
        if done.returncode != NOT_INSTALLED:
            return (done.stderr.strip().splitlines() or ["failed"])[-1]
    return failure


def filled(folder: str, stores: Iterable[str], sizes: Sequence[int], notes: list[str]) -> Answers:
    """Fill every store with every size."""
    found: Answers = {}
    for store in stores:
        seconds = 0.0
        for before, size in zip([1, *sizes], sizes, strict=False):
            if store != OURS and (expected := seconds * size / before) > LONGEST_FILL:
                notes.append(f"{store}: {size:,} texts would take {expected:.0f} s")
                break
            said = answer("fill", store, folder, size)
            if isinstance(said, str):
                notes.append(f"{store}: {said}")
                break
            found[store, size] = [said]
            seconds = size / said["fill"]
    return found


def searched(folder: str, full: Answers, rounds: int, notes: list[str]) -> Answers:
    """Open each in new processes, in turns."""
    found: Answers = {}
    for _ in range(rounds):
        for store, size in full:
            said = answer("search", store, folder, size)
            if isinstance(said, str):
                notes.append(f"{store}, {size:,} texts: {said}")
            else:
                found.setdefault((store, size), []).append(said)
    return found


def figures(answers: Answers) -> Iterator[Figure]:
    """Ours beside each other store."""
    for (store, size), theirs in answers.items():
        ours = answers[OURS, size]
        for key, (name, unit) in MEASURES.items():
            mine, its = ([said[key] for said in some if key in said] for some in (ours, theirs))
            if its and mine and store != OURS:
                yield absolute(f"{name}, {size:,}", unit, mine, beside=store, other=its)


def measure(*, short: bool) -> Measured:
    sizes, rounds = ((20,), 1) if short else (SIZES, ROUNDS)
    stores = [OURS, "FAISS with SQLite", "LangGraph in memory"] if short else [*STORES]
    notes = [f"{name}: {reason}" for name, reason in LEFT_OUT.items()]
    with tempfile.TemporaryDirectory() as folder:
        full = filled(folder, stores, sizes, notes)
        found = searched(folder, full, rounds, notes)
    together = {key: [*full[key], *some] for key, some in found.items()}
    return Measured([*figures(together)], notes)
