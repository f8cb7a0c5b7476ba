"""`doctor`: find what is wrong with a memory, and repair what can be repaired."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Group
from rich.text import Text

from memory_core.addresses import is_server
from memory_core.app import showing
from memory_core.app.command import Answer, Invocation, Work, insist_on_existing
from memory_core.app.pending_vectors import compute_vectors, pending_vectors
from memory_core.app.showing import counted
from memory_core.embedding import onnx_telemetry
from memory_core.errors import MemoryCoreError
from memory_core.models import Finding
from memory_core.values.zones import machine_zone_name

LEAST_FREE_BYTES: Final = 64 * 1024 * 1024
"""Free space below which writes may fail soon."""
_BESIDE: Final = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong."""

    problem: str
    """One sentence, with the way out if it cannot be repaired here."""
    repaired: bool = False


async def doctor(
    invocation: Invocation,
    *,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired.")] = False,
) -> Answer:
    """Find what is wrong with a memory, and repair it.

    Permissions, disk space, unfinished copies, a foreign or newer file, damage, stale indexes, pending vectors,
    another model, the telemetry of onnxruntime.
    It also says the zone of this machine, which is that of times without one.
    Exit code 1: something is wrong, and still is.
    """
    insist_on_existing(invocation.settings.file)
    found = [Problem(onnx_telemetry.REPORTING)] if onnx_telemetry.is_on_unasked() else []
    if not is_server(invocation.settings.file):
        path = invocation.path
        found += [*_permissions(path, repair=repair), *_space(path), *_copies(path, repair=repair)]
    try:
        found += await _inside(invocation, repair=repair)
    except MemoryCoreError as error:
        found.append(Problem(showing.sentence(error)))
    rows = [("repaired" if each.repaired else "wrong", each.problem) for each in found]
    zone = machine_zone_name()
    problems = showing.table(("", "problem"), rows, most=showing.MAX_SENTENCE_CHARS)
    view = Group(problems if found else Text("nothing is wrong"), Text(f"the zone of this machine: {zone}"))
    left = any(not each.repaired for each in found)
    return Answer({"problems": [asdict(each) for each in found], "zone": zone}, view, 1 if left else 0)


def _permissions(path: Path, *, repair: bool) -> Iterator[Problem]:
    """Other users of the machine can read or change the file."""
    for file in (path.with_name(path.name + end) for end in _BESIDE):
        mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o600
        if mode & 0o077:
            if repair:
                file.chmod(mode & 0o700)
            yield Problem(f"other users can open {str(file)!r} (mode {mode:o}, and 600 is enough)", repaired=repair)


def _space(path: Path) -> Iterator[Problem]:
    free, size = shutil.disk_usage(path.resolve().parent).free, path.stat().st_size
    if free < LEAST_FREE_BYTES:
        yield Problem(f"the disk has {free >> 20} MiB left, so writes may fail soon; make room")
    elif free < size:
        yield Problem(f"the disk has {free >> 20} MiB left, too little for a backup of {size >> 20} MiB; make room")


def _copies(path: Path, *, repair: bool) -> Iterator[Problem]:
    """The files that killed backups and restores have left."""
    from memory_core.storage.sqlite.unfinished_copies import abandoned, remove_abandoned  # noqa: PLC0415  (for files only)

    folder = path.resolve().parent
    left = abandoned(folder)
    if repair and left:
        remove_abandoned(folder)
    for each in left:
        yield Problem(
            f"a backup or restore was killed and left {str(each)!r}; the next one removes it", repaired=repair
        )


async def _inside(invocation: Invocation, *, repair: bool) -> list[Problem]:
    before = left = await _found(invocation)
    if before and repair and not is_server(invocation.settings.file):
        from memory_core.storage.sqlite.checking import repair as derive_again  # noqa: PLC0415  (for files only)

        derive_again(invocation.path)
        left = await _found(invocation)
    found = [Problem(each.problem, repaired=True) for each in before if each not in left]
    found += [Problem(_with_way_out(each) if repair else each.problem) for each in left]
    return found + await _pending(invocation, repair=repair)


def _with_way_out(left: Finding) -> str:
    """The problems that a repair has left."""
    return f"{left}; only a backup has what is lost (memory-core restore)" if left.is_damage else left.problem


async def _found(invocation: Invocation) -> list[Finding]:
    try:
        return await (await invocation.memory(words_only=True)).operator().check()
    finally:
        await invocation.close()


async def _pending(invocation: Invocation, *, repair: bool) -> list[Problem]:
    """Vectors that are pending, computed if that is wanted."""
    operator = (await invocation.memory()).operator()
    waiting = await pending_vectors(operator)
    if repair:
        await compute_vectors(invocation, operator, waiting)
    said = "{} of {}/{} still to be computed, so some texts are found by their words only"
    return [
        Problem(said.format(counted(count, "vector"), owner.app, owner.user), repaired=repair)
        for owner, count in waiting.items()
    ]


COMMANDS: Final[Mapping[str, Work]] = {"doctor": doctor}
