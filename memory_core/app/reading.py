"""Commands that read: search, recall, why, list, show, history, stats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

import typer
from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.text import Text

from memory_core.app import showing
from memory_core.app.command import Answer, Invocation, Work
from memory_core.app.ids import record_of, whole_id
from memory_core.app.json_options import json_object
from memory_core.app.why import NOTHING_IN_COMMON, explained
from memory_core.made_of import sources_of
from memory_core.models import STATES, MemoryRecord, Mode, Order
from memory_core.recall.values import PUSHED_CHARS, Considered
from memory_core.transfer.foreign_values import fields_of
from memory_core.values.limits import MAX_LIMIT
from memory_core.where.checks import check_where
from memory_core.where.where import Where

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a memory, or its last characters, as printed.")]
Query = Annotated[str, typer.Argument(metavar="QUESTION", help="A question or some words.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=MAX_LIMIT, help="How many at most.")]
Kinds = Annotated[list[str] | None, typer.Option("--kind", help="Only this kind; can be repeated.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only with one of these tags; can be repeated.")]
Session = Annotated[str | None, typer.Option("--session", help="Only this session.")]
Collection = Annotated[str | None, typer.Option("--collection", help="Only this collection.")]
Conditions = Annotated[
    str | None,
    typer.Option("--where", metavar="JSON", help='More conditions, such as {"since": "2026-03-01T00:00:00+00:00"}.'),
]
AllStates = Annotated[bool, typer.Option("--all-states", help="Archived, compacted and left ones, too.")]


def _where(
    kinds: list[str] | None,
    tags: list[str] | None,
    session: str | None,
    collection: str | None,
    *,
    conditions: str | None,
    all_states: bool,
) -> Where:
    where = check_where(
        Where.from_dict(json_object("--where", conditions, "a JSON object of conditions"), place="--where")
    )
    where = replace(where, kinds=kinds or where.kinds, tags_any=tags or where.tags_any)
    where = replace(where, session=where.session if session is None else session)
    where = replace(where, collection=where.collection if collection is None else collection)
    return replace(where, states=STATES, left=None) if all_states else where


async def search(  # noqa: PLR0913  (an option each)
    invocation: Invocation,
    *,
    query: Query,
    limit: Limit = 10,
    mode: Annotated[Mode, typer.Option("--mode", help="How to compare.")] = "hybrid",
    kinds: Kinds = None,
    tags: Tags = None,
    session: Session = None,
    collection: Collection = None,
    where: Conditions = None,
    all_states: AllStates = False,
    explain: Annotated[bool, typer.Option("--explain", help="Draw the parts of each score.")] = False,
) -> Answer:
    """Find memories by meaning and words, best first."""
    owner = await invocation.owner()
    wanted = _where(kinds, tags, session, collection, conditions=where, all_states=all_states)
    found = await owner.search(query, limit=limit, where=wanted, mode=mode, explain=explain)
    if not found and (said := await invocation.other_owners()):
        showing.note(said)
    return Answer([hit.to_dict() for hit in found], showing.hits(found, explain=explain))


async def recall(
    invocation: Invocation,
    *,
    query: Query,
    max_chars: Annotated[int, typer.Option("--max-chars", min=0, help="The budget of the block.")] = PUSHED_CHARS,
    explain: Annotated[bool, typer.Option("--explain", help="Say of each memory why it is there or not.")] = False,
) -> Answer:
    """Print the block that adapters put into a prompt for a message."""
    found = await (await invocation.owner()).recall(query, max_chars=max_chars, explain=explain)
    block = Text(showing.plain(found.text) if found else "nothing relevant is remembered", "" if found else "dim")
    considered = [_considered(each) for each in found.considered]
    value = {"text": found.text, "records": [each.to_dict() for each in found.records], "considered": considered}
    return Answer(value, Group(block, showing.considered(found.considered)) if explain else block)


def _considered(each: Considered) -> dict[str, Any]:
    return {"rank": each.rank, "reason": each.reason, "of": each.of, "later": each.later, "hit": each.hit.to_dict()}


async def why(
    invocation: Invocation,
    *,
    query: Query,
    expect: Annotated[str | None, typer.Option("--expect", metavar="ID", help="The memory to explain.")] = None,
    max_chars: Annotated[int, typer.Option("--max-chars", min=0, help="The budget of the block.")] = PUSHED_CHARS,
) -> Answer:
    """Say why a memory is, or is not, in the block for a question.

    Without --expect, every memory that was considered is listed. Exit code 1: the expected one is not in the block.
    """
    owner = await invocation.owner()
    if expect is None:
        found = (await owner.recall(query, max_chars=max_chars, explain=True)).considered
        value = {"expected": None, "considered": [_considered(each) for each in found]}
        return Answer(value, showing.considered(found))
    record = await record_of(owner, expect)
    sources = [source async for source in sources_of(owner, record)]
    ids = [source.id for source in sources]
    each = await explained(owner, query, record.id, max_chars=max_chars)
    if each is None:
        nothing: dict[str, object] = {"expected": record.id, "considered": [], "why": NOTHING_IN_COMMON, "sources": ids}
        head = Text(f"Not in the block: {NOTHING_IN_COMMON}.")
        return Answer(nothing, Group(head, *_made_from(sources)), 1)
    said = showing.REASONS[each.reason] + ("" if each.of is None else f" ({each.of})")
    verdict, shown = ("In the block", "") if each.reason == "shown" else ("Not in the block", f": {said}")
    head = Text(f"{verdict}{shown}. Rank {each.rank}, score {each.hit.score:.2f}.")
    parts = each.hit.components or {}
    best = max((part.weighted for part in parts.values()), default=1.0)
    found_ = {"expected": record.id, "considered": [_considered(each)], "why": said, "sources": ids}
    told = Text(showing.line(record.text)), showing.about(record), *_made_from(sources)
    return Answer(found_, Group(head, *told, *showing.bars(parts, best)), 0 if each.reason == "shown" else 1)


def _made_from(sources: Sequence[MemoryRecord]) -> list[RenderableType]:
    """The words from which a memory was made."""
    return [Text("Made from:"), showing.records(sources)] if sources else []


async def list_(  # noqa: PLR0913  (an option each)
    invocation: Invocation,
    *,
    limit: Limit = 20,
    order: Annotated[Order, typer.Option("--order", help="Which come first.")] = "newest",
    kinds: Kinds = None,
    tags: Tags = None,
    session: Session = None,
    collection: Collection = None,
    where: Conditions = None,
    all_states: AllStates = False,
    cursor: Annotated[str | None, typer.Option("--cursor", help="Continue after the page that printed it.")] = None,
) -> Answer:
    """List memories, without ranking them."""
    owner = await invocation.owner()
    wanted = _where(kinds, tags, session, collection, conditions=where, all_states=all_states)
    page = await owner.list(where=wanted, order=order, limit=limit, cursor=cursor)
    if not page.records and (said := await invocation.other_owners()):
        showing.note(said)
    more = Text("" if page.cursor is None else f"more: --cursor {showing.line(page.cursor)}", "dim")
    return Answer(page.to_dict(), Group(showing.records(page.records), *([more] if page.cursor else [])))


async def show(invocation: Invocation, id: Id) -> Answer:  # noqa: A002  (the record's own word)
    """Print everything about one memory."""
    record = await record_of(await invocation.owner(), id)
    return Answer(record.to_dict(), showing.details(record))


async def history(invocation: Invocation, id: Id) -> Answer:  # noqa: A002
    """Print what a memory said before, and what replaced it."""
    owner = await invocation.owner()
    found = await owner.history(await whole_id(owner, id))
    rows = [(each.since, each.until or "now", each.text, showing.short(each.id)) for each in found]
    return Answer([each.to_dict() for each in found], showing.table(("since", "until", "text", "id"), rows))


async def stats(
    invocation: Invocation,
    *,
    all_owners: Annotated[bool, typer.Option("--all", help="All owners, one line each.")] = False,
) -> Answer:
    """Count the memories of the owner, or of all owners."""
    memory = await invocation.memory()
    if all_owners:
        counts = await memory.operator().stats()
        rows = [
            (scope.app, scope.user, s.records, s.sessions, s.newest, s.vectors_pending) for scope, s in counts.items()
        ]
        value = [{"app": scope.app, "user": scope.user, "stats": each.to_dict()} for scope, each in counts.items()]
        head = ("app", "user", "memories", "sessions", "newest", "pending vectors")
        return Answer(value, showing.table(head, rows))
    owner = await invocation.owner()
    found = await owner.stats()
    if not found.records and (said := await invocation.other_owners()):
        showing.note(said)
    named = {name: getattr(found, name) for name, value in found.to_dict().items() if value is not None}
    rows_ = [
        ("size of texts" if name == "bytes" else name.replace("_", " "), _counts(name, value))
        for name, value in named.items()
    ]
    if invocation.path.is_file():
        rows_.append(("size of the file", decimal(invocation.path.stat().st_size)))
    return Answer(found.to_dict(), showing.table(("", f"{owner.scope.app}/{owner.scope.user}"), rows_))


def _counts(name: str, value: object) -> object:
    if name == "bytes" and isinstance(value, int):
        return decimal(value)
    counts = fields_of(value)
    return ", ".join(f"{count} {name}" for name, count in counts.items()) if counts or value == {} else value


COMMANDS: Final[Mapping[str, Work]] = {
    "search": search,
    "recall": recall,
    "why": why,
    "list": list_,
    "show": show,
    "history": history,
    "stats": stats,
}
