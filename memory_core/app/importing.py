"""`import` of an export of this package, `ingest` of conversations and documents, and the list of all formats."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import IO, Annotated, Any, Final

import typer
from rich.console import Group
from rich.text import Text

from memory_core.app import showing
from memory_core.app.command import Answer, DryRun, Invocation, Work
from memory_core.app.formats import EXPORTERS, IMPORTERS, LOSSLESS, entry_of, names
from memory_core.app.intake import LINE, carry
from memory_core.app.mapping import Ownership
from memory_core.app.pending_vectors import compute_vectors, pending_vectors
from memory_core.app.settings import NONE
from memory_core.app.showing import counted
from memory_core.errors import InvalidInputError
from memory_core.memory import Memory
from memory_core.models import Scope
from memory_core.transfer.foreign_files import file_at, lines_of
from memory_core.transfer.foreign_values import fields_of
from memory_core.transfer.formats import Importer
from memory_core.transfer.jsonl import import_jsonl
from memory_core.transfer.migrate import exists
from memory_core.values.progress import Progress
from memory_core.values.text_lines import lines_in

_FRAME_LINES: Final = 2
"""The first and the last line of an export, which are no records."""
_EXTRA: Final = re.compile(r"memory-core\[[^]]+\]")
BY_SUFFIX: Final = {
    ".jsonl": "conversation",
    ".txt": "document",
    ".md": "document",
}


async def import_(
    invocation: Invocation,
    *,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A file, a folder or an address; - is standard input.")
    ],
    dry_run: DryRun = False,
) -> Answer:
    """Bring in what `export` wrote, without loss. Importing twice adds nothing. `move` brings in other programs'."""
    if dry_run and not exists(invocation.settings.file):
        async with Memory(":memory:", embedder=None) as nothing:
            return await _lossless(invocation, nothing, source, dry_run=True)
    return await _lossless(invocation, await invocation.memory(create=True), source, dry_run=dry_run)


async def _lossless(invocation: Invocation, memory: Memory, source: str, *, dry_run: bool) -> Answer:
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
    return nullcontext(sys.stdin.buffer) if source == "-" else file_at(source).open("rb")


def _lines_in(file: IO[bytes]) -> int:
    """The number of lines of a file, for a bar; 0 for a pipe, which can be read once only."""
    if not file.seekable():
        return 0
    count = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    file.seek(0)
    return count


def _lines_at(path: Path) -> int:
    """The number of lines of a file that are not blank, for a bar; a missing file is reported when it is read."""
    if not path.expanduser().is_file():
        return 0
    return sum(bool(line.strip()) for _, line in lines_of(str(path)))


async def ingest(
    invocation: Invocation,
    *,
    sources: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Conversations and documents.")],
    questions: Annotated[
        Path | None, typer.Option("--questions", metavar="FILE", help="Then ask these, one on each line.")
    ] = None,
    dry_run: DryRun = False,
) -> Answer:
    """Remember conversations and documents.

    Conversations are .jsonl files, documents are .txt and .md files.

    A line of a conversation is a JSON object such as
    {"at": "2026-03-02T09:12:00+01:00", "session": "monday", "author": "Ann", "text": "The tide turns at noon"}.
    Exit code 1: some lines could not be used.
    """
    asked = [] if questions is None else _lines(questions)
    noun = LINE if all(path.suffix.lower() == ".jsonl" for path in sources) else "part"
    found = [(str(path), _by_suffix(path)) for path in sources]
    total = sum(_lines_at(path) for path in sources) if noun == LINE else 0
    answer = await carry(invocation, found, Ownership(invocation.settings), dry_run=dry_run, noun=noun, total=total)
    if not asked or dry_run:
        return answer
    owner, answers, views = await invocation.owner(), list[Any](), [answer.view]
    for question in asked:
        hits = await owner.search(question, limit=3, explain=True)
        answers.append({"question": question, "hits": [hit.to_dict() for hit in hits]})
        views += [Text(f"\n{showing.line(question)}", "bold"), showing.hits(hits, explain=True)]
    value = {**fields_of(answer.json), "answers": answers}
    return Answer(value, Group(*(view for view in views if view is not None)), answer.code)


def _by_suffix(path: Path) -> Importer:
    format_ = BY_SUFFIX.get(path.suffix.lower())
    if format_ is None:
        raise InvalidInputError(
            f"{str(path)!r} has none of the suffixes {', '.join(BY_SUFFIX)}; try `move` for a file of another program, "
            "and turn other documents into text first, for example with a document loader (docs/howto/documents.md)"
        )
    importer: Importer = entry_of(IMPORTERS, format_)
    return importer


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in lines_in(path.read_text(encoding="utf-8")) if line.strip()]
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} cannot be read as questions: it is not text in UTF-8 ({error})") from error


async def formats_(_invocation: Invocation) -> Answer:
    """List the formats of `move`, `import` and `export`."""
    rows = [("import and export", LOSSLESS, "a text file without loss, one JSON object a line")]
    for command, group in (("move", IMPORTERS), ("export", EXPORTERS)):
        for name in names(group):
            try:
                said = (entry_of(group, name).__doc__ or "").strip().partition("\n")[0].rstrip(".")
            except InvalidInputError as error:
                extra = _EXTRA.search(str(error))
                said = str(error) if extra is None else f"needs: {extra[0]}"
            rows.append((command, name, said))
    keys = ("command", "format", "what")
    return Answer([dict(zip(keys, row, strict=True)) for row in rows], showing.table(keys, rows))


COMMANDS: Final[Mapping[str, Work]] = {"ingest": ingest, "import": import_, "formats": formats_}
