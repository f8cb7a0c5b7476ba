"""`import` of what `export` wrote: everything, as it was, with no table and no question."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import IO, Final

from rich.text import Text

from memory_core.addresses import exists
from memory_core.app.command import Answer, Invocation
from memory_core.app.pending_vectors import compute_vectors, pending_vectors
from memory_core.app.settings import NONE
from memory_core.app.showing import counted
from memory_core.memory import Memory
from memory_core.models import Scope
from memory_core.transfer.foreign_files import file_at
from memory_core.transfer.foreign_values import fields_of
from memory_core.transfer.jsonl import FORMAT, import_jsonl
from memory_core.values.progress import Progress

STANDARD_INPUT: Final = "-"
_FRAME_LINES: Final = 2
"""The first and the last line of an export, which are no records."""
_FIRST_LINE_BYTES: Final = 10_000
"""More than the first line of an export has."""


def is_export(source: str) -> bool:
    """True if a source is what `export` wrote; standard input can be nothing else."""
    if source == STANDARD_INPUT:
        return True
    path = Path(source).expanduser()
    if not path.is_file():
        return False
    with path.open("rb") as file:
        first = file.readline(_FIRST_LINE_BYTES)
    try:
        return fields_of(json.loads(first)).get("format") == FORMAT
    except (ValueError, RecursionError):
        return False


async def import_lossless(invocation: Invocation, source: str, *, dry_run: bool) -> Answer:
    """Import an export of this package."""
    if dry_run and not exists(invocation.settings.file):
        async with Memory(":memory:", embedder=None) as nothing:
            return await _imported(invocation, nothing, source, dry_run=True)
    return await _imported(invocation, await invocation.memory(create=True), source, dry_run=dry_run)


async def _imported(invocation: Invocation, memory: Memory, source: str, *, dry_run: bool) -> Answer:
    with _opened(source) as lines, invocation.progress("importing") as tell:
        total = max(0, _lines_in(lines) - _FRAME_LINES)

        def told(progress: Progress) -> None:
            tell(progress if progress.total else Progress(progress.done, total))

        given = invocation.settings
        owner = Scope(given.app, given.user) if given.named_user else None
        done = await import_jsonl(memory, lines, owner=owner, dry_run=dry_run, progress=told)
    computed = 0 if dry_run or given.embedder == NONE else await _compute_vectors(invocation, memory)
    said = "would be written" if dry_run else "written"
    view = Text(f"{counted(done.records, 'memory')} read, {done.written} {said}, {done.kept} here already")
    if done.sourceless:
        view.append(f"; {done.sourceless} made from memories that are not here")
    if computed:
        view.append(f"; {counted(computed, 'vector')} computed")
    return Answer({**asdict(done), "dry_run": dry_run, "vectors_computed": computed}, view)


async def _compute_vectors(invocation: Invocation, memory: Memory) -> int:
    """Compute the vectors that an export without them has left out; returns how many were pending."""
    operator = memory.operator()
    waiting = await pending_vectors(operator)
    await compute_vectors(invocation, operator, waiting)
    return sum(waiting.values())


def _opened(source: str) -> AbstractContextManager[IO[bytes]]:
    return nullcontext(sys.stdin.buffer) if source == STANDARD_INPUT else file_at(source).open("rb")


def _lines_in(file: IO[bytes]) -> int:
    """The number of lines of a file, for a bar; 0 for a pipe, which can be read once only."""
    if not file.seekable():
        return 0
    count = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    file.seek(0)
    return count
