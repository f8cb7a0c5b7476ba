"""A step that was taken back is repeated by no later run: not in another process, not through another handle."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from memory_core import BoundMemory, Draft, MaintainPolicy, Memory, MemoryRecord, Where, run_sync
from memory_core.lifecycle import (
    ExtractiveSummarizer,
    LanguageModel,
    Maintenance,
    apply_steps,
    maintain,
    undo_maintenance,
)
from memory_core.models import STATES, Link
from memory_core.transfer.jsonl import export_jsonl, import_jsonl

NOW = datetime(2026, 6, 1, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=200)
ROOT = Path(__file__).parents[2]


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(tmp_path / "m.db", embedder=None, clock=lambda: NOW) as memory:
        yield memory


@pytest.fixture
def ann(memory: Memory) -> BoundMemory:
    return memory.bind(app="demo", user="ann")


def fact(text: str, day: int = 0, **fields: Any) -> Draft:
    return Draft(text, kind="fact", occurred_at=LONG_AGO + timedelta(days=day), **fields)


async def active(handle: BoundMemory) -> list[MemoryRecord]:
    return list((await handle.list(order="oldest", limit=1_000)).records)


async def texts(handle: BoundMemory) -> list[str]:
    return [record.text for record in await active(handle)]


@pytest.mark.process
def test_a_merge_that_was_taken_back_is_not_repeated_in_another_process(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    with Memory(file, embedder=None) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add_many, [fact("Ann drinks tea"), fact("Ann drinks tea.", 1)])
        done = run_sync(maintain, ann)
        assert len(done.steps) == 1
        assert run_sync(undo_maintenance, ann, Maintenance.from_dict(done.to_dict())) == ()
    command = [sys.executable, str(Path(__file__).with_name("maintaining_process.py")), str(file), "maintain"]
    subprocess.run(command, cwd=ROOT, check=True)
    with Memory(file, embedder=None) as memory:
        ann = memory.bind(user="ann")
        assert run_sync(maintain, ann) == Maintenance()
        assert run_sync(texts, ann) == ["Ann drinks tea", "Ann drinks tea."]


async def test_it_is_not_repeated_through_another_handle_or_condition_of_the_same_owner(ann: BoundMemory) -> None:
    await ann.add_many([fact("Ann drinks tea", collection="work"), fact("Ann drinks tea", 1, collection="work")])
    work = ann.bind(collection="work")
    await undo_maintenance(ann, await maintain(ann))
    assert await maintain(work) == Maintenance()
    assert await maintain(ann, MaintainPolicy(where=Where(kinds=["fact"]))) == Maintenance()


async def test_what_was_taken_back_through_a_narrow_handle_is_known_to_the_whole_owner(
    memory: Memory, ann: BoundMemory
) -> None:
    for owner in (ann, memory.bind(app="demo", user="tom")):
        await owner.add_many([fact("I drink tea", session="s"), fact("I drink tea", 1, session="s")])
    narrow = ann.bind(session="s")
    await undo_maintenance(narrow, await maintain(narrow))
    assert await maintain(ann) == Maintenance()
    assert len((await maintain(memory.bind(app="demo", user="tom"))).steps) == 1  # somebody else's


async def test_it_is_not_repeated_in_a_copy(ann: BoundMemory, memory: Memory, tmp_path: Path) -> None:
    await ann.add_many([fact("Ann drinks tea"), fact("Ann drinks tea.", 1)])
    await undo_maintenance(ann, await maintain(ann))
    lines: list[bytes] = []
    await export_jsonl(memory, lines.append)
    async with Memory(tmp_path / "copy.db", embedder=None) as copy:
        await import_jsonl(copy, b"".join(lines).splitlines(keepends=True))
        again = copy.bind(app="demo", user="ann")
        assert await maintain(again) == Maintenance()
        assert len(await texts(again)) == 2


async def test_a_third_record_is_merged_with_one_of_two_that_were_kept_apart(ann: BoundMemory) -> None:
    await ann.add_many([fact("Ann drinks tea"), fact("Ann drinks tea.", 1)])
    await undo_maintenance(ann, await maintain(ann))
    await ann.add(fact("Ann drinks tea!", 2))
    assert [(step.kept, step.gone) for step in (await maintain(ann)).steps] == [
        ("Ann drinks tea", ("Ann drinks tea!",))
    ]
    assert await texts(ann) == ["Ann drinks tea", "Ann drinks tea."]


async def test_a_proposal_that_was_accepted_and_taken_back_is_not_proposed_again(ann: BoundMemory) -> None:
    said = ["She works in the kitchen", "She works in the kitchn", "I live in Oslo", "I moved to Bergen"]
    corrects: dict[int, Any] = {2: {"id": "oslo"}, 3: {"data": {"corrects": "oslo"}}}
    await ann.add_many(fact(text, day, **corrects.get(day, {})) for day, text in enumerate(said))
    proposed = (await maintain(ann)).proposed
    assert {step.reason for step in proposed} == {"alike", "correction"}
    await undo_maintenance(ann, await apply_steps(ann, proposed))
    assert await maintain(ann, MaintainPolicy(alike="merge", contradictions="supersede")) == Maintenance()
    assert await texts(ann) == said


async def test_a_merge_on_write_keeps_apart_what_was_taken_back(ann: BoundMemory) -> None:
    drafts = [fact("Ann drinks tea", source_key="one"), fact("Ann drinks tea.", 1, source_key="two")]
    await ann.add_many(drafts)
    await undo_maintenance(ann, await maintain(ann))
    again = await ann.add(drafts[1], on_duplicate="merge")
    assert again.text == "Ann drinks tea."
    assert len(await texts(ann)) == 2


@pytest.mark.parametrize(
    "policy",
    [
        MaintainPolicy(half_lives={"fact": 1}),
        MaintainPolicy(lifetimes={"fact": 1}),
        MaintainPolicy(most_records=1),
    ],
)
async def test_a_record_that_was_brought_back_stays(ann: BoundMemory, policy: MaintainPolicy) -> None:
    await ann.add_many([fact("The ferry is late"), fact("The gate is open", 1)])
    done = await maintain(ann, policy)
    assert done.steps
    await undo_maintenance(ann, done)
    assert not {step.gone for step in (await maintain(ann, policy)).steps} & {step.gone for step in done.steps}


async def test_one_step_can_be_taken_back_alone(ann: BoundMemory) -> None:
    said = ["Ann drinks tea", "Ann drinks tea.", "Tom sails", "Tom sails."]
    await ann.add_many(fact(text, day) for day, text in enumerate(said))
    done = await maintain(ann)
    await undo_maintenance(ann, Maintenance(steps=done.steps[:1]))
    assert await maintain(ann) == Maintenance()
    assert await texts(ann) == said[:3]


async def test_deleting_the_notes_allows_the_steps_again(ann: BoundMemory) -> None:
    await ann.add_many([fact("Ann drinks tea"), fact("Ann drinks tea.", 1)])
    done = await maintain(ann)
    await undo_maintenance(ann, done)
    await undo_maintenance(ann, done)
    assert (await ann.delete_where(Where(kinds=["undone"], states=STATES))).records == 1
    assert len((await maintain(ann)).steps) == 1


async def test_a_note_is_not_among_the_memories_and_a_record_of_the_same_kind_is_no_note(ann: BoundMemory) -> None:
    first, second = await ann.add_many([fact("Ann drinks tea"), fact("Ann drinks tea.", 1)])
    assert first is not None
    assert second is not None
    await ann.add(Draft("Ann's list", kind="undone", data={"steps": [["duplicate", first.id, second.id]]}))
    done = await maintain(ann)
    assert len(done.steps) == 1
    await undo_maintenance(ann, done)
    assert sorted(await texts(ann)) == ["Ann drinks tea", "Ann drinks tea.", "Ann's list"]


@pytest.mark.slow
async def test_many_steps_are_noted_in_few_records(ann: BoundMemory) -> None:
    await ann.add_many(fact(f"Boat {n // 2} is blue", n) for n in range(1_200))
    done = await maintain(ann)
    await undo_maintenance(ann, done)
    assert (await ann.stats()).by_kind["undone"] == 2
    assert await maintain(ann, MaintainPolicy(alike="keep")) == Maintenance()


async def talk(ann: BoundMemory) -> None:
    """Ten turns each in two sessions of one week."""
    for session in ("a", "b"):
        said = [f"Boat {n} of {session} sails to harbour {n}" for n in range(10)]
        drafts = [Draft(text, kind="message", role="user", session=session, occurred_at=LONG_AGO) for text in said]
        await ann.add_many([replace(draft, id=f"{session}{n}") for n, draft in enumerate(drafts)])


async def test_summaries_that_were_taken_back_are_neither_paid_for_nor_written_again(ann: BoundMemory) -> None:
    await talk(ann)
    policy, asked = MaintainPolicy(periods=("week",)), list[str]()

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return "Ann sails"

    model = LanguageModel(ask)
    done = await maintain(ann, policy, summarizer=model)
    assert len(asked) == 3  # two sessions and their week
    await undo_maintenance(ann, Maintenance(steps=done.steps[-1:]))
    assert await maintain(ann, policy, summarizer=model) == Maintenance()
    await undo_maintenance(ann, done)
    assert await maintain(ann, policy, summarizer=model) == Maintenance()
    assert len(asked) == 3


async def test_turns_that_were_brought_back_are_not_compacted_again(ann: BoundMemory) -> None:
    await talk(ann)
    policy = MaintainPolicy(compact_after=30)
    await maintain(ann, summarizer=ExtractiveSummarizer())
    done = await maintain(ann, policy)
    assert len(done.steps) == 2
    await undo_maintenance(ann, done)
    assert await maintain(ann, policy) == Maintenance()
    assert len((await ann.list(where=Where(kinds=["message"]))).records) == 20


async def test_what_a_model_made_is_not_paid_for_again_after_it_was_taken_back(ann: BoundMemory) -> None:
    await talk(ann)
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return "add T1 fact: Ann has a boat" if "pattern" not in prompt else "1, 2: Ann talks about boats"

    model = LanguageModel(ask)
    done = await maintain(ann, model=model, reflector=model)
    assert len(asked) == 3
    await undo_maintenance(ann, done)
    assert {record.kind for record in await active(ann)} == {"message"}
    assert await maintain(ann, model=model, reflector=model) == Maintenance()
    assert len(asked) == 3


async def test_an_insight_that_was_taken_back_does_not_come_back_with_new_memories(ann: BoundMemory) -> None:
    await talk(ann)
    model = LanguageModel(lambda _: "1, 2: Ann talks about boats")
    await undo_maintenance(ann, await maintain(ann, reflector=model))
    await ann.add_many(fact(f"Harbour {n} is full", n) for n in range(20))
    await maintain(ann, MaintainPolicy(alike="keep"), reflector=model)
    assert "insight" not in {record.kind for record in await active(ann)}


async def test_links_of_merged_records_are_as_before_after_taking_back(ann: BoundMemory) -> None:
    first, second = await ann.add_many([fact("Ann drinks tea"), fact("Ann drinks tea.", 1)])
    assert first is not None
    assert second is not None
    done = await maintain(ann)
    kept = await ann.get(first.id)
    assert kept is not None
    assert kept.links == (Link("confirmed_by", second.id),)
    await undo_maintenance(ann, done)
    assert [record.links for record in await active(ann)] == [(), ()]
