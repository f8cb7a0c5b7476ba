"""Commands on whole memories: export, copy, backup, restore, reembed, check, sql-view."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Final

import typer
from rich.console import Group
from rich.text import Text

from memory_core.addresses import FORMS, memory_at
from memory_core.app import showing
from memory_core.app.command import Answer, Invocation, Work, Yes, insist_on_existing
from memory_core.app.formats import EXPORTERS, LOSSLESS, entry_of, targets
from memory_core.app.own_files import is_memory
from memory_core.app.settings import NONE, WAYS, embedder_of
from memory_core.app.showing import counted
from memory_core.concurrency.loop import on_core
from memory_core.errors import InvalidInputError
from memory_core.memory import Memory
from memory_core.models import Scope
from memory_core.storage.shared.transfer import Carried
from memory_core.transfer.copying import copy_memory
from memory_core.transfer.formats import Exporter
from memory_core.transfer.jsonl import export_jsonl, export_records
from memory_core.values.places import check_path
from memory_core.values.private_files import new_private_file
from memory_core.values.times import utc_now

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]


async def export(
    invocation: Invocation,
    *,
    target: Annotated[str, typer.Argument(metavar="FILE", help="The new file; - writes to standard output.")],
    format_: Annotated[
        str,
        typer.Option(
            "--format", help="jsonl is lossless; `memory-core formats` lists the others.", autocompletion=targets
        ),
    ] = LOSSLESS,
    only_owner: Annotated[bool, typer.Option("--only-owner", help="The owner's memories only.")] = False,
    vectors: Annotated[bool, typer.Option(help="With vectors, so that an import needs no model.")] = True,
    overwrite: Overwrite = False,
) -> Answer:
    """Write all memories to a text file, without loss.

    With --format, write those that are active for another program: what it cannot hold stays behind.
    """
    owner = Scope(invocation.settings.app, invocation.settings.user) if only_owner else None
    memory = await invocation.memory(words_only=format_ == LOSSLESS and not vectors)
    if only_owner and (said := await invocation.other_owners()) is not None:
        raise InvalidInputError(said)
    if format_ != LOSSLESS:
        return await _exported(invocation, target, entry_of(EXPORTERS, format_), owner, overwrite=overwrite)
    with _new_file(target, overwrite=overwrite) as out, invocation.progress("exporting") as tell:
        done = await export_jsonl(memory, out.write, owner=owner, vectors=vectors, progress=tell)
    said = f"{counted(done.records, 'memory')} of {counted(done.owners, 'owner')}, checksum {done.checksum}"
    if target == "-":
        showing.note(said)
        return Answer(None, None)
    return Answer(asdict(done), Text(said))


async def _exported(
    invocation: Invocation, target: str, exporter: Exporter, owner: Scope | None, *, overwrite: bool
) -> Answer:
    memory, now = await invocation.memory(), utc_now()
    written = left_out = 0

    def pass_on(items: list[Carried]) -> None:
        nonlocal written, left_out
        wanted = [item for item in items if item.record.state == "active" and (item.record.expires_at or now) >= now]
        write(wanted)
        written, left_out = written + len(wanted), left_out + len(items) - len(wanted)

    if target == "-":
        raise InvalidInputError("only the format jsonl can be written to standard output; name a file or a folder")
    with _new_path(target, overwrite=overwrite) as path, invocation.progress("exporting") as tell:
        with exporter(path) as write:
            await export_records(memory, pass_on, owner=owner, progress=tell)
        path.chmod(0o700 if path.is_dir() else 0o600)
    said = f"{counted(written, 'memory')} written, {left_out} left out as archived, compacted or expired"
    return Answer({"records": written, "left_out": left_out}, Text(said))


@contextmanager
def _new_file(name: str, *, overwrite: bool) -> Generator[IO[bytes]]:
    """A new file of mode 0600, or standard output for `-`."""
    if name == "-":
        yield sys.stdout.buffer
        return
    with (
        _new_path(name, overwrite=overwrite) as path,
        new_private_file(path) as out,
    ):
        yield out


@contextmanager
def _new_path(name: str, *, overwrite: bool) -> Generator[Path]:
    """The path at which to make a file or a folder, which appears under its name when it is complete, and else not at
    all."""
    check_path("the file to make", name)
    path = Path(name).expanduser()
    _insist_on_room(path, overwrite=overwrite and not path.is_dir())
    if path.is_file() and is_memory(path):
        raise InvalidInputError(f"{name!r} is a memory, which an export would destroy; give another name")
    with tempfile.TemporaryDirectory(prefix=f".{path.name[:100]}.", dir=path.parent) as folder:
        made = Path(folder) / path.name
        yield made
        made.replace(path)


def _insist_on_room(path: Path, *, overwrite: bool) -> None:
    if path.exists() and not overwrite:
        raise InvalidInputError(f"there is {str(path)!r} already; give another name, or --overwrite to replace a file")


async def copy_(
    invocation: Invocation,
    *,
    target: Annotated[str, typer.Argument(metavar="TARGET", help=f"{FORMS[0].upper()}{FORMS[1:]}.")],
) -> Answer:
    """Copy everything to another store. Run it again to copy what has changed since."""
    source = await invocation.memory()
    async with memory_at(target, embedder_of(invocation.settings.embedder)) as there:
        with invocation.progress("comparing") as tell:
            done = await copy_memory(source, there, progress=tell)
    rows = [(each.scope.app, each.scope.user, each.records, each.checksum) for each in done.owners]
    said = f"{counted(done.records, 'memory')} the same in both, {done.copied} copied and {done.removed} removed now"
    if done.behind:
        said += f"; {done.behind} changed meanwhile: run it again when nothing writes"
    if done.sourceless:
        said += f"; {done.sourceless} made from memories that are not here"
    counts = {name: getattr(done, name) for name in ("records", "copied", "removed", "behind", "sourceless")}
    view = Group(showing.table(("app", "user", "memories", "checksum"), rows), Text(said))
    return Answer(counts, view, 1 if done.behind else 0)


async def backup(
    invocation: Invocation,
    *,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")],
    overwrite: Overwrite = False,
) -> Answer:
    """Copy the memory file while it is in use, and check the copy."""
    memory = await invocation.memory(words_only=True)
    _insist_on_room(target, overwrite=overwrite)
    with invocation.progress("backing up") as tell:
        made = await memory.backup(target, overwrite=overwrite, progress=tell)
    return Answer({"file": str(made)}, Text(showing.plain(str(made))))


async def restore(
    invocation: Invocation,
    *,
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="A backup, or any memory file.")],
    overwrite: Overwrite = False,
    yes: Yes = False,
) -> Answer:
    """Make the memory file (--file) from a backup."""
    from memory_core.storage.sqlite.backup import sourceless  # noqa: PLC0415  (for files only)

    insist_on_existing(str(source), "name a file that `memory-core backup` has made")
    _insist_on_room(invocation.path, overwrite=overwrite)
    if invocation.path.exists():
        invocation.confirm(f"Replace {invocation.settings.file} and lose what is in it?", yes=yes)
    with invocation.progress("restoring") as tell:
        made = await Memory.restore(source, invocation.path, overwrite=overwrite, progress=tell)
    count = await on_core(partial(sourceless, made))
    said = f"{showing.plain(str(made))}{f'; {count} made from memories that are not here' if count else ''}"
    return Answer({"file": str(made), "sourceless": count}, Text(said))


async def reembed(
    invocation: Invocation,
    *,
    to: Annotated[str | None, typer.Argument(metavar="[EMBEDDER]", help=f"{WAYS}. Default: --embedder.")] = None,
) -> Answer:
    """Compute all vectors again, or with another model.

    Later commands need the name of the model, too: --embedder, MEMORY_CORE_EMBEDDER, or embedder in memory-core.toml.
    """
    name = to or invocation.settings.embedder
    embedder = embedder_of(name)
    if embedder is None:
        raise InvalidInputError(f"{NONE!r} makes no vectors; commands with --embedder {NONE} need no reembed")
    memory = await invocation.memory(words_only=True)
    with invocation.progress("embedding") as tell:
        count = await memory.reembed(embedder, progress=tell)
    if name != invocation.settings.embedder:
        showing.note(f"name it from now on: --embedder {name}, or MEMORY_CORE_EMBEDDER={name}")
    made_by = asdict(embedder.fingerprint)
    return Answer(
        {"vectors": count, "embedder": made_by},
        Text(f"{counted(count, 'vector')} computed by {showing.line(made_by['name'])}"),
    )


async def check(invocation: Invocation) -> Answer:
    """Read everything and list what is wrong, or damaged. Exit code 1: something is wrong."""
    found = await (await invocation.memory(words_only=True)).operator().check()
    rows = [("damaged" if each.is_damage else "wrong", each.problem) for each in found]
    view = showing.table(("", "problem"), rows, most=showing.MAX_SENTENCE_CHARS) if found else Text("nothing is wrong")
    return Answer({"problems": [each.to_dict() for each in found]}, view, 1 if found else 0)


async def sql_view(invocation: Invocation) -> Answer:
    """Add a readable view to the file. It is for Datasette, sqlite-utils and sqlite3."""
    insist_on_existing(invocation.settings.file)
    from memory_core.storage.sqlite.views import add_view  # noqa: PLC0415  (for files only)

    name = add_view(invocation.path)
    return Answer({"view": name}, Text(f"the file has the view {name} now"))


TRANSFERS: Final[Mapping[str, Work]] = {"export": export, "copy": copy_}
UPKEEP: Final[Mapping[str, Work]] = {
    "backup": backup,
    "restore": restore,
    "reembed": reembed,
    "check": check,
    "sql-view": sql_view,
}
