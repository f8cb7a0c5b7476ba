"""The fault matrix: every public operation with every fault, one after the other, and what is left of the memory.

    python -m tests.storage.faults.matrix [--most N] [--operations NAME ...]

For each operation the calls of each kind are counted once; then it is repeated with call 1, 2, ... going wrong, every
one up to N (200 by default), and samples beyond. After each fault the file is opened again: every record that was there
before and is not the operation's business has to be there (otherwise it is *lost*); an operation that reported success
has to be done, and one that failed has to be done or not done, with nothing wrong in the file (otherwise it is *half*).
A cell shows faults/reported: faults that are not reported did no harm, such as one in a merge of the log that is
repeated later. The last column is memory, through SQLite's hard heap limit; losses of power follow (`power.py`).

Dropped writes and truncations stand apart: a disk that reports what it did not do can lose the latest transaction of
any program. What counts there is that nothing is half without being noticed.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from memory_core import Memory, MemoryCoreError, run_sync
from tests.storage.faults.operations import (
    EMBEDDER,
    FILES,
    OPERATIONS,
    OTHER,
    State,
    is_whole,
    make,
    path_of,
    state,
)
from tests.storage.faults.power import losses
from tests.storage.faults.preloaded import Faults, Kind, Manner, compiled, environment

MOST: Final = 200
SAMPLES: Final = 50
"""Faults beyond the first `MOST` of a kind."""
HEAP_LEVELS: Final = 40
_SECONDS: Final = 120
"""After which a case is regarded as hanging."""

FAULTS: Final = (
    (Kind.WRITE, Manner.ERROR),
    (Kind.WRITE, Manner.FULL),
    (Kind.WRITE, Manner.SHORT),
    (Kind.SYNC, Manner.ERROR),
    (Kind.READ, Manner.ERROR),
    (Kind.READ, Manner.SHORT),
    (Kind.TRUNCATE, Manner.ERROR),
    (Kind.WRITE, Manner.DROP),
    (Kind.TRUNCATE, Manner.DROP),
)
LYING: Final = Manner.DROP


class Outcome(NamedTuple):
    """The outcome of one fault."""

    is_reported: bool
    is_lost: bool = False
    is_half: bool = False
    is_unclear: bool = False
    """The error is none of this library."""
    note: str = ""


@dataclass(slots=True)
class Cell:
    """The outcomes of one operation with one fault."""

    faults: int = 0
    reported: int = 0
    lost: int = 0
    half: int = 0
    unclear: int = 0

    def count(self, outcome: Outcome) -> None:
        self.faults += 1
        self.reported += outcome.is_reported
        self.lost += outcome.is_lost
        self.half += outcome.is_half
        self.unclear += outcome.is_unclear

    def __str__(self) -> str:
        bad = "".join(
            f" {n} {name}" for n, name in ((self.lost, "lost"), (self.half, "half"), (self.unclear, "unclear")) if n
        )
        return f"{self.faults}/{self.reported}{bad}" if self.faults else "-"


class Case:
    """One run of an operation in a fresh folder."""

    def __init__(self, name: str, origin: Path, folder: Path, faults: Faults) -> None:
        self.name, self.operation = name, OPERATIONS[name]
        self._origin, self._folder, self._faults = origin, folder, faults

    def run(
        self, around: Callable[[Callable[[], object]], object]
    ) -> tuple[BaseException | None, State | None, Sequence[str]]:
        """Run the operation inside `around`; returns its error, the records afterwards, and what is wrong then."""
        faulthandler.dump_traceback_later(_SECONDS, exit=True)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        for file in FILES:
            shutil.copyfile(self._origin / file, self._folder / file)
        memory = Memory(path_of(self._folder), embedder=EMBEDDER)
        if self.name != "open":
            run_sync(memory.open)
        error: BaseException | None = None
        try:
            around(lambda: self.operation.perform(memory, self._folder))
        except Exception as raised:  # noqa: BLE001  (what it is, is judged)
            error = raised
        try:
            run_sync(memory.close)
        except MemoryCoreError as raised:
            error = error or raised
        judged = (error, *self._afterwards())
        faulthandler.cancel_dump_traceback_later()
        return judged

    def _afterwards(self) -> tuple[State | None, Sequence[str]]:
        for embedder in (EMBEDDER, OTHER):
            try:
                with Memory(path_of(self._folder), embedder=embedder) as memory:
                    found = [each.problem for each in run_sync(memory.operator().check)]
                    return state(memory), [*found, *self._made()]
            except MemoryCoreError as error:
                found = [f"{type(error).__name__}: {error}"]
        return None, found

    def _made(self) -> Sequence[str]:
        made = self.operation.made
        if made is None or not (path := self._folder / made).exists() or is_whole(path):
            return ()
        return [f"{made} is not whole"]


class Matrix:
    """The table of all cells."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most
        self._origin = folder / "origin"
        self._origin.mkdir()
        make(self._origin)
        self.faults = Faults((folder / "case").resolve())
        with Memory(path_of(self._origin), embedder=EMBEDDER) as memory:
            self._before = state(memory)

    def row(self, name: str) -> list[Cell]:
        """All faults of one operation; the last cell is that of memory."""
        case = Case(name, self._origin, self._folder / "case", self.faults)
        counts: dict[Kind, int] = {}

        def counted(perform: Callable[[], object]) -> None:
            with self.faults.counted() as found:
                perform()
            counts.update(found)

        error, after, wrong = case.run(counted)
        assert error is None, f"{name} fails without a fault: {error!r}"
        assert after is not None
        assert not wrong, (name, wrong)
        cells: list[Cell] = []
        for kind, manner in FAULTS:
            cell = Cell()
            for number in numbers(counts[kind], self._most):
                cell.count(self._outcome(case, after, kind, number, manner))
            cells.append(cell)
        return [*cells, self._starved(case, after)]

    def _outcome(self, case: Case, after: State, kind: Kind, number: int, manner: Manner) -> Outcome:
        def faulty(perform: Callable[[], object]) -> None:
            self.faults.arm(kind, number, manner)
            try:
                perform()
            finally:
                self.faults.disarm()

        outcome = self._judged(case, after, *case.run(faulty), is_lying=manner == LYING)
        if outcome.is_lost or outcome.is_half or outcome.is_unclear:
            sys.stderr.write(f"{case.name}: {kind.name} {number} {manner.name}: {outcome.note}\n")
        return outcome

    def _judged(
        self,
        case: Case,
        after: State,
        error: BaseException | None,
        now: State | None,
        wrong: Sequence[str],
        *,
        is_lying: bool,
    ) -> Outcome:
        is_unclear = error is not None and not isinstance(error, MemoryCoreError | MemoryError)
        note = f"{error!r} {list(wrong)[:2]}"
        if now is None:
            return Outcome(is_reported=True, is_lost=not is_lying, is_unclear=is_unclear, note=note)
        if wrong:
            return Outcome(is_reported=True, is_half=not is_lying, is_unclear=is_unclear, note=note)
        expected = self._before & after
        is_lost = not expected <= now or (error is None and now != after and not case.operation.is_stepwise)
        allowed = now <= self._before | after if case.operation.is_stepwise else now in (self._before, after)
        if is_lying and now == self._before:
            is_lost = False  # the disk said that it was done
        return Outcome(error is not None, is_lost, not allowed, is_unclear, note)

    def _starved(self, case: Case, after: State) -> Cell:
        cell = Cell()
        heap = Heap()
        peak: list[int] = []

        def measured(perform: Callable[[], object]) -> None:
            heap.reset()
            base = heap.used()
            perform()
            peak.append(heap.most() - base)

        case.run(measured)
        levels = min(HEAP_LEVELS, self._most)
        for level in range(levels):
            spare = peak[0] * level // levels

            def starved(perform: Callable[[], object], spare: int = spare) -> None:
                with heap.limited(spare):
                    perform()

            outcome = self._judged(case, after, *case.run(starved), is_lying=False)
            if outcome.is_lost or outcome.is_half or outcome.is_unclear:
                sys.stderr.write(f"{case.name}: heap of {spare} more bytes: {outcome.note}\n")
            cell.count(outcome)
        return cell


class Heap:
    """The memory of SQLite in this process."""

    def __init__(self) -> None:
        import _sqlite3  # the library that Python's own module uses

        library = ctypes.CDLL(_sqlite3.__file__)
        self._limit, self._used, self._most = (
            getattr(library, name)
            for name in ("sqlite3_hard_heap_limit64", "sqlite3_memory_used", "sqlite3_memory_highwater")
        )
        self._limit.argtypes = [ctypes.c_int64]
        for call in (self._limit, self._used, self._most):
            call.restype = ctypes.c_int64

    def used(self) -> int:
        return int(self._used())

    def most(self) -> int:
        return int(self._most(0))

    def reset(self) -> None:
        self._most(1)

    def limited(self, spare: int) -> _Limit:
        """Let SQLite have only so many bytes more than now."""
        return _Limit(self._limit, self.used() + spare)


class _Limit:
    def __init__(self, limit: Callable[[int], int], most: int) -> None:
        self._limit, self._most = limit, most

    def __enter__(self) -> None:
        self._limit(self._most)

    def __exit__(self, *_: object) -> None:
        self._limit(0)


def numbers(count: int, most: int) -> Iterator[int]:
    """The calls that go wrong: all up to `most`, and samples of the rest."""
    yield from range(1, min(count, most) + 1)
    if count > most:
        rest = range(most + 1, count + 1)
        yield from sorted(random.Random(count).sample(rest, min(SAMPLES, len(rest), most)))


def table(names: Sequence[str], most: int, crashes: int) -> bool:
    """Print the table; whether nothing is lost, half or unclear."""
    heads = [f"{kind.name.lower()} {manner.name.lower()}" for kind, manner in FAULTS] + ["memory"]
    total, good = [Cell() for _ in heads], True
    with tempfile.TemporaryDirectory(dir=os.environ.get("FAULTS_FOLDER")) as folder:
        matrix = Matrix(Path(folder).resolve(), most)
        write(["operation", *heads])
        write(["---"] * (len(heads) + 1))
        for name in names:
            cells = matrix.row(name)
            write([name, *cells])
            for cell, all_ in zip(cells, total, strict=True):
                for field in ("faults", "reported", "lost", "half", "unclear"):
                    setattr(all_, field, getattr(all_, field) + getattr(cell, field))
        write(["all", *total])
        good = not any(cell.lost or cell.half or cell.unclear for cell in total)
        power = losses(matrix.faults, Path(folder).resolve(), crashes)
    sys.stdout.write(f"\n{power}\n")
    return good and power.is_good


def write(row: Sequence[object]) -> None:
    """Write a row of the table."""
    sys.stdout.write(f"| {' | '.join(map(str, row))} |\n")
    sys.stdout.flush()


def main() -> int:
    """Print the table; 1 if anything is lost, half or unclear."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--most", type=int, default=MOST)
    parser.add_argument("--crashes", type=int, default=1_000)
    parser.add_argument("--operations", nargs="*", default=list(OPERATIONS))
    arguments = parser.parse_args()
    if "faults.so" not in os.environ.get("LD_PRELOAD", ""):
        with tempfile.TemporaryDirectory() as folder:
            library = compiled(Path(folder))
            command = [sys.executable, "-m", "tests.storage.faults.matrix", *sys.argv[1:]]
            return subprocess.run(command, env=environment(library), check=False).returncode
    return 0 if table(arguments.operations, arguments.most, arguments.crashes) else 1


if __name__ == "__main__":
    sys.exit(main())
