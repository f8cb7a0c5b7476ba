"""`import` and `ingest`: bring in what other programs stored, with a report; importers come through entry points."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO, Annotated, Any, Final

import typer
from rich.console import Group
from rich.text import Text

from memory_core.app import showing
from memory_core.app.command import Answer, DryRun, Invocation
from memory_core.app.settings import Settings
from memory_core.errors import InvalidInputError
from memory_core.handle import BoundMemory
from memory_core.memory import Memory
from memory_core.models import STATES, Draft, MemoryRecord, Scope
from memory_core.records.draft_to_record import check_draft
from memory_core.transfer.foreign_files import file_at, lines_of
from memory_core.transfer.foreign_values import fields_of, name_of
from memory_core.transfer.formats import Found, Importer, Refused
from memory_core.transfer.jsonl import import_jsonl
from memory_core.transfer.migrate import exists
from memory_core.values.checks import check_key, shown
from memory_core.values.progress import Progress
from memory_core.where.where import Where

IMPORTERS: Final = "memory_core.importers"
EXPORTERS: Final = "memory_core.exporters"
LOSSLESS: Final = "jsonl"
"""The format of this package, which is no entry point."""
BATCH: Final = 256
"""Memories of an owner in one transaction."""
MAX_SHOWN: Final = 10
"""Refusals that are printed; `--json` has all of them."""
LINES: Final = "lines"
_FRAME_LINES: Final = 2
"""The first and the last line of an export, which are no records."""
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
    invocation: Invocation,
    *,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A file, a folder or an address; - is standard input.")
    ],
    format_: Annotated[
        str,
        typer.Option("--format", help="What the source is; `memory-core formats` lists them.", autocompletion=sources),
    ] = LOSSLESS,
    user_key: Annotated[
        str | None,
        typer.Option("--user-key", metavar="KEY", help="The metadata that names the user of each memory."),
    ] = None,
    one_user: Annotated[
        bool, typer.Option("--one-user", help="Everything becomes --user's, also what the source gives to others.")
    ] = False,
    dry_run: DryRun = False,
) -> Answer:
    """Bring in what `export` or another program wrote. Importing twice adds nothing.

    Users that the source names are owners of their own; what names none is --user's.
    """
    if format_ == LOSSLESS and (user_key is not None or one_user):
        raise InvalidInputError("an export names the owner of each memory, so --user-key and --one-user are for others")
    if user_key is not None and one_user:
        raise InvalidInputError("--user-key names many users and --one-user one; give only one of them")
    if format_ != LOSSLESS:
        owners = _Owners(invocation.settings, user_key=user_key, one_user=one_user)
        return await _carried(invocation, [(source, entry_of(IMPORTERS, format_))], owners, dry_run=dry_run)
    if dry_run and not exists(invocation.settings.file):
        async with Memory(":memory:", embedder=None) as nothing:
            return await _lossless(invocation, nothing, source, dry_run=True)
    return await _lossless(invocation, await invocation.memory(create=True), source, dry_run=dry_run)


async def _lossless(invocation: Invocation, memory: Memory, source: str, *, dry_run: bool) -> Answer:
    with _opened(source) as lines, invocation.progress("importing") as tell:
        total = max(0, _lines_in(lines) - _FRAME_LINES)

        def told(progress: Progress) -> None:
            tell(progress if progress.total else Progress(progress.done, total))

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


def _lines_at(path: Path) -> int:
    """How many lines that are not blank a file has, for a bar; a missing file is reported when it is read."""
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

    Conversations are .jsonl files, documents are .txt, .md, .html and .pdf files.

    A line of a conversation is a JSON object such as
    {"at": "2026-03-02T09:12:00+01:00", "session": "monday", "author": "Ann", "text": "The tide turns at noon"}.
    Exit code 1: some lines could not be used.
    """
    asked = [] if questions is None else _lines(questions)
    noun = LINES if all(path.suffix.lower() == ".jsonl" for path in sources) else "parts"
    found = [(str(path), _by_suffix(path)) for path in sources]
    total = sum(_lines_at(path) for path in sources) if noun == LINES else 0
    answer = await _carried(invocation, found, _Owners(invocation.settings), dry_run=dry_run, noun=noun, total=total)
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
        raise InvalidInputError(f"{str(path)!r} has none of the suffixes {', '.join(BY_SUFFIX)}; see `import --format`")
    importer: Importer = entry_of(IMPORTERS, format_)
    return importer


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} cannot be read as questions: it is not text in UTF-8 ({error})") from error


async def _carried(
    invocation: Invocation,
    sources: list[tuple[str, Importer]],
    owners: _Owners,
    *,
    dry_run: bool,
    noun: str = "memories",
    total: int = 0,
) -> Answer:
    """Import from sources.

    Args:
        total: How many memories they have, for a bar; 0 if that is not known.
    """
    intake = _Intake(invocation, owners, dry_run=dry_run)
    with invocation.progress("importing") as tell:
        for source, importer in sources:
            await intake.take(importer(source), lambda done: tell(Progress(done, max(done, total) if total else 0)))
        tell(Progress(intake.read, intake.read))
    report = intake.report
    for refused in report.refused[:MAX_SHOWN]:
        showing.note(f"{refused.place}: {refused.reason}")
    if len(report.refused) > MAX_SHOWN:
        showing.note(f"… and {len(report.refused) - MAX_SHOWN} more")
    if report.refused and noun == LINES:
        showing.note(f"a line is such as {EXAMPLE}")
    if intake.others:
        names = ", ".join(f"{app}/{user}" for app, user in sorted(intake.others)[:MAX_SHOWN])
        more = f" and {len(intake.others) - MAX_SHOWN} more" if len(intake.others) > MAX_SHOWN else ""
        showing.note(f"the source names their owners: {names}{more} (choose with --app and --user)")
    if report.refused:
        showing.note(f"{len(report.refused)} of {report.read + len(report.refused)} {noun} could not be used")
    new = "would be new" if dry_run else "of them new"
    forgotten = f", {report.forgotten} forgotten here before" if report.forgotten else ""
    view = Text(f"{report.read} {noun} read, {report.new} {new}, {report.known} known{forgotten}")
    return Answer({**asdict(report), "dry_run": dry_run}, view, 1 if report.refused else 0)


class _Owners:
    """Decides whose each memory of a source becomes."""

    def __init__(self, given: Settings, *, user_key: str | None = None, one_user: bool = False) -> None:
        self.default = Scope(given.app, given.user)
        self._user_key = user_key
        self._one_user = one_user

    def of(self, item: Found) -> tuple[Scope, Draft]:
        """The owner of a memory, and the memory.

        Raises:
            InvalidInputError: It has no metadata that names its user, or not the name of one.
        """
        user, app = item.user, item.app or self.default.app
        if self._one_user:
            # Who it belonged to is not lost.
            data = {**({} if user is None else {"user_id": user}), **item.draft.data}
            return self.default, replace(item.draft, data=data)
        if self._user_key is not None:
            value = item.draft.data.get(self._user_key)
            user = name_of(value)
            if user is None:
                raise InvalidInputError(f"its metadata {self._user_key!r} is {shown(value)}, not the name of a user")
        owner = Scope(check_key("app", app), check_key("user", user or self.default.user))
        return owner, item.draft


class _Intake:
    """Stores what importers yield, in batches of one owner, and counts."""

    def __init__(self, invocation: Invocation, owners: _Owners, *, dry_run: bool) -> None:
        self._invocation = invocation
        self._owners = owners
        self._dry_run = dry_run
        self.others: set[tuple[str, str]] = set()
        """Other owners than the one of the command."""
        self._waiting: dict[Scope, list[Draft]] = {}
        self._seen: set[tuple[Scope, str]] = set()
        """Source keys of a dry run, which stores none of them."""
        self.report = Report()

    @property
    def read(self) -> int:
        """What importers have yielded so far."""
        return self.report.read + len(self.report.refused)

    async def take(self, found: AsyncIterator[Found | Refused], tell: Callable[[int], None]) -> None:
        """Store everything that an importer yields, and tell how much that is so far."""
        async for item in found:
            try:
                self._accept(item)
            except InvalidInputError as error:
                self.report.refused.append(Refused(item.place, str(error)))
            for owner in [owner for owner, drafts in self._waiting.items() if len(drafts) == BATCH]:
                await self._put(owner)
            tell(self.read)
        for owner in list(self._waiting):
            await self._put(owner)

    def _accept(self, item: Found | Refused) -> None:
        if isinstance(item, Refused):
            self.report.refused.append(item)
            return
        owner, draft = self._owners.of(item)
        self._waiting.setdefault(owner, []).append(check_draft(draft))
        self.report.read += 1
        if owner != self._owners.default:
            self.others.add((owner.app, owner.user or ""))

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
            if not exists(self._invocation.settings.file):
                return before
        where = Where(source_keys=tuple(keys), states=STATES)
        page = await (await self._handle(owner)).list(where=where, limit=BATCH)
        return before | {record.source_key for record in page.records if record.source_key is not None}

    async def _handle(self, owner: Scope) -> BoundMemory:
        memory = await self._invocation.memory(create=not self._dry_run)
        return memory.bind(app=owner.app, user=owner.user)


async def formats_(_invocation: Invocation) -> Answer:
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
