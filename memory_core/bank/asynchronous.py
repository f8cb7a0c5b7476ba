"""Store the steps of a task as records and compress them to summaries."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Final, TypeVar

from memory_core.bank.entries import (
    SUMMARY,
    MemoryEntry,
    MemoryQuery,
    MemorySummary,
    draft_of,
    entry_of,
    line_of,
    place_of,
    summary_of,
    title_of,
)
from memory_core.concurrency.loop import on_core
from memory_core.errors import ConflictError, RecordNotFoundError, reason_for_log
from memory_core.every_record import every_record
from memory_core.handle import BoundMemory
from memory_core.memory import Memory
from memory_core.models import STATES, Draft, Link, MemoryRecord, Patch
from memory_core.recall.block import remembered_block
from memory_core.records.kinds import STEP
from memory_core.supplied import Summarizer
from memory_core.values.checks import check_count, check_key, check_summarizer, check_text
from memory_core.values.ids import new_id
from memory_core.values.limits import MAX_LINKS, MAX_TEXT_CHARS
from memory_core.values.times import until_after
from memory_core.values.zones import zoned
from memory_core.where.where import Where

logger = logging.getLogger(__name__)
T = TypeVar("T")

COLLECTION: Final = "bank"
MAX_ENTRIES: Final = 2 * MAX_LINKS
"""Limited because a summary links to each of its sources, which are half of the entries."""
MAX_RESULT_CHARS: Final = 20_000
"""Most characters of a tool's result that `add_step` stores, a few pages. Tools may return whole files or web sites."""
FAILED_IMPORTANCE: Final = 0.8
"""The importance of a failed step, since failures are worth remembering longer than successes."""
SHOWN_ENTRIES: Final = 5
SHOWN_SUMMARIES: Final = 2


class AsyncMemoryBank:
    """`MemoryBank` for asynchronous code: the same methods as coroutines, for any event loop."""

    def __init__(
        self,
        max_entries: int = 6,
        compression_threshold: int = 6,
        *,
        memory: BoundMemory | None = None,
        task: str | None = None,
        summarizer: Summarizer | None = None,
    ) -> None:
        self.max_entries = check_count("max_entries", max_entries, 1, MAX_ENTRIES)
        self.compression_threshold = check_count("compression_threshold", compression_threshold, 1, MAX_ENTRIES)
        check_summarizer(summarizer)
        if memory is None:
            memory = Memory(":memory:", embedder=None).bind(user=COLLECTION)
        self.task = check_key("task", task or memory.scope.session or new_id())
        self._handle = memory.own.bind(collection=COLLECTION, session=self.task)
        self._summarizer = summarizer
        self._lock = asyncio.Lock()
        self._live: list[MemoryRecord] | None = None
        """The entries that are not compressed, cached after the first read."""

    async def add_entry(self, entry: MemoryEntry) -> None:
        """Add an entry; compresses others if the bank is full."""
        await on_core(self._locked, lambda live: self._add(live, lambda _: entry))

    async def add_step(
        self, skill_name: str, command: str, result: str, *, thinking: str = "", failed: bool = False
    ) -> MemoryEntry:
        """Add a tool call as the next step and return the entry; a long result is cut.

        Args:
            failed: True if it ended with an error; the entry is then tagged `error` and more important than others.
        """

        def step(number: int) -> MemoryEntry:
            return MemoryEntry(
                skill_name=skill_name,
                thinking=thinking,
                command=command[:MAX_RESULT_CHARS],
                result=result[:MAX_RESULT_CHARS],
                importance=FAILED_IMPORTANCE if failed else 0.5,
                tags=["error"] if failed else [],
                step_number=number,
            )

        return await on_core(self._locked, lambda live: self._add(live, step))

    async def get_relevant_memories(self, query: MemoryQuery) -> list[MemoryEntry]:
        """Entries that satisfy the query, compressed ones too: the most important first, the latest among equals."""
        date_to = query.date_to
        where = Where(
            kinds=[STEP],
            states=("active", "compacted"),
            tags_any=query.tags or None,
            min_importance=query.min_importance,
            since=None if query.date_from is None else zoned(query.date_from),
            until=None if date_to is None else until_after(zoned(date_to)),
        )
        found = [record for record in await self._records(where) if _has_one(record.text, query.keywords)]
        found.sort(key=lambda record: (record.importance, record.occurred_at, place_of(record)), reverse=True)
        return [entry_of(record) for record in found[: query.max_results]]

    async def get_recent_entries(self, count: int = 5) -> list[MemoryEntry]:
        """The last entries that are not compressed, at most `count`, oldest first."""
        wanted = check_count("count", count, 0)
        live = await self._records(Where(kinds=[STEP]))
        return [entry_of(record) for record in live[len(live) - min(wanted, len(live)) :]]

    async def get_summaries(self) -> list[MemorySummary]:
        """All summaries, oldest first."""
        return [summary_of(record) for record in await self._records(Where(kinds=[SUMMARY]))]

    async def get_all_memories(self) -> list[MemoryEntry]:
        """All entries, compressed or not, in the order in which they were added."""
        return [entry_of(record) for record in await self._records(Where(kinds=[STEP], states=STATES))]

    async def clear(self) -> None:
        """Delete all entries and summaries of this task."""
        everything = Where(kinds=[STEP, SUMMARY], states=STATES)
        await on_core(self._locked, lambda _: self._handle.delete_where(everything, forget=False))

    async def get_stats(self) -> dict[str, int | float]:
        """`entry_count` (not compressed), `summary_count`, their sum `total_count`, their quotient `compression_ratio`
        (summaries to entries; 0 without entries), and `compressed_count`."""
        stats = await self._handle.stats()
        compressed = stats.by_state.get("compacted", 0)
        entries = stats.by_kind.get(STEP, 0) - compressed
        summaries = stats.by_kind.get(SUMMARY, 0)
        return {
            "entry_count": entries,
            "summary_count": summaries,
            "total_count": entries + summaries,
            "compression_ratio": summaries / entries if entries else 0.0,
            "compressed_count": compressed,
        }

    async def prompt_block(self) -> str:
        """The last summaries and entries for the prompt of the next step, quoted as data; empty for an empty bank."""
        summaries = (await self.get_summaries())[-SHOWN_SUMMARIES:]
        lines = [line for summary in summaries for line in summary.content.splitlines()]
        recent = await self.get_recent_entries(SHOWN_ENTRIES)
        return remembered_block([*lines, *map(line_of, recent)], [])

    async def _locked(self, work: Callable[[list[MemoryRecord] | None], Coroutine[object, object, T]]) -> T:
        async with self._lock:
            live, self._live = self._live, None  # read again if `work` fails
            return await work(live)

    async def _add(self, live: list[MemoryRecord] | None, make: Callable[[int], MemoryEntry]) -> MemoryEntry:
        if live is None:
            live = await self._settled()
        place = place_of(live[-1]) + 1 if live else 1
        entry = make(place)
        live = [*live, await self._handle.add(draft_of(entry, place), embed="later")]
        limit = min(self.max_entries, self.compression_threshold)
        while len(live) >= limit and len(live) > 1:
            live = await self._compressed(live)
        self._live = live
        return entry

    async def _settled(self) -> list[MemoryRecord]:
        """The entries that are not compressed, after finishing a compression that another process left unfinished."""
        live = await self._records(Where(kinds=[STEP]))
        summarized = {link.id for record in await self._records(Where(kinds=[SUMMARY])) for link in record.links}
        await self._mark_compacted(record for record in live if record.id in summarized)
        return [record for record in live if record.id not in summarized]

    async def _compressed(self, live: list[MemoryRecord]) -> list[MemoryRecord]:
        """Compress half of the entries, the least important, the oldest among equals, never the newest; returns the
        others."""
        by_importance = sorted(live[:-1], key=lambda record: record.importance)
        chosen = sorted(by_importance[: max(1, len(live) // 2)], key=place_of)
        entries = [entry_of(record) for record in chosen]
        key = hashlib.sha256("\0".join([self.task, *(entry.id for entry in entries)]).encode()).hexdigest()
        summary = Draft(
            (await self._summary_text(entries))[:MAX_TEXT_CHARS],
            kind=SUMMARY,
            tags=list(dict.fromkeys(tag for entry in entries for tag in entry.tags)),
            importance=max(entry.importance for entry in entries),
            links=[Link("summarizes", entry.id) for entry in entries],
            data={"title": title_of(entries), "source_entries": [entry.id for entry in entries]},
            source_key=f"{COLLECTION}:{key}",
        )
        await self._handle.add(summary, embed="later")
        await self._mark_compacted(chosen)
        gone = {entry.id for entry in entries}
        return [record for record in live if record.id not in gone]

    async def _summary_text(self, entries: Sequence[MemoryEntry]) -> str:
        lines = [line_of(entry) for entry in entries]
        if self._summarizer is not None:
            try:
                if (text := check_text("a summary", await self._summarizer.summarize(lines))).strip():
                    return text
            except Exception as error:  # noqa: BLE001  (whatever a model's client raises: the lines say it, too)
                logger.warning("a memory bank writes its summary without its summarizer: %s", reason_for_log(error))
        return "\n".join(lines)

    async def _mark_compacted(self, records: Iterable[MemoryRecord]) -> None:
        for record in records:
            try:
                await self._handle.update(record.id, Patch(state="compacted"), expected_version=record.version)
            except (ConflictError, RecordNotFoundError):  # another process compressed or deleted it
                logger.debug("an entry of a memory bank changed while it was compressed")

    async def _records(self, where: Where) -> list[MemoryRecord]:
        """Records of the bank, in the order in which they were added."""
        records = await every_record(self._handle, where)
        return sorted(records, key=lambda record: (place_of(record), record.created_at, record.id))


def _has_one(text: str, keywords: Sequence[str]) -> bool:
    folded = text.casefold()
    return not keywords or any(keyword.casefold() in folded for keyword in keywords)
