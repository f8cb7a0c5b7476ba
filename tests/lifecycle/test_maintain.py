"""Maintenance of a memory: what is merged and corrected, that it can be taken back, and that nobody can break it."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from memory_core import BoundMemory, Draft, Link, Memory, MemoryRecord, Patch, Where, run_sync
from memory_core.lifecycle import (
    ExtractiveSummarizer,
    MaintainPolicy,
    Maintenance,
    PatternReflector,
    apply_steps,
    maintain,
    maintain_all,
    undo_maintenance,
)
from memory_core.models import STATES
from memory_core.values.progress import Progress
from tests.lifecycle.scripted import Diligent
from tests.lifecycle.test_sameness import DIFFERENT

SUPERSEDE = MaintainPolicy(contradictions="supersede")
MAY = datetime(2026, 5, 1, tzinfo=UTC)
ROOT = Path(__file__).parents[2]


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        yield memory


@pytest.fixture
def ann(memory: Memory) -> BoundMemory:
    return memory.bind(app="demo", user="ann")


def fact(text: str, day: int = 0, **fields: Any) -> Draft:
    return Draft(text, kind=fields.pop("kind", "fact"), occurred_at=MAY + timedelta(days=day), **fields)


async def texts(handle: BoundMemory, where: Where = Where()) -> list[str]:  # noqa: B008
    return [record.text for record in (await handle.list(where=where, order="oldest", limit=1_000)).records]


async def everything(handle: BoundMemory) -> dict[str, MemoryRecord]:
    """All records with a text, without what differs from one run to the next."""
    page = await handle.list(where=Where(states=STATES), limit=10_000)
    return {record.text: replace(record, updated_at=MAY, version=0) for record in page.records if record.text}


async def test_equal_texts_are_merged_and_every_source_is_kept_and_linked(ann: BoundMemory) -> None:
    first = await ann.add(fact("Ann drinks jasmine tea", tags=["tea"], importance=0.4))
    second = await ann.add(fact("ann drinks  jasmine tea.", 1, tags=["drinks"], importance=0.8))
    await ann.add(fact("Ann drinks mint tea", 2))
    done = await maintain(ann)
    assert [(step.reason, step.kept, step.gone) for step in done.steps] == [
        ("duplicate", "Ann drinks jasmine tea", ("ann drinks  jasmine tea.",))
    ]
    assert await texts(ann) == ["Ann drinks jasmine tea", "Ann drinks mint tea"]
    kept, gone = await ann.get(first.id), await ann.get(second.id)
    assert kept is not None
    assert gone is not None
    assert (kept.tags, kept.importance, kept.links) == (("tea", "drinks"), 0.8, (Link("confirmed_by", second.id),))
    assert gone.state == "compacted"


async def test_what_was_left_is_neither_merged_nor_corrected(ann: BoundMemory) -> None:
    twice = [fact("I live in Oslo", id="first"), fact("I live in Oslo.", 1, id="oslo")]
    await ann.add_many([*twice, fact("I moved to Bergen", 2, data={"corrects": "oslo"})])
    for id in ("first", "oslo"):  # noqa: A001
        await ann.update(id, Patch(left=True))
    assert await maintain(ann, SUPERSEDE) == Maintenance()
    for id in ("first", "oslo"):  # noqa: A001
        await ann.update(id, Patch(left=False))
    assert [step.reason for step in (await maintain(ann, SUPERSEDE)).steps] == ["duplicate", "correction"]


LOOKS_ALIKE = [
    ("I'm allergic to sulfites", "I'm allergic to sulfates"),
    ("Ich habe keine Katze", "Ich habe eine Katze"),
    ("my sister is called marisa", "my sister is called marina"),
    ("Tom lent Ann a drill", "Ann lent Tom a drill"),
]


@pytest.mark.parametrize(("one", "other"), LOOKS_ALIKE)
async def test_what_looks_alike_is_proposed_and_merged_only_if_accepted(ann: BoundMemory, one: str, other: str) -> None:
    await ann.add_many([fact(one), fact(other, 1)])
    plan = await maintain(ann)
    assert plan.steps == ()
    assert [(step.reason, {step.kept, *step.gone}) for step in plan.proposed] == [("alike", {one, other})]
    assert await texts(ann) == [one, other]
    assert (await maintain(ann, MaintainPolicy(alike="keep"))) == Maintenance()
    await apply_steps(ann, plan.proposed)
    assert len(await texts(ann)) == 1


async def test_a_policy_can_have_what_looks_alike_merged_and_the_usual_spelling_stays(ann: BoundMemory) -> None:
    kitchen = ["She works in the kitchn", "She works in the kitchen", "The kitchen is cold"]
    await ann.add_many(fact(text, day) for day, text in enumerate(kitchen))
    await maintain(ann, MaintainPolicy(alike="merge"))
    assert await texts(ann) == ["She works in the kitchen", "The kitchen is cold"]


async def test_equal_texts_make_one_proposal_with_what_looks_like_them(ann: BoundMemory) -> None:
    said = ["Ann bakes bread on Mondays", "On Mondays Ann bakes bread", "on Mondays Ann bakes bread."]
    await ann.add_many(fact(text, day) for day, text in enumerate(said))
    done = await maintain(ann)
    assert [(step.reason, step.kept) for step in done.steps] == [("duplicate", said[1])]
    assert [(step.reason, step.kept, step.gone) for step in done.proposed] == [("alike", said[0], (said[1],))]
    await apply_steps(ann, done.proposed)
    assert await texts(ann) == [said[0]]


async def test_a_corrected_statement_is_proposed_and_superseded_where_the_policy_says_so(ann: BoundMemory) -> None:
    oslo = await ann.add(fact("I live in Oslo"))
    bergen = await ann.add(fact("I moved to Bergen", 10, data={"corrects": oslo.id}))
    porto = await ann.add(fact("I moved to Porto", 20, data={"corrects": bergen.id}))
    proposal = await maintain(ann)
    assert proposal.steps == ()
    assert [(step.kept, step.gone) for step in proposal.proposed] == [
        ("I moved to Porto", ("I live in Oslo", "I moved to Bergen"))
    ]
    assert len(await texts(ann)) == 3
    await maintain(ann, SUPERSEDE)
    assert await texts(ann) == ["I moved to Porto"]
    for day, text in ((5, "I live in Oslo"), (15, "I moved to Bergen"), (25, "I moved to Porto")):
        assert await texts(ann, Where(as_of=MAY + timedelta(days=day))) == [text]
    for record in (oslo, porto):
        versions = await ann.history(record.id)
        assert [version.text for version in versions] == ["I live in Oslo", "I moved to Bergen", "I moved to Porto"]


async def test_a_proposal_can_be_applied_later(ann: BoundMemory) -> None:
    await ann.add(fact("I live in Oslo", id="oslo"))
    await ann.add(fact("I moved to Bergen", 10, data={"corrects": "oslo"}))
    proposed = (await maintain(ann)).proposed
    done = await apply_steps(ann, Maintenance.from_dict(Maintenance(proposed=proposed).to_dict()).proposed)
    assert done.steps == proposed
    assert await texts(ann) == ["I moved to Bergen"]


async def test_merged_statements_are_corrected_in_the_same_run(ann: BoundMemory) -> None:
    twice = [fact("I live in Oslo"), fact("I live in Oslo.", 1, id="oslo")]
    await ann.add_many([*twice, fact("I moved to Bergen", 2, data={"corrects": "oslo"})])
    done = await maintain(ann, SUPERSEDE)
    assert [step.reason for step in done.steps] == ["duplicate", "correction"]
    assert await texts(ann) == ["I moved to Bergen"]
    assert await maintain(ann, SUPERSEDE) == Maintenance()


async def test_a_dry_run_changes_nothing_and_a_second_run_finds_nothing(ann: BoundMemory) -> None:
    await plant(ann)
    before = await everything(ann)
    shown = await maintain(ann, SUPERSEDE, dry_run=True)
    assert await everything(ann) == before
    done = await maintain(ann, SUPERSEDE)
    assert done.steps == shown.steps
    assert await maintain(ann, SUPERSEDE) == Maintenance()


async def test_everything_can_be_taken_back(ann: BoundMemory) -> None:
    await plant(ann)
    before = await everything(ann)
    done = await maintain(ann, SUPERSEDE)
    assert await everything(ann) != before
    assert await undo_maintenance(ann, done) == ()
    assert await everything(ann) == before


async def test_what_somebody_changed_since_is_not_taken_back(ann: BoundMemory) -> None:
    first, _ = await ann.add_many([fact("Ann drinks tea"), fact("Ann drinks tea.", 1)])
    done = await maintain(ann)
    assert first is not None
    await ann.update(first.id, Patch(importance=0.9))
    assert [change.id for change in await undo_maintenance(ann, done)] == [first.id]
    assert len(await texts(ann)) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"author": "Tom"},
        {"role": "assistant"},
        {"kind": "preference"},
        {"collection": "work"},
        {"data": {"source": "mail"}},
        {"expires_at": MAY + timedelta(days=10_000)},
    ],
)
async def test_nothing_is_merged_that_somebody_else_said_or_that_is_something_else(
    ann: BoundMemory, other: dict[str, Any]
) -> None:
    await ann.add_many([fact("Ann drinks tea", role=None), fact("Ann drinks tea", 1, **other)])
    assert (await maintain(ann)).steps == ()


async def test_nothing_is_merged_across_owners(memory: Memory) -> None:
    for user in ("ann", "tom"):
        await memory.bind(user=user).add_many([fact("It rains"), fact(f"{user} sails"), fact(f"{user} sails!", 1)])
    done = await maintain_all(memory.operator())
    assert {owner.user: [step.kept for step in one.steps] for owner, one in done.items()} == {
        "ann": ["ann sails"],
        "tom": ["tom sails"],
    }


async def test_turns_steps_and_summaries_stay_as_they_were_said(ann: BoundMemory) -> None:
    for number in range(2):
        await ann.remember([("user", "Okay."), ("assistant", "Okay.")], session=f"s{number}")
    for kind in ("step", "summary", "user_query", "message"):
        await ann.add_many([fact("The same", kind=kind), fact("The same", 1, kind=kind)])
    assert await maintain(ann) == Maintenance()


async def test_a_step_that_meets_a_changed_record_is_skipped_and_done_by_the_next_run(ann: BoundMemory) -> None:
    _, second = await ann.add_many([fact("Ann drinks tea"), fact("Ann drinks tea.", 1)])
    assert second is not None

    async def meddling(progress: Progress) -> None:
        await ann.update(second.id, Patch(importance=0.9))

    plan = await maintain(ann, dry_run=True)
    await meddling(Progress(0, 1))
    assert (await apply_steps(ann, plan.steps)).skipped == plan.steps
    assert len((await maintain(ann)).steps) == 1
    assert await texts(ann) == ["Ann drinks tea"]


async def test_progress_is_told(ann: BoundMemory) -> None:
    await ann.add_many([fact("Ann drinks tea"), fact("Ann drinks tea.", 1)])
    told: list[Progress] = []
    await maintain(ann, progress=told.append)
    assert told == [Progress(0, 1), Progress(1, 1)]


async def plant(handle: BoundMemory) -> None:
    """Duplicates, corrections, and both at once."""
    names = ("Marta", "Ingrid", "Tom", "Nina")
    for number, name in enumerate(names):
        await handle.add_many(
            [
                fact(f"{name} lives in Oslo", number, id=f"{name} 1"),
                fact(f"{name} lives in Oslo.", number + 1, tags=["home"]),
                fact(f"{name} moved to Bergen", number + 10, id=f"{name} 2", data={"corrects": f"{name} 1"}),
                fact(f"{name} moved to Porto", number + 20, data={"corrects": f"{name} 2"}),
                fact(f"{name} collects large stamps on Sundays", number),
                fact(f"{name} collects large  stamps on Sundays!", number + 2),
                fact(f"{name} collects LARGE stamps on Sundays", number + 3),
            ]
        )


@pytest.mark.parametrize("times", [5, pytest.param(100, marks=pytest.mark.torture)])
async def test_it_ends_in_the_same_state_wherever_it_was_interrupted(memory: Memory, times: int) -> None:
    chance = random.Random(3)
    whole = memory.bind(user="whole")
    await plant(whole)
    plan = await maintain(whole, SUPERSEDE)
    changes = sum(len(step.changes) for step in plan.steps)
    expected = shape(await everything(whole))
    for number in range(times):
        handle = memory.bind(user=f"killed {number}")
        await plant(handle)
        left = chance.randrange(changes)
        for step in (await maintain(handle, SUPERSEDE, dry_run=True)).steps:
            part = replace(step, changes=step.changes[:left])
            left = max(0, left - len(step.changes))
            await apply_steps(handle, [part])
        await maintain(handle, SUPERSEDE)
        assert shape(await everything(handle)) == expected
        assert await maintain(handle, SUPERSEDE) == Maintenance()


def shape(records: dict[str, MemoryRecord]) -> dict[str, object]:
    """The state of each text, with the texts to which it links."""
    text_of = {record.id: text for text, record in records.items()}
    return {
        text: (
            record.state,
            record.tags,
            record.valid_from,
            record.valid_to,
            sorted((link.relation, text_of[link.id]) for link in record.links),
        )
        for text, record in records.items()
    }


@pytest.mark.process
def test_two_processes_maintain_while_one_writes_and_another_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "shared.db"
    with Memory(file, embedder=None) as memory:
        boats = [fact(f"Sailor {n} keeps boat {n}{'.' * copy}", copy) for n in range(150) for copy in range(3)]
        run_sync(memory.bind(user="ann").add_many, boats)
    command = [sys.executable, str(Path(__file__).with_name("maintaining_process.py")), str(file)]
    tasks = ("maintain", "maintain", "maintain", "write")
    killed, *others = [subprocess.Popen([*command, task], cwd=ROOT, stderr=subprocess.PIPE) for task in tasks]
    while killed.poll() is None and not Path(f"{file}.begun").exists():
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    for process in others:
        _, said = process.communicate()
        assert (process.returncode, said) == (0, b"")
    with Memory(file, embedder=None) as memory:
        ann = memory.bind(user="ann")
        run_sync(maintain, ann)
        records = run_sync(ann.list, where=Where(states=STATES), limit=10_000).records
        active = [record for record in records if record.state == "active"]
        assert len(records) == 150 * 3 + 100
        assert len({record.text.rstrip(".") for record in active}) == len(active) == 150 + 100
        linked = [link.id for record in active for link in record.links]
        assert len(linked) == len(set(linked)) == 150 * 2
        assert run_sync(memory.operator().check) == []


@pytest.mark.process
def test_two_processes_that_derive_at_once_do_nothing_twice(tmp_path: Path) -> None:
    file = tmp_path / "shared.db"
    start = datetime(2026, 1, 5, 9, tzinfo=UTC)
    with Memory(file, embedder=None) as memory:
        said = [
            Draft(
                f"I bought a boat for trip {session}.{n}" if n % 5 == 0 else f"Boat {session}.{n} is painted",
                kind="message",
                role="user",
                author="Ann",
                session=f"{session}",
                occurred_at=start + timedelta(days=session, minutes=n),
            )
            for session in range(16)
            for n in range(10)
        ]
        run_sync(memory.bind(user="ann").add_many, said)
    command = [sys.executable, str(Path(__file__).with_name("maintaining_process.py")), str(file)]
    both = [subprocess.Popen([*command, f"derive{n}"], cwd=ROOT, stderr=subprocess.PIPE) for n in range(2)]
    while not all(Path(f"{file}.derive{n}").exists() or both[n].poll() is not None for n in range(2)):
        time.sleep(0.01)
    Path(f"{file}.go").touch()
    for process in both:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, b"")
    with Memory(file, embedder=None) as memory:
        ann = memory.bind(user="ann")
        again = run_sync(
            maintain,
            ann,
            MaintainPolicy(periods=("week",)),
            model=Diligent(),
            summarizer=ExtractiveSummarizer(),
            reflector=PatternReflector(),
        )
        assert again == Maintenance()
        records = run_sync(ann.list, where=Where(states=STATES), limit=10_000).records
        counts = Counter(record.kind for record in records)
        notes = 16 + 16 + 3  # of what the manager has read, and of each session and week that was summarised
        assert (counts["message"], counts["fact"], counts["extraction"]) == (160, 32, notes)
        assert counts["summary"] == 16 + 3  # of sessions and weeks
        read = [link.id for record in records if record.kind in ("extraction", "summary") for link in record.links]
        assert set(Counter(read).values()) == {1, 3}  # a turn: read by both, and summarised once; a week: made once
        texts = [record.text for record in records if record.kind in ("fact", "insight")]
        assert len(texts) == len(set(texts))
        assert run_sync(memory.operator().check) == []


async def test_an_entry_that_is_known_is_merged_or_refused_on_write(ann: BoundMemory) -> None:
    first = await ann.add(fact("Ann drinks jasmine tea"), on_duplicate="merge")
    again = await ann.add(fact("Ann drinks Jasmine tea!", 1, importance=0.9), on_duplicate="merge")
    assert (again.id, again.importance) == (first.id, 0.9)
    assert len(again.links) == 1
    refused = await ann.add(fact("ann drinks JASMINE tea.", 2), on_duplicate="refuse")
    assert refused.id == first.id
    assert (await ann.stats()).records == 2
    for other in (fact("Ann drinks mint tea"), fact("Ann drinks jasmine tea", author="Tom")):
        assert (await ann.add(other, on_duplicate="refuse")).text == other.text
    assert (await ann.stats()).records == 4


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
async def test_an_entry_that_may_mean_something_else_is_never_lost(memory: Memory, one: str, other: str) -> None:
    for choice in ("merge", "refuse"):
        handle = memory.bind(user=choice)
        for text in (one, other):
            added = await handle.add(fact(text), on_duplicate=choice)
            assert added.text == text
        assert sorted(await texts(handle)) == sorted([one, other])


async def test_an_entry_is_known_however_many_others_have_its_text(ann: BoundMemory) -> None:
    drafts = [fact("Ann drinks tea", data={"cup": number}) for number in range(60)]
    added = await ann.add_many(drafts)
    for draft, known in zip(drafts, added, strict=True):
        assert await ann.add(draft, on_duplicate="refuse") == known
    assert (await ann.stats()).records == 60


async def test_an_entry_under_a_known_source_key_is_no_duplicate_of_itself(ann: BoundMemory) -> None:
    one = await ann.add(fact("Ann drinks tea", source_key="k"), on_duplicate="merge")
    two = await ann.add(fact("Ann drinks tea", source_key="k"), on_duplicate="merge")
    assert (one.id, two.links) == (two.id, ())


@pytest.mark.slow
async def test_a_thousand_repetitions_are_linked_as_far_as_a_record_has_links(ann: BoundMemory) -> None:
    await ann.add_many(fact("It rains", number) for number in range(1_205))
    await maintain(ann)
    active = (await ann.list()).records
    assert sorted(len(record.links) for record in active) == [203, 1_000]
    assert await maintain(ann) == Maintenance()
