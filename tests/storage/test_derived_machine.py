"""Random lives of derived records: nothing has words that only a gone source had, and nothing is lost whose sources
live.

A rule changes the memory and the model of it (`derived_world.py`); after each, both are compared.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from memory_core import (
    BoundMemory,
    ConflictError,
    Draft,
    Link,
    MaintainPolicy,
    Memory,
    MemoryRecord,
    Patch,
    SupersededError,
    maintain,
    run_sync,
)
from memory_core.lifecycle.deriving import LEAST_SUMMARIZED
from memory_core.retrieval.hits import EXTRACTION
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.storage.sqlite import rows
from memory_core.supplied import ChatMessage
from memory_core.testing import Ticks
from memory_core.transfer.jsonl import export_jsonl, import_jsonl
from memory_core.where.where import ANY_STATE
from tests.lifecycle.scripted import shown
from tests.storage.derived_world import Entry, Place, World, is_at, words_of

STEPS = 50
"""Of one life."""
PHASES = [Phase.generate]
"""A failure prints its steps; to look for fewer that fail as well takes minutes."""
PICK = st.integers(min_value=0, max_value=10_000)
"""Chooses one of what there is."""
SESSIONS = st.sampled_from(["monday", "friday", None])
NAMES = st.sampled_from(["one", "two", None])
"""Of agents, and of collections."""
BOUNDS = [("one", None, None), ("two", None, None), (None, "monday", None), (None, "friday", None), (None, None, "one")]
KEEP = MaintainPolicy(duplicates="keep", alike="keep", contradictions="keep", periods=("day",))


class Repeating:
    """A model that says each turn again as a fact; before it answers, somebody else acts."""

    def __init__(self, meanwhile: Callable[[], None] | None) -> None:
        self.meanwhile = meanwhile

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """See `ChatModel.complete`."""
        _, turns = shown(messages)
        if self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            await asyncio.to_thread(act)
        lines = [f"add T{n} fact: {' '.join(sorted(words_of(text)))}" for n, (_, text) in enumerate(turns, 1)]
        return "\n".join(lines)

    async def summarize(self, texts: Sequence[str]) -> str:
        """See `Summarizer.summarize`."""
        if self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            await asyncio.to_thread(act)
        return " ".join(sorted(words_of(" ".join(texts))))


class Lives(RuleBasedStateMachine):
    """One owner's records, in a memory and in the model of it."""

    def __init__(self) -> None:
        super().__init__()
        self.world, self.clock, self.closing = World(), Ticks(), ExitStack()
        self.reading: list[tuple[str, list[MemoryRecord], Entry | None]] = []
        self.memory = self.opened()

    def opened(self) -> Memory:
        """A new, empty memory."""
        raise NotImplementedError

    def teardown(self) -> None:
        """Close every memory of this life."""
        self.closing.close()

    @property
    def ann(self) -> BoundMemory:
        """The owner."""
        return self.memory.bind(app="demo", user="ann")

    def some(self, pick: int, found: Sequence[Entry]) -> Entry | None:
        """One of these."""
        return found[pick % len(found)] if found else None

    def entries(self) -> list[Entry]:
        """All records, oldest first."""
        return list(self.world.entries.values())

    def plain(self) -> list[Entry]:
        """The records that are not derived."""
        return [entry for entry in self.entries() if not entry.sources]

    def derived(self) -> list[Entry]:
        """The derived entries."""
        return [entry for entry in self.entries() if entry.sources]

    def current(self) -> list[Entry]:
        """The entries that a read finds."""
        return list(self.world.shown())

    def until(self, hours: int | None) -> datetime | None:
        """The time at which something expires."""
        return None if hours is None else self.clock.now + timedelta(hours=hours)

    @rule(session=SESSIONS, agent=NAMES, collection=NAMES, hours=st.sampled_from([None, None, 5]))
    def add(self, session: str | None, agent: str | None, collection: str | None, hours: int | None) -> None:
        self.say(Draft(kind="message", role="user", session=session, agent=agent, collection=collection), hours)

    def say(self, draft: Draft, hours: int | None = None) -> None:
        word = self.world.word()
        draft = replace(draft, text=word, expires_at=self.until(hours))
        self.world.stored(run_sync(self.ann.add, draft), [word])

    @rule(session=st.sampled_from(["monday", "friday"]), agent=NAMES)
    def talk(self, session: str, agent: str | None) -> None:
        """As much as is summarised at once."""
        for _ in range(LEAST_SUMMARIZED):
            self.say(Draft(kind="message", role="user", session=session, agent=agent))

    @precondition(lambda self: len(self.reading) < 3)
    @rule(picks=st.lists(PICK, min_size=1, max_size=3), relation=st.sampled_from(["derived_from", "summarizes"]))
    def read(self, picks: list[int], relation: str) -> None:
        """A model begins to read, and somebody may propose that its fact replaces what is known."""
        found = self.current()
        ids = list(dict.fromkeys(entry.id for pick in picks if (entry := self.some(pick, found)) is not None))
        records = [record for id_ in ids if (record := run_sync(self.ann.get, id_)) is not None]
        old = self.some(picks[-1] // 7, [e for e in found if e.id not in ids]) if picks[0] % 3 == 0 else None
        if records:
            self.reading.append((relation, records, old if relation == "derived_from" else None))

    @precondition(lambda self: bool(self.reading))
    @rule(pick=PICK, hours=st.sampled_from([None, None, 5]), key=st.sampled_from([None, "one", "two"]))
    def answer(self, pick: int, hours: int | None, key: str | None) -> None:
        """An answer of the model is stored, or refused if a source is not as it was; a known key gets its words."""
        relation, sources, old = self.reading.pop(pick % len(self.reading))
        words = sorted({word for source in sources for word in words_of(source.text)})
        links = [Link(relation, s.id, s.rev, s.session, s.collection, s.agent) for s in sources]  # type: ignore[arg-type]
        known = next((e for e in self.entries() if key is not None and e.source_key == key), None)
        if known is not None and not self.world.made_of({known.id}).isdisjoint(source.id for source in sources):
            return  # nothing is made of what was made of it
        if old is not None and old.id in self.world.entries and key is None:
            links.append(Link("supersedes", old.id))
        kind = "summary" if relation == "summarizes" else "fact"
        draft = Draft(" ".join(words), kind=kind, links=links, source_key=key, expires_at=self.until(hours))
        if self.world.problem(sources):
            with suppress(ConflictError):  # nothing is written, nor is what a person has deleted, or is stored already
                (record,) = run_sync(self.ann.add_many, [draft])
                assert record is None or (known is not None and record.text == known.text)
            return
        with suppress(SupersededError):
            (record,) = run_sync(self.ann.add_many, [draft])
            if record is not None:  # else a person has deleted it
                (self.world.stored if known is None else self.world.restated)(record)

    @rule(pick=PICK)
    def edit(self, pick: int) -> None:
        if (entry := self.some(pick, self.entries())) is not None:
            text = self.world.word()
            run_sync(self.ann.update, entry.id, Patch(text=text))
            self.world.edited(entry.id, text)

    @rule(pick=PICK)
    def leave(self, pick: int) -> None:
        if (entry := self.some(pick, self.plain())) is not None:
            run_sync(self.ann.update, entry.id, Patch(left=True))
            entry.left = True
            self.world.expand()

    @rule(pick=PICK)
    def resume(self, pick: int) -> None:
        if (entry := self.some(pick, [e for e in self.plain() if e.left])) is not None:
            run_sync(self.ann.update, entry.id, Patch(left=False))
            entry.left = False

    @rule(pick=PICK)
    def resume_derived(self, pick: int) -> None:
        """Resume a derived entry: it is then as its sources are."""
        if (entry := self.some(pick, self.derived())) is not None:
            with pytest.raises(ConflictError) if self.world.is_left(entry) else nullcontext():
                run_sync(self.ann.update, entry.id, Patch(left=False))

    @rule(pick=PICK)
    def supersede(self, pick: int) -> None:
        if (entry := self.some(pick, self.current())) is not None:
            word = self.world.word()
            self.world.stored(run_sync(self.ann.supersede, entry.id, word), [word])

    @rule(pick=PICK)
    def compact(self, pick: int) -> None:
        """Compact turns that a summary covers, as upkeep does."""
        shown_ = self.current()
        if (summary := self.some(pick, [e for e in shown_ if e.is_summary])) is not None:
            for turn in [e for e in shown_ if e.id in summary.sources]:
                run_sync(self.ann.update, turn.id, Patch(state="compacted"))
                turn.is_compacted = True

    @rule(pick=PICK)
    def delete(self, pick: int) -> None:
        if (entry := self.some(pick, self.entries())) is not None:
            run_sync(self.ann.delete, entry.id)
            self.world.deleted({entry.id})

    @rule(picks=st.lists(PICK, min_size=1, max_size=3))
    def delete_some(self, picks: list[int]) -> None:
        ids = {entry.id for pick in picks if (entry := self.some(pick, self.entries())) is not None}
        if ids:
            run_sync(self.ann.delete_where, replace(ANY_STATE, ids=tuple(ids)))
            self.world.deleted(ids)

    @rule(bounds=st.sampled_from(BOUNDS))
    def erase(self, bounds: Place) -> None:
        agent, session, collection = bounds
        within = self.world.made_within(bounds)
        ids = {id_ for id_ in within if is_at(self.world.entries[id_].place, bounds)}
        receipt = run_sync(self.ann.bind(agent=agent, session=session, collection=collection).erase)
        derived = self.world.removed(within)
        assert receipt.records == len(ids)
        assert receipt.derived == len(derived | within) - len(ids)
        self.after_erasure(receipt.files_clean)

    def after_erasure(self, files_clean: bool) -> None:  # noqa: FBT001
        """Check for what the files must not have."""

    @rule(hours=st.sampled_from([1, 6, 80]))
    def wait(self, hours: int) -> None:
        self.clock.advance(hours=hours)
        run_sync(self.ann.sweep)
        self.world.expired(self.clock.now)

    @rule()
    def move(self) -> None:
        """Continue with an import of the export, in another memory."""
        lines: list[bytes] = []
        run_sync(export_jsonl, self.memory, lines.append)
        found = words_of(b"".join(lines).decode())
        assert not found & self.world.gone_words
        self.memory = self.opened()
        run_sync(import_jsonl, self.memory, lines)

    @rule(pick=PICK, act=st.sampled_from([None, "edit", "leave", "delete"]))
    def upkeep(self, pick: int, act: str | None) -> None:
        """A model reads the conversations, and somebody acts before it answers."""
        meanwhile = None if act is None else partial(getattr(self, act), pick)
        run_sync(maintain, self.ann, KEEP, model=Repeating(meanwhile))
        self.note_new()

    @rule(pick=PICK, act=st.sampled_from([None, "edit", "leave", "delete"]))
    def summarise(self, pick: int, act: str | None) -> None:
        """Sessions that are over, and the days on which they were; summaries of summaries."""
        meanwhile = None if act is None else partial(getattr(self, act), pick)
        run_sync(maintain, self.ann, KEEP, summarizer=Repeating(meanwhile))
        self.note_new()

    def note_new(self) -> None:
        for record in self.stored():
            if record.id not in self.world.entries:
                entry = self.world.stored(record, by_upkeep=True)
                assert self.world.final[entry.is_summary].isdisjoint(entry.sources.items())

    def stored(self) -> list[MemoryRecord]:
        """All records that have a text, in every state."""
        found = run_sync(self.ann.list, where=ANY_STATE, order="oldest", limit=10_000).records
        return [record for record in found if record.text]

    def every_note_names_a_record(self, stored: Collection[str]) -> None:
        notes = run_sync(self.ann.list, where=replace(ANY_STATE, kinds=(EXTRACTION,)), limit=10_000).records
        for note in (note for note in notes if not note.text):
            named = {link.id for link in note.links if link.relation in ("read", "made")}
            assert named
            assert named <= set(stored)

    @rule(pick=PICK)
    def look(self, pick: int) -> None:
        """Look at what prompts are given."""
        about = self.some(pick, self.entries())
        block = str(run_sync(self.ann.recall, "zq" if about is None else about.text))
        profile = str(run_sync(self.ann.profile))
        allowed = {word for entry in self.current() for word in words_of(entry.text)}
        assert words_of(block + profile) <= allowed

    @invariant()
    def what_is_stored_is_what_has_to_be(self) -> None:
        found = {record.id: record for record in self.stored()}
        assert found.keys() == self.world.entries.keys()
        self.every_note_names_a_record(found.keys())
        for record in found.values():
            entry = self.world.entries[record.id]
            assert record.text == entry.text
            assert not words_of(record.text) & self.world.gone_words
            assert record.left == self.world.is_left(entry)
            assert self.world.state(entry) in (None, record.state)
            if not record.left:
                assert not words_of(record.text) & self.world.replaced_words


class OnSqlite(Lives):
    """In files, which are searched after each erasure."""

    def opened(self) -> Memory:
        """See `Lives.opened`."""
        self.folder = Path(self.closing.enter_context(tempfile.TemporaryDirectory()))
        return self.closing.enter_context(Memory(self.folder / "memory.db", embedder=None, clock=self.clock))

    def after_erasure(self, files_clean: bool) -> None:  # noqa: FBT001
        """No file has a word that no record has."""
        assert files_clean
        # Reading an open database here would drop this process's locks on it.
        cat = subprocess.run(["cat", *self.folder.iterdir()], check=True, stdout=subprocess.PIPE)
        assert not words_of(cat.stdout.decode(errors="replace")) & self.world.gone_words


class OnSqliteInParts(OnSqlite):
    """The same, with everything that is more than one record hidden first."""

    def opened(self) -> Memory:
        """See `Lives.opened`."""
        patched = self.closing.enter_context(pytest.MonkeyPatch.context())
        patched.setattr(rows, "MOST_AT_ONCE", 1)
        return super().opened()


class OnQdrant(Lives):
    """In the engine of a client in this process."""

    def opened(self) -> Memory:
        """See `Lives.opened`."""
        store = QdrantStore(":memory:", embedder=None, clock=self.clock)
        return self.closing.enter_context(Memory(store, clock=self.clock))


@pytest.mark.slow
@pytest.mark.parametrize("lives", [OnSqlite, OnSqliteInParts, OnQdrant])
@pytest.mark.parametrize("count", [2, pytest.param(1_000, marks=pytest.mark.torture)])
def test_nothing_outlives_its_sources_and_nothing_else_is_lost(lives: type[Lives], count: int) -> None:
    run_state_machine_as_test(lives, settings=settings(max_examples=count, stateful_step_count=STEPS, phases=PHASES))


@pytest.mark.parametrize("lives", [OnSqlite, OnSqliteInParts, OnQdrant])
def test_what_a_person_deletes_while_it_is_left_is_not_made_again(lives: type[Lives]) -> None:
    life = lives()
    with closing(life.closing):
        life.talk(session="monday", agent=None)
        life.clock.advance(hours=80)
        run_sync(maintain, life.ann, KEEP, summarizer=Repeating(None))
        (summary,) = [each for each in life.stored() if each.kind == "summary"]
        run_sync(life.ann.update, summary.links[0].id, Patch(text="said otherwise"))
        run_sync(life.ann.delete, summary.id)
        run_sync(maintain, life.ann, KEEP, summarizer=Repeating(None))
        assert [each for each in life.stored() if each.kind == "summary"] == []
