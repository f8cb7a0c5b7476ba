"""The space that an erasure gives back to the disk: `python -m tests.storage.faults.freed`, with the library preloaded.

Prints how often the secret word stands in bytes that were cut off a file or went with a deleted one, without an erasure
and with one, as two numbers.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from memory_core import Draft, Memory, Patch, run_sync
from tests.storage.faults.power import apply
from tests.storage.faults.preloaded import Faults, What, events

SECRET: Final = "zq7xsecret"


def freed(folder: Path, *, erases: bool) -> int:
    """The secret words among the bytes that are given back by the end."""
    case = folder / ("erased" if erases else "kept")
    case.mkdir()
    faults, record = Faults(case), folder / f"{case.name}.record"
    with faults.recorded(record), Memory(case / "a.db", embedder=None) as memory:
        ann = memory.bind(user="ann")
        for k in range(10):
            run_sync(ann.add_many, [Draft(f"{SECRET} {k * 100 + i} " + "filler " * 30) for i in range(100)])
        for one in run_sync(ann.list, limit=50).records:
            run_sync(ann.update, one.id, Patch(text=one.text + " changed"))
        run_sync(memory.bind(user="bob").add_many, [f"harmless {n}" for n in range(200)])
        if erases:
            assert run_sync(ann.erase).files_clean
    files: dict[str, bytearray] = {}
    given = bytearray()
    for event in events(record):
        content = files.setdefault(event.path, bytearray())
        if event.what == What.CUT:
            given += content[event.offset :] + b"\n"
        if event.what in (What.WROTE, What.CUT):
            apply(content, event)
        elif event.what == What.UNLINKED:
            given += files.pop(event.path) + b"\n"
    return given.count(SECRET.encode())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as where:
        root = Path(where).resolve()
        sys.stdout.write(f"{freed(root, erases=False)} {freed(root, erases=True)}\n")
