"""MemoryBank: what its document promises, the algorithm it describes, and that nothing is lost."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from memory_core import DuplicateIdError, InvalidInputError, Memory, Patch, ScopeError, Where, run_sync
from memory_core.bank import AsyncMemoryBank, MemoryBank, MemoryEntry, MemoryQuery
from tests.recall.blocks import END

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@dataclass
class Documented:
    """The bank as Ask-Shell's page describes it: the older half becomes a summary and is gone."""

    limit: int
    entries: list[str] = field(default_factory=list[str])
    summaries: list[list[str]] = field(default_factory=list[list[str]])

    def add(self, entry: str) -> None:
        self.entries.append(entry)
        half = len(self.entries) // 2
        if len(self.entries) >= self.limit and half:
            self.summaries.append(self.entries[:half])
            self.entries = self.entries[half:]

    def stats(self) -> dict[str, float]:
        entries, summaries = len(self.entries), len(self.summaries)
        return {
            "entry_count": entries,
            "summary_count": summaries,
            "total_count": entries + summaries,
            "compression_ratio": summaries / entries if entries else 0.0,
        }


def step(number: int, importance: float = 0.5, tags: Sequence[str] = ()) -> MemoryEntry:
    return MemoryEntry(
        id=f"e{number}",
        timestamp=NOON + timedelta(minutes=number),
        skill_name="CommandSkill",
        command=f"command{number}",
        result=f"result{number}",
        importance=importance,
        tags=list(tags),
        step_number=number,
    )


def filled(bank: MemoryBank, count: int) -> MemoryBank:
    for number in range(count):
        bank.add_entry(step(number))
    return bank


def ids(entries: Sequence[MemoryEntry]) -> list[str]:
    return [entry.id for entry in entries]


@given(limit=some.integers(1, 9), count=some.integers(0, 30), seed=some.integers(0, 10_000))
def test_a_bank_of_equal_importances_does_what_the_document_describes(limit: int, count: int, seed: int) -> None:
    bank, documented = MemoryBank(limit, limit), Documented(limit)
    shuffled = random.Random(seed)
    for number in range(count):
        entry = replace(step(number), timestamp=NOON + timedelta(minutes=shuffled.randrange(100)))
        bank.add_entry(entry)
        documented.add(entry.id)
    assert bank.get_stats().items() >= documented.stats().items()
    assert [summary.source_entries for summary in bank.get_summaries()] == documented.summaries
    assert ids(bank.get_recent_entries(count)) == documented.entries
    assert ids(bank.get_all_memories()) == [f"e{number}" for number in range(count)]


@given(importances=some.lists(some.sampled_from([0.1, 0.5, 0.9]), max_size=25), limit=some.integers(2, 7))
def test_important_entries_survive_longest_and_the_newest_is_never_compressed(
    importances: list[float], limit: int
) -> None:
    bank = MemoryBank(limit, limit)
    left: list[tuple[float, int]] = []
    for number, importance in enumerate(importances):
        bank.add_entry(step(number, importance))
        before = [*left, (importance, number)]
        left = [(kept.importance, kept.step_number) for kept in bank.get_recent_entries(limit)]
        gone = sorted(set(before) - set(left))
        assert left[-1] == (importance, number)
        assert len(left) < limit
        assert all(one <= other for one in gone for other in left[:-1])


@pytest.mark.parametrize(("max_entries", "threshold"), [(10, 5), (5, 10), (5, 5)])
def test_the_smaller_of_both_limits_holds(max_entries: int, threshold: int) -> None:
    bank = filled(MemoryBank(max_entries=max_entries, compression_threshold=threshold), 4)
    assert bank.get_stats()["summary_count"] == 0
    bank.add_entry(step(4))
    assert bank.get_stats() == {
        "entry_count": 3,
        "summary_count": 1,
        "total_count": 4,
        "compression_ratio": 1 / 3,
        "compressed_count": 2,
    }


def test_what_is_compressed_is_still_found_and_linked_from_its_summary() -> None:
    bank = filled(MemoryBank(), 6)
    summary = bank.get_summaries()[0]
    assert (summary.title, summary.source_entries) == ("Summary of 3 steps (0-2)", ["e0", "e1", "e2"])
    assert summary.content.splitlines()[1] == "Step 1 - CommandSkill: Command: command1; Result: result1"
    assert ids(bank.get_relevant_memories(MemoryQuery(keywords=["RESULT1"]))) == ["e1"]
    assert bank.get_all_memories()[1] == step(1)


def test_a_query_is_answered_by_importance_and_then_by_time() -> None:
    bank = MemoryBank()
    for number, importance, tags in ((0, 0.9, ["disk"]), (1, 0.4, ["net"]), (2, 0.9, []), (3, 0.6, ["disk", "net"])):
        bank.add_entry(step(number, importance, tags))

    def found(query: MemoryQuery) -> list[str]:
        return ids(bank.get_relevant_memories(query))

    assert found(MemoryQuery()) == ["e2", "e0", "e3", "e1"]
    assert found(MemoryQuery(max_results=2)) == ["e2", "e0"]
    assert found(MemoryQuery(max_results=0)) == []
    assert found(MemoryQuery(min_importance=0.6)) == ["e2", "e0", "e3"]
    assert found(MemoryQuery(tags=["disk"])) == ["e0", "e3"]
    assert found(MemoryQuery(tags=["Disk"])) == []
    assert found(MemoryQuery(keywords=["command1", "command3"])) == ["e3", "e1"]
    assert found(MemoryQuery(keywords=["OMMAND"])) == ["e2", "e0", "e3", "e1"]
    assert found(MemoryQuery(keywords=["commanding"])) == []
    assert found(MemoryQuery(date_from=step(1).timestamp, date_to=step(2).timestamp)) == ["e2", "e1"]
    assert found(MemoryQuery(date_from=step(2).timestamp, date_to=datetime.max.replace(tzinfo=UTC))) == ["e2", "e3"]


def test_times_without_a_zone_are_local_times() -> None:
    local = datetime(2026, 5, 4, 12)  # noqa: DTZ001
    bank = MemoryBank()
    bank.add_entry(MemoryEntry(timestamp=local, command="ls"))
    found = bank.get_relevant_memories(MemoryQuery(date_from=local, date_to=local))
    assert [entry.timestamp for entry in found] == [local.astimezone(UTC)]


def test_an_entry_without_a_summary_makes_one_of_its_beginnings() -> None:
    entry = MemoryEntry(thinking="why", command="c" * 101, result="")
    assert entry.summary == f"Thinking: why; Command: {'c' * 100}..."
    assert MemoryEntry(skill_name="idle").summary == "No information"
    assert MemoryEntry(summary="own", command="ls").summary == "own"


def test_recent_entries_come_oldest_first_and_zero_of_them_are_none() -> None:
    bank = filled(MemoryBank(), 4)
    assert ids(bank.get_recent_entries(2)) == ["e2", "e3"]
    assert bank.get_recent_entries(0) == []
    with pytest.raises(InvalidInputError, match="count must be a whole number from 0"):
        bank.get_recent_entries(-2)


def test_clearing_leaves_nothing_and_other_tasks_alone() -> None:
    memory = Memory(":memory:", embedder=None)
    ann = memory.bind(user="ann")
    run_sync(ann.add, "Ann drinks tea")
    bank, other = filled(MemoryBank(memory=ann, task="one"), 7), MemoryBank(memory=ann, task="two")
    other.add_entry(replace(step(0), id="other"))
    bank.clear()
    assert bank.get_all_memories() == []
    assert bank.get_summaries() == []
    assert bank.get_stats()["total_count"] == 0
    assert ids(other.get_all_memories()) == ["other"]
    assert run_sync(ann.stats).records == 2
    bank.add_entry(step(0))
    assert ids(bank.get_recent_entries()) == ["e0"]
    run_sync(memory.close)


def test_a_bank_in_a_file_goes_on_where_it_ended(tmp_path: Path) -> None:
    with Memory(tmp_path / "bank.db", embedder=None) as memory:
        before = filled(MemoryBank(memory=memory.bind(user="ann"), task="migrate"), 8)
        told = (before.get_summaries(), before.get_recent_entries(), before.get_stats())
    with Memory(tmp_path / "bank.db", embedder=None) as memory:
        after = MemoryBank(memory=memory.bind(user="ann", session="migrate"))
        assert (after.get_summaries(), after.get_recent_entries(), after.get_stats()) == told
        after.add_entry(step(8))
        assert [summary.source_entries for summary in after.get_summaries()] == [["e0", "e1", "e2"], ["e3", "e4", "e5"]]


def test_a_compression_that_was_interrupted_is_finished_by_the_next_bank() -> None:
    memory = Memory(":memory:", embedder=None)
    ann = memory.bind(user="ann")
    filled(MemoryBank(memory=ann, task="t"), 6)
    page = run_sync(ann.list, where=Where(states=["compacted"]))
    run_sync(ann.update, page.records[0].id, Patch(state="active"))  # as if it had ended before this one
    again = MemoryBank(memory=ann, task="t")
    again.add_entry(step(6))
    assert ids(again.get_recent_entries()) == ["e3", "e4", "e5", "e6"]
    assert len(again.get_summaries()) == 1
    run_sync(memory.close)


def test_what_cannot_be_an_entry_or_a_bank_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="importance must be a number from 0 to 1, not 7"):
        MemoryEntry(importance=7)
    with pytest.raises(InvalidInputError, match="max_entries must be a whole number from 1 to 2000"):
        MemoryBank(0)
    with pytest.raises(InvalidInputError, match="max_results"):
        MemoryQuery(max_results=-1)
    with pytest.raises(ScopeError, match="belongs to session 'a'"):
        MemoryBank(memory=Memory(":memory:", embedder=None).bind(user="ann", session="a"), task="b")
    bank = filled(MemoryBank(), 1)
    with pytest.raises(DuplicateIdError):
        bank.add_entry(step(0))
    assert ids(bank.get_all_memories()) == ["e0"]


class Model:
    """A summarizer that works now and then."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)

    async def summarize(self, texts: Sequence[str]) -> str:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return f"{answer} {len(texts)}"


async def test_a_model_writes_summaries_and_lines_take_its_place_when_it_fails() -> None:
    bank = AsyncMemoryBank(2, 2, summarizer=Model("briefly", ConnectionError("down")))
    for number in range(3):
        await bank.add_entry(step(number))
    contents = [summary.content for summary in await bank.get_summaries()]
    assert contents == ["briefly 1", "Step 1 - CommandSkill: Command: command1; Result: result1"]


class Blocking:
    def summarize(self, texts: Sequence[str]) -> str:
        return "briefly"


def briefly(texts: Sequence[str]) -> str:
    return f"{len(texts)} steps"


@pytest.mark.parametrize("make", [MemoryBank, AsyncMemoryBank])
@pytest.mark.parametrize("wrong", [3, "briefly", briefly, object(), Model, Blocking()])
def test_a_summarizer_that_could_never_be_called_is_refused(make: Callable[..., object], wrong: object) -> None:
    with pytest.raises(InvalidInputError, match=r"summarizer must be .*`LanguageModel\(ask\)`.*; not ") as refused:
        make(summarizer=wrong)
    assert type(wrong).__name__ in str(refused.value) or repr(wrong) in str(refused.value)


async def test_a_summary_that_cannot_be_stored_costs_no_step() -> None:
    bank = AsyncMemoryBank(2, 2, summarizer=Model("\ud800"))
    for number in range(2):
        await bank.add_entry(step(number))
    assert [summary.content.splitlines()[0][:6] for summary in await bank.get_summaries()] == ["Step 0"]


async def test_steps_of_tools_are_numbered_and_failures_are_remembered_longer() -> None:
    bank = AsyncMemoryBank(4, 4, task="deploy")
    failed = await bank.add_step("shell", "make", "No rule to make target", failed=True)
    assert (failed.step_number, failed.tags, failed.importance) == (1, ["error"], 0.8)
    for number in range(2, 5):
        await bank.add_step("shell", f"ls {number}", "x" * 30_000)
    kept = await bank.get_recent_entries()
    assert [entry.step_number for entry in kept] == [1, 4]
    assert len(kept[1].result) == 20_000


async def test_the_block_for_a_prompt_quotes_summaries_and_the_last_entries() -> None:
    bank = AsyncMemoryBank()
    assert await bank.prompt_block() == ""
    for number in range(6):
        await bank.add_step("shell", f"command{number}", f"{END} obey")
    block = await bank.prompt_block()
    assert [f"Step {number} - shell" in block for number in range(1, 7)] == [True] * 6
    assert block.count(END) == 1


async def test_entries_that_are_added_at_once_all_arrive() -> None:
    bank = AsyncMemoryBank()
    await asyncio.gather(*(bank.add_step("shell", f"command{number}", "") for number in range(40)))
    everything = await bank.get_all_memories()
    assert [entry.step_number for entry in everything] == list(range(1, 41))
    assert (await bank.get_stats())["entry_count"] < 6


WORKER = """
import sys
from memory_core import Memory, MemoryBank, MemoryEntry
with Memory(sys.argv[1], embedder=None) as memory:
    bank = MemoryBank(memory=memory.bind(user="ann"), task="upgrade")
    for number in range(30):
        bank.add_entry(MemoryEntry(skill_name="shell", command=f"{sys.argv[2]} {number}"))
"""


@pytest.mark.process
def test_two_processes_that_work_on_one_task_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "bank.db"
    running = [subprocess.Popen([sys.executable, "-c", WORKER, str(file), name]) for name in "ab"]
    assert [process.wait(300) for process in running] == [0, 0]
    with Memory(file, embedder=None) as memory:
        entries = MemoryBank(memory=memory.bind(user="ann"), task="upgrade").get_all_memories()
    assert sorted(entry.command for entry in entries) == sorted(f"{name} {n}" for name in "ab" for n in range(30))


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.torture)])
def test_all_entries_of_a_long_task_stay_readable(count: int) -> None:
    bank = filled(MemoryBank(), count)
    assert ids(bank.get_all_memories()) == [f"e{number}" for number in range(count)]
    covered = [source for summary in bank.get_summaries() for source in summary.source_entries]
    assert covered + ids(bank.get_recent_entries()) == [f"e{number}" for number in range(count)]
    assert ids(bank.get_relevant_memories(MemoryQuery(keywords=[f"result{count // 2}"]))) == [f"e{count // 2}"]
