"""Losses of power: what reached the disk of a run is played up to any moment, and what was not synced is kept or not.

While operations run one after the other, `faults.c` records every write, truncation and sync of their files. For a loss
of power at some moment each file has everything up to its last sync before that moment; of what came after it any part
can be there, in any combination, and the last write torn at any byte. The memory is made from that and opened: it is in
the state after the operations that were acknowledged by then, or, if one was under way, after that one. Names
(creation, renaming, deletion) are taken to be durable at once, and the -shm file is gone.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memory_core import Draft, Memory, MemoryCoreError, Patch, Where, run_sync
from tests.storage.faults.operations import EMBEDDER, State, make, path_of, state
from tests.storage.faults.preloaded import Event, Faults, What, events

STEPS: Final[Sequence[Callable[[Memory], object]]] = (
    lambda memory: run_sync(memory.bind(user="ann").add, Draft("cocoa", id="c")),
    lambda memory: run_sync(memory.bind(user="ann").add_many, [Draft(f"cocoa {n} " + "more " * n) for n in range(60)]),
    lambda memory: run_sync(memory.bind(user="ann").update, "a1", Patch(text="cocoa " * 900)),
    lambda memory: run_sync(memory.bind(user="ann").delete, "a2"),
    lambda memory: run_sync(
        memory.bind(user="bob").put_many, [Draft(f"put {n}", source_key=f"p{n}") for n in range(30)]
    ),
    lambda memory: run_sync(memory.bind(user="ann").supersede, "a4", "tea is black"),
    lambda memory: run_sync(memory.bind(user="ann").delete_where, Where(session="s1")),
    lambda memory: run_sync(memory.operator().vacuum),
    lambda memory: run_sync(memory.bind(user="bob").erase),
    lambda memory: run_sync(memory.bind(user="ann").add, "the last one"),
)


@dataclass(frozen=True, slots=True)
class Losses:
    """The outcome of the losses of power."""

    crashes: int
    lost: int
    half: int
    dropped: int
    """The number of unsynced writes that were left out."""

    @property
    def is_good(self) -> bool:
        return not self.lost and not self.half

    def __str__(self) -> str:
        return (
            f"losses of power: {self.crashes}, unsynced writes left out: {self.dropped}, lost {self.lost}, "
            f"half {self.half}"
        )


class _Disk:
    """The files as they are after a loss of power."""

    def __init__(self, before: dict[str, bytes]) -> None:
        self._synced = {path: bytearray(content) for path, content in before.items()}
        self._pending: dict[str, list[Event]] = {}

    def happen(self, event: Event) -> None:
        """Something reached the files."""
        if event.what in (What.WROTE, What.CUT):
            self._pending.setdefault(event.path, []).append(event)
        elif event.what == What.SYNCED:
            content = self._synced.setdefault(event.path, bytearray())
            for each in self._pending.pop(event.path, []):
                apply(content, each)
        elif event.what == What.UNLINKED:
            self._synced.pop(event.path, None)
            self._pending.pop(event.path, None)
        elif event.what == What.RENAMED:
            to = event.data.decode()
            self._synced[to] = self._synced.pop(event.path, bytearray())
            self._pending[to] = self._pending.pop(event.path, [])

    def lose_power(self, draw: random.Random) -> tuple[dict[str, bytes], int]:
        """The files afterwards, and how many writes are not in them."""
        files, dropped = {path: bytearray(content) for path, content in self._synced.items()}, 0
        for path, pending in self._pending.items():
            content, share = files.setdefault(path, bytearray()), draw.choice((0.0, 0.5, 0.9))
            kept = [event for event in pending if draw.random() < share]
            dropped += len(pending) - len(kept)
            for event in kept[:-1]:
                apply(content, event)
            for event in kept[-1:]:
                torn = draw.randrange(len(event.data) + 1) if draw.random() < 0.5 else len(event.data)
                apply(content, event._replace(data=event.data[:torn]))
        return {path: bytes(content) for path, content in files.items()}, dropped


def apply(content: bytearray, event: Event) -> None:
    """Let a write or a truncation change the content of its file."""
    if event.what == What.CUT:
        del content[event.offset :]
        content.extend(bytes(event.offset - len(content)))
        return
    end = event.offset + len(event.data)
    content.extend(bytes(max(0, end - len(content))))
    content[event.offset : end] = event.data


def losses(faults: Faults, folder: Path, crashes: int) -> Losses:
    """Run the steps once, and lose power at so many moments.

    Args:
        folder: An existing folder; the files that `faults` watches are in its folder `case`.
    """
    case, record = folder / "case", folder / "record"
    shutil.rmtree(case, ignore_errors=True)
    case.mkdir()
    make(case)
    before = {str(path): path.read_bytes() for path in case.iterdir()}
    states: list[State] = []
    with Memory(path_of(case), embedder=EMBEDDER) as memory:
        states.append(state(memory))
        with faults.recorded(record):
            for number, step in enumerate(STEPS):
                step(memory)
                faults.mark(number)
                states.append(state(memory))
    happened = list(events(record))
    draw = random.Random(1)
    lost = half = left_out = 0
    for _ in range(crashes):
        moment = draw.randrange(len(happened) + 1)
        disk = _Disk(before)
        for event in happened[:moment]:
            disk.happen(event)
        acknowledged = sum(event.what == What.MARKED for event in happened[:moment])
        files, dropped = disk.lose_power(draw)
        left_out += dropped
        now = _opened(case, files)
        lost += now is None or not any(now == each for each in states[acknowledged : acknowledged + 2])
        half += now is not None and now not in states
    return Losses(crashes, lost, half, left_out)


def _opened(case: Path, files: dict[str, bytes]) -> State | None:
    """The records after the machine came back; `None` if anything is wrong."""
    shutil.rmtree(case)
    case.mkdir()
    for path, content in files.items():
        if not path.endswith(("-shm", "-turn")) and Path(path).parent == case:
            Path(path).write_bytes(content)
    try:
        with Memory(path_of(case), embedder=EMBEDDER) as memory:
            return state(memory) if run_sync(memory.operator().check) == [] else None
    except MemoryCoreError:
        return None
