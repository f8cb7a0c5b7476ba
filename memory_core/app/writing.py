"""Commands that write: add, update, supersede, forget, erase, maintain."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal

import typer
from rich.console import Group
from rich.text import Text

from memory_core.app import showing
from memory_core.app.command import Answer, DryRun, Invocation, Work, Yes
from memory_core.app.editor import edited
from memory_core.app.ids import record_of, whole_id
from memory_core.app.json_options import json_object
from memory_core.app.reading import Id
from memory_core.app.showing import counted, short, with_derived
from memory_core.errors import InvalidInputError, RecordNotFoundError
from memory_core.handle import BoundMemory
from memory_core.lifecycle import MaintainPolicy, Maintenance, Step, maintain, undo_maintenance
from memory_core.made_of import made_of, sources_of
from memory_core.models import Draft, MemoryRecord, Patch, Role, State
from memory_core.values.checks import shown
from memory_core.values.unset import UNSET
from memory_core.values.zones import zoned
from memory_core.where.where import ANY_STATE

Kind = Annotated[str | None, typer.Option("--kind", help="What it is: fact, preference, message, or any word.")]
Author = Annotated[str | None, typer.Option("--author", help="Who said or wrote it.")]
Tag = Annotated[list[str] | None, typer.Option("--tag", help="A tag; can be repeated.")]
Importance = Annotated[float | None, typer.Option("--importance", help="From 0 to 1.")]


async def add(  # noqa: PLR0913  (an option each)
    invocation: Invocation,
    *,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; - reads it from standard input.")],
    kind: Kind = None,
    author: Author = None,
    role: Annotated[Role | None, typer.Option("--role", help="Who spoke, in a conversation.")] = None,
    tag: Tag = None,
    importance: Importance = None,
    at: Annotated[str | None, typer.Option("--at", help="When it happened, such as 2026-03-02T09:12+01:00.")] = None,
    session: Annotated[str | None, typer.Option("--session", help="The conversation it belongs to.")] = None,
    collection: Annotated[str | None, typer.Option("--collection", help="The collection it belongs to.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="Its source key: adding it again changes it.")] = None,
    data: Annotated[str | None, typer.Option("--data", help="A JSON object to keep with it.")] = None,
) -> Answer:
    """Remember a text. The memory file is created if it is missing."""
    draft = Draft(sys.stdin.read() if text == "-" else text, source_key=key, session=session, collection=collection)
    draft = replace(draft, author=author, role=role, tags=tag or (), occurred_at=_moment(at))
    draft = replace(draft, data=json_object("--data", data))
    draft = replace(draft, kind=kind or draft.kind, importance=draft.importance if importance is None else importance)
    record = await (await invocation.owner(create=True)).add(draft)
    return Answer(record.to_dict(), showing.records([record]))


def _moment(text: str | None) -> datetime | None:
    try:
        return None if text is None else zoned(datetime.fromisoformat(text))
    except ValueError as error:
        raise InvalidInputError(f"--at must be a time such as 2026-03-02T09:12+01:00, not {shown(text)}") from error


async def update(  # noqa: PLR0913  (an option each)
    invocation: Invocation,
    *,
    id: Id,  # noqa: A002  (the record's own word)
    text: Annotated[str | None, typer.Option("--text", help="The new text.")] = None,
    kind: Kind = None,
    author: Author = None,
    tag: Tag = None,
    importance: Importance = None,
    state: Annotated[State | None, typer.Option("--state", help="Archive a memory, or bring it back.")] = None,
) -> Answer:
    """Correct a memory; what is not given stays as it is. Earlier texts are in `history`."""
    given = {"text": text, "kind": kind, "author": author, "tags": tag, "importance": importance, "state": state}
    patch = Patch(**{name: UNSET if value is None else value for name, value in given.items()})  # type: ignore[arg-type]
    if all(getattr(patch, each.name) is UNSET for each in fields(patch)):
        raise InvalidInputError("nothing to change: give --text, --kind, --author, --tag, --importance or --state")
    owner = await invocation.owner()
    record = await owner.update(await whole_id(owner, id), patch)
    return Answer(record.to_dict(), showing.records([record]))


async def edit(invocation: Invocation, id: Id) -> Answer:  # noqa: A002
    """Correct the text of a memory in your editor. Earlier texts are in `history`."""
    owner = await invocation.owner()
    record = await record_of(owner, id)
    text = await asyncio.to_thread(edited, record.text)
    if not text.strip():
        raise InvalidInputError("the text is empty, so nothing was changed; `forget` deletes a memory")
    if text != record.text:
        record = await owner.update(record.id, Patch(text=text), expected_version=record.version)
    return Answer(record.to_dict(), showing.records([record]))


async def supersede(
    invocation: Invocation,
    *,
    id: Id,  # noqa: A002
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is true now.")],
) -> Answer:
    """Replace a memory that is no longer true. The old one is archived and stays in `history`."""
    owner = await invocation.owner()
    record = await owner.supersede(await whole_id(owner, id), text)
    return Answer(record.to_dict(), showing.records([record]))


async def forget(
    invocation: Invocation,
    *,
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="The ids of memories, or their last characters, as printed.")
    ],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> Answer:
    """Delete memories for good, so that no import brings them back."""
    owner = await invocation.owner()
    ids = [await whole_id(owner, given) for given in ids]
    where = replace(ANY_STATE, ids=ids)
    found = (await owner.list(where=where, limit=len(ids))).records
    if missing := set(ids) - {record.id for record in found}:
        raise RecordNotFoundError(f"there is no memory {min(missing)!r}; nothing was deleted")
    derived = len(await made_of(owner, ids))
    if not dry_run:
        goes = with_derived(len(found), derived)
        lines = [*(f"- {line}" for line in showing.first_lines(found)), *(await _source_lines(owner, found))]
        question = f"Delete {goes} of {owner.scope.app}/{owner.scope.user} for good?"
        invocation.confirm("\n".join([*lines, question]), yes=yes)
        derived = (await owner.delete_exactly({record.id: record.version for record in found})).derived
    said = f"{with_derived(len(found), derived)} {'would be deleted' if dry_run else 'deleted'}"
    value = {"deleted": [record.id for record in found], "derived": derived, "dry_run": dry_run}
    return Answer(value, Group(showing.records(found), Text(said)))


async def _source_lines(owner: BoundMemory, found: Sequence[MemoryRecord]) -> list[str]:
    """The lines that name what somebody can delete instead: if only a fact goes, the words that it was made of stay."""
    lines: list[str] = []
    for record in found:
        async for source in sources_of(owner, record):
            lines.append(f"  It was made from these words, which stay (`forget {short(source.id)}` deletes both):")
            lines += [f"  - {line}" for line in showing.first_lines([source])]
    return lines


async def erase(invocation: Invocation, *, yes: Yes = False, dry_run: DryRun = False) -> Answer:
    """Delete everything of the owner, overwriting the data."""
    owner = await invocation.owner()
    count, name = (await owner.stats()).records, f"{owner.scope.app}/{owner.scope.user}"
    if dry_run:
        value = {"records": count, "sessions": None, "at": None, "files_clean": None, "derived": None, "dry_run": True}
        return Answer(value, Text(f"{counted(count, 'memory')} of {showing.line(name)} would be erased"))
    invocation.confirm(f"Erase everything of {name}, {counted(count, 'memory')}?", yes=yes)
    receipt = await owner.erase()
    view = Text(f"{with_derived(receipt.records, receipt.derived)} of {showing.line(name)} erased")
    if not receipt.files_clean:
        view.append("; a reader still needs an older state of the file: erase again later")
    view.append(f"\n{receipt.out_of_reach}")
    return Answer({**receipt.to_dict(), "dry_run": False}, view, 0 if receipt.files_clean else 1)


async def maintain_(
    invocation: Invocation,
    *,
    duplicates: Annotated[
        Literal["merge", "propose", "keep"], typer.Option("--duplicates", help="Memories with equal texts.")
    ] = "merge",
    alike: Annotated[
        Literal["merge", "propose", "keep"],
        typer.Option("--alike", help="Memories that look alike; they may mean something else."),
    ] = "propose",
    contradictions: Annotated[
        Literal["supersede", "propose", "keep"],
        typer.Option("--contradictions", help="Facts that later ones correct, as a model said."),
    ] = "propose",
    undo: Annotated[
        Path | None, typer.Option("--undo", metavar="FILE", help="Revert what an earlier --json output says was done.")
    ] = None,
    dry_run: DryRun = False,
) -> Answer:
    """Merge equal memories, and propose other changes. Keep the --json output to undo it."""
    owner = await invocation.owner()
    if undo is not None:
        left = await undo_maintenance(owner, _maintenance(undo))
        value = {**Maintenance().to_dict(), "not_undone": [each.to_dict() for each in left]}
        return Answer(value, Text(f"undone, except {counted(len(left), 'memory')} changed since"), bool(left))
    policy = MaintainPolicy(duplicates=duplicates, alike=alike, contradictions=contradictions)
    with invocation.progress("maintaining") as tell:
        done = await maintain(owner, policy, dry_run=dry_run, progress=tell)
    groups = (("would be done" if dry_run else "done", done.steps), ("proposed", done.proposed))
    rows = [(said, *_step(step)) for said, steps in (*groups, ("skipped", done.skipped)) for step in steps]
    view = showing.table(("", "why", "stays", "goes"), rows) if rows else Text("nothing to do", "dim")
    return Answer({**done.to_dict(), "not_undone": []}, view)


def _step(step: Step) -> tuple[str, str, str]:
    return step.reason, step.kept, " / ".join(step.gone)


def _maintenance(path: Path) -> Maintenance:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Maintenance.from_dict({name: value for name, value in found.items() if name != "not_undone"})
    except (ValueError, AttributeError, RecursionError) as error:
        raise InvalidInputError(f"{str(path)!r} is not what `maintain --json` printed: {error}") from error


COMMANDS: Final[Mapping[str, Work]] = {
    "add": add,
    "update": update,
    "edit": edit,
    "supersede": supersede,
    "forget": forget,
    "erase": erase,
    "maintain": maintain_,
}
