"""`import` and `ingest`: bring in what other programs stored, with a report; importers come through entry points."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO, Annotated, Any, Final

import typer
from rich.console import Group
from rich.text import Text

from memory_core.app import showing
from memory_core.app.command import Answer, Door, DryRun
from memory_core.draft_to_record import check_draft
from memory_core.errors import InvalidInputError
from memory_core.handle import BoundMemory
from memory_core.importing import Found, Importer, Refused, fields_of, file_at
from memory_core.memory import Memory
from memory_core.models import STATES, Draft, MemoryRecord, Scope
from memory_core.progress import Progress, ProgressCallback
from memory_core.transfer.jsonl import import_jsonl
from memory_core.transfer.migrate import exists
from memory_core.where.value import Where

IMPORTERS: Final = "memory_core.importers"
EXPORTERS: Final = "memory_core.exporters"
LOSSLESS: Final = "jsonl"
"""The format of this package, which is no entry point."""
BATCH: Final = 256
"""Memories of an owner in one transaction."""
MAX_SHOWN: Final = 10
"""Refusals that are printed; `--json` has all of them."""
LINES: Final = "lines"
EXAMPLE: Final = (
    '{"at": "2026-03-02T09:12:00+01:00", "session": "monday", "author": "Ann", "text": "The tide turns at noon"}'
)
BY_SUFFIX: Final = {
    ".jsonl": "conversation",
    ".txt": "document",
    ".md": "document",
    ".html": "document",
    ".pdf": "document",
}


def formats(group: str) -> list[str]:
    """The names of the formats of a group."""
    return sorted({LOSSLESS, *(point.name for point in entry_points(group=group))})


def sources() -> list[str]:
    """The formats of `import`."""
    return formats(IMPORTERS)


def targets() -> list[str]:
    """The formats of `export`."""
    return formats(EXPORTERS)


def entry_of(group: str, name: str) -> Any:  # an Importer or an Exporter
    """The importer or exporter of a format.

    Raises:
        InvalidInputError: The entry is missing, or needs a package that is not installed.
    """
    found = next(iter(entry_points(group=group, name=name)), None)
    noun = group.rpartition(".")[2].removesuffix("s")
    if found is None:
        raise InvalidInputError(f"there is no {noun} for {name!r}; the formats are {', '.join(formats(group))}")
    try:
        return found.load()
    except ImportError as error:
        raise InvalidInputError(f"the {noun} for {name!r} cannot be loaded: {error}") from error


@dataclass(slots=True)
class Report:
    """What became of everything in a source."""

    read: int = 0
    new: int = 0
    known: int = 0
    """Imported before; changed if their text, author, data or tags differ."""
    forgotten: int = 0
    """Deleted here since, and not imported again."""
    refused: list[Refused] = field(default_factory=list[Refused])


async def import_(
    door: Door,
    *,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A file, a folder or an address; - is standard input.")
    ],
    format_: Annotated[
        str,
        typer.Option("--format", help="What the source is; `memory-core formats` lists them.", autocompletion=sources),
    ] = LOSSLESS,
    dry_run: DryRun = False,
) -> Answer:
    """Bring in what `export` or another program wrote. Importing twice adds nothing."""
    if format_ != LOSSLESS:
        return await _carried(door, [(source, entry_of(IMPORTERS, format_))], dry_run=dry_run)
    if dry_run and not exists(door.settings.file):
        async with Memory(":memory:", embedder=None) as nothing:
            return await _lossless(door, nothing, source, dry_run=True)
    return await _lossless(door, await door.memory(create=True), source, dry_run=dry_run)


async def _lossless(door: Door, memory: Memory, source: str, *, dry_run: bool) -> Answer:
    with _opened(source) as lines, door.progress("importing") as tell:
        total = _lines_in(lines)

        def told(progress: Progress) -> None:
            tell(Progress(progress.done, max(progress.done, total)))

        done = await import_jsonl(memory, lines, dry_run=dry_run, progress=told)
    said = "would be written" if dry_run else "written"
    view = Text(f"{done.records} memories read, {done.written} {said}, {done.kept} here already")
    return Answer({**asdict(done), "dry_run": dry_run}, view)


def _opened(source: str) -> AbstractContextManager[IO[bytes]]:
    return nullcontext(sys.stdin.buffer) if source == "-" else file_at(source).open("rb")


def _lines_in(file: IO[bytes]) -> int:
    """How many lines a file has, for a bar; 0 for a pipe, which can be read once only."""
    if not file.seekable():
        return 0
    count = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    file.seek(0)
    return count


async def ingest(
    door: Door,
    *,
    sources: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Conversations and documents.")],
    questions: Annotated[
        Path | None, typer.Option("--questions", metavar="FILE", help="Then ask these, one on each line.")
    ] = None,
    dry_run: DryRun = False,
) -> Answer:
    """Remember conversations and documents.

    Conversations are .jsonl files, documents are .txt, .md, .html and .pdf files.

    A line of a conversation is a JSON object such as
    {"at": "2026-03-02T09:12:00+01:00", "session": "monday", "author": "Ann", "text": "The tide turns at noon"}.
    Exit code 1: some lines could not be used.
    """
    asked = [] if questions is None else _lines(questions)
    noun = LINES if all(path.suffix.lower() == ".jsonl" for path in sources) else "parts"
    answer = await _carried(door, [(str(path), _by_suffix(path)) for path in sources], dry_run=dry_run, noun=noun)
    if not asked or dry_run:
        return answer
    owner, answers, views = await door.owner(), list[Any](), [answer.view]
    for question in asked:
        hits = await owner.search(question, limit=3, explain=True)
        answers.append({"question": question, "hits": [hit.to_dict() for hit in hits]})
        views += [Text(f"\n{showing.line(question)}", "bold"), showing.hits(hits, explain=True)]
    value = {**fields_of(answer.json), "answers": answers}
    return Answer(value, Group(*(view for view in views if view is not None)), answer.code)


def _by_suffix(path: Path) -> Importer:
    format_ = BY_SUFFIX.get(path.suffix.lower())
    if format_ is None:
        raise InvalidInputError(f"{str(path)!r} has none of the suffixes {', '.join(BY_SUFFIX)}; see `import --format`")
    importer: Importer = entry_of(IMPORTERS, format_)
    return importer


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} cannot be read as questions: it is not text in UTF-8 ({error})") from error


async def _carried(door: Door, sources: list[tuple[str, Importer]], *, dry_run: bool, noun: str = "memories") -> Answer:
    intake = _Intake(door, dry_run=dry_run)
    with door.progress("importing") as tell:
        for source, importer in sources:
            await intake.take(importer(source), tell)
    report = intake.report
    for refused in report.refused[:MAX_SHOWN]:
        showing.note(f"{refused.place}: {refused.reason}")
    if len(report.refused) > MAX_SHOWN:
        showing.note(f"… and {len(report.refused) - MAX_SHOWN} more")
    if report.refused and noun == LINES:
        showing.note(f"a line is such as {EXAMPLE}")
    if report.refused:
        showing.note(f"{len(report.refused)} of {report.read + len(report.refused)} {noun} could not be used")
    new = "would be new" if dry_run else "of them new"
    forgotten = f", {report.forgotten} forgotten here before" if report.forgotten else ""
    view = Text(f"{report.read} {noun} read, {report.new} {new}, {report.known} known{forgotten}")
    return Answer({**asdict(report), "dry_run": dry_run}, view, 1 if report.refused else 0)


class _Intake:
    """Stores what importers yield, in batches of one owner, and counts."""

    def __init__(self, door: Door, *, dry_run: bool) -> None:
        self._door = door
        self._dry_run = dry_run
        self._waiting: dict[Scope, list[Draft]] = {}
        self._seen: set[tuple[Scope, str]] = set()
        """Source keys of a dry run, which stores none of them."""
        self.report = Report()

    async def take(self, found: AsyncIterator[Found | Refused], tell: ProgressCallback) -> None:
        """Store everything that an importer yields."""
        async for item in found:
            try:
                self._accept(item)
            except InvalidInputError as error:
                self.report.refused.append(Refused(item.place, str(error)))
            for owner in [owner for owner, drafts in self._waiting.items() if len(drafts) == BATCH]:
                await self._put(owner)
            tell(Progress(self.report.read, self.report.read))
        for owner in list(self._waiting):
            await self._put(owner)

    def _accept(self, item: Found | Refused) -> None:
        if isinstance(item, Refused):
            self.report.refused.append(item)
            return
        given = self._door.settings
        owner = Scope(item.app or given.app, item.user or given.user)
        self._waiting.setdefault(owner, []).append(check_draft(item.draft))
        self.report.read += 1

    async def _put(self, owner: Scope) -> None:
        drafts = self._waiting.pop(owner)
        known = await self._known(owner, {draft.source_key for draft in drafts if draft.source_key is not None})
        stored: list[MemoryRecord | None] = []
        if not self._dry_run:
            stored = await (await self._handle(owner)).add_many(drafts)
        keys = [draft.source_key for draft in drafts]
        again = sum(key in known or key in keys[:place] for place, key in enumerate(keys) if key is not None)
        self.report.forgotten += stored.count(None)
        self.report.known += again
        self.report.new += len(drafts) - again - stored.count(None)

    async def _known(self, owner: Scope, keys: set[str]) -> set[str]:
        """The source keys that the owner has already."""
        before = {key for key in keys if (owner, key) in self._seen}
        if self._dry_run:
            self._seen.update((owner, key) for key in keys)
            if not exists(self._door.settings.file):
                return before
        where = Where(source_keys=tuple(keys), states=STATES)
        page = await (await self._handle(owner)).list(where=where, limit=BATCH)
        return before | {record.source_key for record in page.records if record.source_key is not None}

    async def _handle(self, owner: Scope) -> BoundMemory:
        memory = await self._door.memory(create=not self._dry_run)
        return memory.bind(app=owner.app, user=owner.user)


async def formats_(_door: Door) -> Answer:
    """List the formats of `import` and `export`."""
    rows = [("import and export", LOSSLESS, "a text file without loss, one JSON object a line")]
    for command, group in (("import", IMPORTERS), ("export", EXPORTERS)):
        for name in formats(group):
            if name != LOSSLESS:
                try:
                    said = (entry_of(group, name).__doc__ or "").strip().partition("\n")[0].rstrip(".")
                except InvalidInputError as error:
                    said = str(error)
                rows.append((command, name, said))
    keys = ("command", "format", "what")
    return Answer([dict(zip(keys, row, strict=True)) for row in rows], showing.table(keys, rows))


COMMANDS: Final = {"ingest": ingest, "import": import_, "formats": formats_}
