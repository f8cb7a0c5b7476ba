"""Records derived from others: facts, summaries, insights; planned first, linked, done once, and taken back."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
import pytest_asyncio

from memory_core import BoundMemory, Draft, FieldCondition, Link, Memory, MemoryRecord, Patch, RecallOptions, Where
from memory_core.lifecycle import (
    ExtractiveSummarizer,
    Insight,
    LanguageModel,
    MaintainPolicy,
    Maintenance,
    Manager,
    PatternReflector,
    Reflector,
    apply_steps,
    maintain,
    maintain_all,
    undo_maintenance,
)
from memory_core.lifecycle.deriving import of_periods
from memory_core.lifecycle.reflection import patterns
from memory_core.lifecycle.summaries import telling_sentences
from memory_core.lifecycle.values import Period
from memory_core.models import STATES
from memory_core.records.draft_to_record import complete
from memory_core.supplied import ChatMessage, ChatModel
from memory_core.testing import ReflectorContract
from tests.lifecycle.scripted import Answers, Diligent

NOW = datetime(2026, 6, 1, tzinfo=UTC)
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
SAID = (
    ("user", "How does authentication with tokens work?"),
    ("assistant", "I am a service, and I keep my tokens in a safe."),
    ("user", "I'm allergic to peanuts. What can I cook tonight?"),
    ("assistant", "Try rice with lentils, carrots and a little ginger."),
    ("user", "Thanks! My sister Rosa visits us on Sunday."),
    ("assistant", "Then cook for three."),
)
SUPERSEDE = MaintainPolicy(contradictions="supersede")


@pytest_asyncio.fixture
async def memory() -> AsyncIterator[Memory]:
    async with Memory(":memory:", embedder=None, clock=lambda: NOW) as memory:
        yield memory


@pytest.fixture
def ann(memory: Memory) -> BoundMemory:
    return memory.bind(user="ann")


async def talk(handle: BoundMemory, weeks: int = 4) -> None:
    """One session a week: a talk on Monday, and where Ann lives on Tuesday."""
    drafts: list[Draft] = []
    for week in range(weeks):
        home = "I live in Oslo." if week < weeks / 2 else "I moved to Bergen."
        said = [*SAID, ("user", home), ("assistant", "Good to know."), *SAID[2:4]]
        for number, (role, text) in enumerate(said):
            at = MONDAY + timedelta(days=7 * week + number // len(SAID), minutes=number)
            author = "Ann" if role == "user" else "bot"
            key = f"{week}.{number}"
            drafts.append(
                Draft(text, kind="message", role=role, author=author, session=f"week {week}", occurred_at=at, id=key)  # type: ignore[arg-type]
            )
    await handle.add_many(drafts)


async def everything(handle: BoundMemory) -> dict[str, MemoryRecord]:
    """All records with a text; notes have none."""
    page = await handle.list(where=Where(states=STATES), limit=10_000)
    return {record.id: replace(record, updated_at=NOW, version=0) for record in page.records if record.text}


async def of_kind(handle: BoundMemory, *kinds: str) -> list[MemoryRecord]:
    return list((await handle.list(where=Where(kinds=kinds), order="oldest", limit=1_000)).records)


async def test_nothing_is_derived_unless_asked_for(ann: BoundMemory) -> None:
    await talk(ann)
    assert await maintain(ann) == Maintenance()


async def test_facts_are_linked_to_their_turns_and_go_through_the_same_consolidation(ann: BoundMemory) -> None:
    await talk(ann)
    done = await maintain(ann, SUPERSEDE, model=Diligent())
    assert {step.reason for step in done.steps} == {"extracted", "duplicate", "correction"}
    facts = await of_kind(ann, "fact", "preference", "event")
    assert sorted(fact.text for fact in facts) == [
        "I moved to Bergen.",
        "I'm allergic to peanuts.",
        "My sister Rosa visits us on Sunday.",
    ]
    allergic = next(fact for fact in facts if "allergic" in fact.text)
    assert (allergic.role, allergic.author, allergic.session) == ("user", "Ann", None)
    assert Link("derived_from", "0.2") in allergic.links
    in_march = Where(as_of=MONDAY + timedelta(days=5), kinds=["fact"], keywords=["Oslo"])
    assert [record.text for record in (await ann.list(where=in_march)).records] == ["I live in Oslo."]


async def test_what_was_left_is_not_read_until_it_is_resumed(ann: BoundMemory) -> None:
    await talk(ann, weeks=1)
    allergic = [record.id for record in await ann.list(where=Where(keywords=["allergic"]))]
    for id in allergic:  # noqa: A001
        await ann.update(id, Patch(left=True))
    await maintain(ann, model=Diligent(), summarizer=ExtractiveSummarizer())
    derived = await ann.list(where=Where(matching=[FieldCondition("kind", "ne", "message")]), limit=100)
    assert derived.records
    assert not [record for record in derived if "allergic" in record.text or "peanuts" in record.text]
    assert not {link.id for record in derived for link in record.links} & {*allergic}
    for id in allergic:  # noqa: A001
        await ann.update(id, Patch(left=False))
    await maintain(ann, model=Diligent())
    assert "I'm allergic to peanuts." in [each.text for each in await of_kind(ann, "fact", "preference")]


async def test_what_the_model_says_about_itself_is_not_extracted(ann: BoundMemory) -> None:
    await talk(ann, weeks=1)
    await maintain(ann, model=Diligent())
    assert all("service" not in fact.text for fact in await of_kind(ann, "fact", "event"))


async def test_a_dry_run_shows_what_is_done_a_second_run_does_nothing_and_all_is_taken_back(ann: BoundMemory) -> None:
    await talk(ann, weeks=12)
    before = await everything(ann)
    summarizer, reflector = ExtractiveSummarizer(), PatternReflector()
    policy = replace(SUPERSEDE, compact_after=30)
    derive = {"model": Diligent(), "summarizer": summarizer, "reflector": reflector}
    shown = await maintain(ann, policy, dry_run=True, **derive)  # type: ignore[arg-type]
    assert await everything(ann) == before
    done = await maintain(ann, policy, **derive)  # type: ignore[arg-type]
    assert done == Maintenance.from_dict(done.to_dict())
    reasons = {"extracted", "summary", "reflection", "duplicate", "correction"}
    assert {step.reason for step in done.steps} == reasons
    assert {step.reason for step in shown.steps} == reasons - {"correction"}  # it is shown no facts
    assert await maintain(ann, policy, **derive) == Maintenance()  # type: ignore[arg-type]
    assert await undo_maintenance(ann, done) == ()
    assert await everything(ann) == before


async def test_the_plan_of_a_dry_run_can_be_applied_instead_of_asking_the_model_again(ann: BoundMemory) -> None:
    await talk(ann)
    model = Diligent()
    plan = await maintain(ann, model=model, dry_run=True)
    asked = len(model.asked)
    assert (await apply_steps(ann, plan.steps)).skipped == ()
    assert {fact.text for fact in await of_kind(ann, "fact")} == {
        "I live in Oslo.",
        "I moved to Bergen.",
        "I'm allergic to peanuts.",
        "My sister Rosa visits us on Sunday.",
    }
    await maintain(ann, model=model)
    assert len(model.asked) == asked


async def test_it_ends_in_the_same_state_whichever_call_of_the_model_fails(memory: Memory) -> None:
    policy = replace(SUPERSEDE, compact_after=30)

    class FailingAt(Diligent):
        def __init__(self, call: int) -> None:
            super().__init__()
            self.call = call

        async def complete(self, messages: Sequence[ChatMessage]) -> str:
            if len(self.asked) == self.call:
                raise ConnectionError
            return await super().complete(messages)

    async def run(handle: BoundMemory, model: ChatModel) -> Maintenance:
        manager = Manager(model, attempts=1)
        return await maintain(handle, policy, model=manager, summarizer=ExtractiveSummarizer())

    whole = memory.bind(user="whole")
    await talk(whole)
    await run(whole, Diligent())
    expected = shape(await everything(whole))
    for number in range(4):
        handle = memory.bind(user=f"failing at {number}")
        await talk(handle)
        with pytest.raises(ConnectionError):
            await run(handle, FailingAt(number))
        await run(handle, Diligent())
        assert shape(await everything(handle)) == expected
        assert await run(handle, Answers()) == Maintenance()


def shape(records: dict[str, MemoryRecord]) -> dict[str, object]:
    return {
        record.id: (record.text, record.state, record.tags, record.valid_to, sorted(map(str, record.links)))
        for record in records.values()
    }


async def test_a_deleted_fact_is_not_extracted_again(ann: BoundMemory) -> None:
    await talk(ann, weeks=1)
    await maintain(ann, model=Diligent())
    fact = (await of_kind(ann, "fact"))[0]
    await ann.delete(fact.id)
    await ann.delete_where(Where(kinds=["extraction"], states=STATES), forget=False)
    await maintain(ann, model=Diligent())
    assert fact.text not in {each.text for each in await of_kind(ann, "fact")}


async def test_a_changed_fact_is_not_taken_back(ann: BoundMemory) -> None:
    await talk(ann, weeks=1)
    done = await maintain(ann, model=Diligent())
    fact = (await of_kind(ann, "fact"))[0]
    await ann.update(fact.id, Patch(importance=1.0))
    await undo_maintenance(ann, done)
    assert [each.id for each in await of_kind(ann, "fact", "event")] == [fact.id]


async def test_sessions_that_are_over_are_summarised_in_their_own_words(ann: BoundMemory) -> None:
    await talk(ann, weeks=2)
    await ann.add(Draft("Hello again!", kind="message", role="user", session="today", occurred_at=NOW))
    await maintain(ann, summarizer=ExtractiveSummarizer(200))
    summaries = await of_kind(ann, "summary")
    assert [summary.session for summary in summaries] == ["week 0", "week 1"]
    assert len(summaries[0].links) == 10
    assert len(summaries[0].text) <= 200
    said = " ".join([*(text for _, text in SAID), "I live in Oslo.", "Good to know."])
    lines = [line.removeprefix("Ann: ").removeprefix("bot: ") for line in summaries[0].text.splitlines()]
    assert lines
    assert all(line in said for line in lines)


async def test_a_long_session_is_summarised_in_parts_while_it_goes_on(ann: BoundMemory) -> None:
    said = (f"Today I planted apple tree number {n} behind the house of my neighbour." for n in range(250))
    await ann.remember([("user", text) for text in said], session="s")
    await maintain(ann, summarizer=ExtractiveSummarizer())
    assert [len(summary.links) for summary in await of_kind(ann, "summary")] == [100, 100]


@pytest.mark.parametrize("answer", ["", "raises"])
async def test_a_summarizer_that_fails_is_replaced(
    ann: BoundMemory, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    def ask(_prompt: str) -> str:
        if answer == "raises":
            raise ConnectionError("secret")
        return answer

    await talk(ann, weeks=1)
    with caplog.at_level(logging.WARNING):
        await maintain(ann, summarizer=LanguageModel(ask))
    assert "secret" not in caplog.text
    assert ("ConnectionError" in caplog.text) == (answer == "raises")
    assert [summary.data["by"] for summary in await of_kind(ann, "summary")] == ["ExtractiveSummarizer"]


async def test_summarised_turns_are_compacted_when_nobody_needs_them(ann: BoundMemory) -> None:
    await talk(ann, weeks=2)
    await ann.update("0.0", Patch(tags=["pinned"]))
    await ann.update("0.2", Patch(importance=0.9))
    await ann.list(where=Where(ids=["0.4"]), touch=True)
    policy = MaintainPolicy(compact_after=85)  # week 1 ended 83 days ago
    await maintain(ann, policy, summarizer=ExtractiveSummarizer())
    active = {record.id for record in await of_kind(ann, "message")}
    assert {key for key in active if key.startswith("0.")} == {"0.0", "0.2", "0.4"}
    assert len(active) == 3 + 10
    assert (await ann.recall("What can Ann cook with lentils?", RecallOptions(links=["summarizes"]))).text


async def test_summaries_of_sessions_are_summarised_by_day_week_and_month(ann: BoundMemory) -> None:
    await talk(ann, weeks=12)  # sessions on Monday and Tuesday, from 2 March to 18 May; now it is 1 June
    policy = MaintainPolicy(periods=("week", "month"))
    await maintain(ann, policy, summarizer=ExtractiveSummarizer(300))
    months = [each for each in await of_kind(ann, "summary") if each.data.get("period") == "month"]
    assert [(each.data["from"], len(each.links)) for each in months] == [
        ("2026-03-02T09:00:00+00:00", 5),
        ("2026-04-06T09:00:00+00:00", 4),
    ]
    assert all(each.session is None and len(each.text) <= 300 for each in months)
    assert not [each for each in await of_kind(ann, "summary") if each.data.get("period") == "week"]  # one session each
    sources = await ann.list(where=Where(ids=[link.id for link in months[0].links]))
    assert [each.session for each in sources.records[::-1]] == [f"week {n}" for n in range(5)]
    assert await maintain(ann, policy, summarizer=ExtractiveSummarizer(300)) == Maintenance()


@pytest.mark.parametrize(("period", "first"), [("day", date(2026, 3, 5)), ("week", date(2026, 3, 2))])
async def test_a_period_is_summarised_once_it_is_over(memory: Memory, period: Period, first: date) -> None:
    ann = memory.bind(user="ann")
    for session in ("a", "b"):
        at = datetime(2026, 3, 5, 9, tzinfo=UTC)
        said = (f"Boat {n} of {session} sails to harbour {n}" for n in range(10))
        await ann.add_many([Draft(t, kind="message", role="user", session=session, occurred_at=at) for t in said])
    policy = MaintainPolicy(periods=(period,))
    for now, count in ((first + timedelta(days=2), 0), (NOW.date(), 1)):
        records = [each for each in (await everything(ann)).values() if "period" not in each.data]
        steps = [
            step
            async for step in of_periods(
                [*records, *await planned(ann)],
                policy.periods,
                ExtractiveSummarizer(),
                datetime.combine(now, datetime.min.time(), tzinfo=UTC),
            )
        ]
        assert len(steps) == count


async def planned(ann: BoundMemory) -> list[MemoryRecord]:
    """The summaries that a first run would add."""
    plan = await maintain(ann, summarizer=ExtractiveSummarizer(), dry_run=True)
    return [complete(draft, ann.scope, NOW) for step in plan.steps for draft in step.added]


async def days_of(handle: BoundMemory, first: int, count: int) -> None:
    """Authentication every Monday, and the same small talk every day; rowing with Rosa on some days."""
    drafts: list[Draft] = []
    for day in range(first, first + count):
        at = MONDAY + timedelta(days=day)
        said = ["The weather is fine", *(["How does authentication work?"] if day % 7 == 0 else [])]
        said += ["rowing", "Rosa was there"] if day % 5 == 0 else []
        drafts += [
            Draft(text, role="user", author="Ann", occurred_at=at + timedelta(minutes=n)) for n, text in enumerate(said)
        ]
    await handle.add_many(drafts)


async def test_reflection_finds_when_somebody_asks_and_what_goes_together(ann: BoundMemory) -> None:
    await days_of(ann, 0, 70)
    await maintain(ann, reflector=PatternReflector())
    assert {insight.text for insight in await of_kind(ann, "insight")} == {
        "Ann mentions 'authentication' on 10 days, 10 of them on a Monday",
        "Ann mentions 'rosa' and 'rowing' on the same days: 14 of 14",
    }
    assert await maintain(ann, reflector=PatternReflector()) == Maintenance()
    await days_of(ann, 70, 14)
    await maintain(ann, reflector=PatternReflector())
    after = {insight.text: insight for insight in await of_kind(ann, "insight")}
    assert "Ann mentions 'authentication' on 12 days, 12 of them on a Monday" in after
    assert len(after) == 2
    asked = after["Ann mentions 'authentication' on 12 days, 12 of them on a Monday"]
    assert [version.text[30:37] for version in await ann.history(asked.id)] == ["on 10 d", "on 12 d"]


def test_random_memories_show_no_pattern(memory: Memory) -> None:
    chance = random.Random(5)
    words = [f"w{letter}{other}x" for letter in "abcdefgh" for other in "abcdefgh"]
    drafts = (
        Draft(" ".join(chance.sample(words, 6)), occurred_at=MONDAY + timedelta(hours=chance.randrange(24 * 90)))
        for _ in range(300)
    )
    assert patterns([complete(draft, memory.bind(user="ann").scope, NOW) for draft in drafts]) == []


async def test_every_owner_is_maintained_alone(memory: Memory) -> None:
    for user in ("ann", "tom"):
        await talk(memory.bind(user=user), weeks=1)
    done = await maintain_all(memory.operator(), model=Diligent())
    assert {owner.user: len(one.steps) for owner, one in done.items()} == {"ann": 2, "tom": 2}


def test_a_summary_says_as_much_as_fits() -> None:
    texts = [
        "Ann: Okay. I planted roses near the gate.",
        "Bob: I planted roses near the gate.",
        "Ann: Is pi 3.14 or more?",
    ]
    assert telling_sentences(texts, 1_000) == ["Bob: I planted roses near the gate.", "Ann: Is pi 3.14 or more?"]
    assert telling_sentences(texts, 40) == ["Ann: Is pi 3.14 or more?"]
    assert telling_sentences(["Okay."], 100) == []


class TestPatterns(ReflectorContract):
    @pytest.fixture
    def reflector(self) -> Reflector:
        return PatternReflector()


class TestModel(ReflectorContract):
    @pytest.fixture
    def reflector(self) -> Reflector:
        async def ask(prompt: str) -> str:
            return "1, 3, 9999: Ann drinks tea in the morning\n0: nothing" if "tea" in prompt else "none"

        return LanguageModel(ask)


async def test_the_insight_of_a_model_is_linked_to_its_memories(ann: BoundMemory) -> None:
    await talk(ann, weeks=2)
    await maintain(ann, reflector=LanguageModel(lambda _: "1, 3, 9999: Ann asks on Mondays"))
    assert [(each.text, len(each.links)) for each in await of_kind(ann, "insight")] == [("Ann asks on Mondays", 2)]
    assert Insight(text="x", sources=(1,)).to_dict() == {"text": "x", "sources": [1], "about": ""}


async def test_a_fact_that_a_person_deleted_is_not_drawn_again_from_the_text_that_was_read(ann: BoundMemory) -> None:
    """Whatever else goes, and whatever words the model chooses next time; another text is read."""
    at = NOW - timedelta(days=3)
    said = [f"I live in house {n}" for n in range(12)]
    drafts = [
        Draft(text, kind="message", role="user", session="s", occurred_at=at + timedelta(minutes=n))
        for n, text in enumerate(said)
    ]
    turns = [turn for turn in await ann.add_many(drafts) if turn is not None]
    model = Answers("add T3 fact: Ann lives in house 2")
    await maintain(ann, model=model, summarizer=ExtractiveSummarizer())
    (fact,) = (await ann.list(where=Where(kinds=["fact"]))).records
    await ann.delete(fact.id)
    await ann.delete(turns[0].id)  # the summary goes with it, of all twelve
    assert (await ann.list(where=Where(kinds=["summary"]))).records == ()
    await maintain(ann, model=model)
    assert len(model.asked) == 1
    await ann.update(turns[2].id, Patch(text="I live in house 99"))
    model.answers.append("add T1 fact: Ann lives in house 99")
    await maintain(ann, model=model)
    assert [each.text for each in await ann.list(where=Where(kinds=["fact"]))] == ["Ann lives in house 99"]


async def test_turns_are_summarised_again_when_one_of_them_was_edited(ann: BoundMemory) -> None:
    at = NOW - timedelta(days=3)
    drafts = [
        Draft(f"I live in house {n}", kind="message", role="user", session="s", occurred_at=at + timedelta(minutes=n))
        for n in range(12)
    ]
    turns = [turn for turn in await ann.add_many(drafts) if turn is not None]
    await maintain(ann, summarizer=ExtractiveSummarizer())
    edited = await ann.update(turns[2].id, Patch(text="I live in boat 99"))
    await maintain(ann, summarizer=ExtractiveSummarizer())
    (summary,) = (await ann.list(where=Where(kinds=["summary"]))).records
    assert Link("summarizes", edited.id) in summary.links
    assert "house 2" not in summary.text


async def sail(ann: BoundMemory, session: str, count: int = 12, first: int = 0) -> list[MemoryRecord]:
    """Turns of a session that is over."""
    at = NOW - timedelta(days=30)
    drafts = [
        Draft(f"Boat {n} sails to harbour {n}", kind="message", role="user", session=session, occurred_at=at)
        for n in range(first, first + count)
    ]
    return [turn for turn in await ann.add_many(drafts) if turn is not None]


async def test_a_summary_that_a_person_deleted_is_not_made_again(ann: BoundMemory) -> None:
    """Whatever is said later, and whatever else goes; what was edited is read."""
    one, two = await sail(ann, "a"), await sail(ann, "b")
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return "Ann sails"

    policy, model = MaintainPolicy(periods=("week",)), LanguageModel(ask)
    await maintain(ann, policy, summarizer=model)
    summaries = {(each.session, each.data.get("period")): each for each in await of_kind(ann, "summary")}
    assert summaries.keys() == {("a", None), ("b", None), (None, "week")}
    await ann.delete(summaries[None, "week"].id)
    await ann.delete(summaries["a", None].id)
    await ann.delete(one[0].id)
    assert await maintain(ann, policy, summarizer=model) == Maintenance()
    assert len(asked) == 3
    later = await sail(ann, "a", 10, first=12)
    edited = await ann.update(one[1].id, Patch(text="Boat 99 sails"))
    await maintain(ann, policy, summarizer=model)
    (again,) = [each for each in await of_kind(ann, "summary") if each.session == "a"]
    assert {link.id for link in again.links} == {edited.id, *(turn.id for turn in later)}
    assert [link.id for each in await of_kind(ann, "summary") if each.session == "b" for link in each.links] == [
        turn.id for turn in two
    ]


@pytest.mark.parametrize("how", ["delete", "edit", "leave"])
async def test_what_a_summary_covered_is_summarised_again_when_it_goes_with_a_turn(ann: BoundMemory, how: str) -> None:
    turns = await sail(ann, "a")
    await maintain(ann, summarizer=ExtractiveSummarizer())
    patch = Patch(left=True) if how == "leave" else Patch(text="the boat sinks")
    await (ann.delete(turns[0].id) if how == "delete" else ann.update(turns[0].id, patch))
    kept = turns if how == "edit" else turns[1:]
    assert await of_kind(ann, "summary") == []
    await maintain(ann, summarizer=ExtractiveSummarizer())
    (again,) = await of_kind(ann, "summary")
    assert {link.id for link in again.links} == {turn.id for turn in kept}


async def test_a_period_is_summarised_again_when_one_of_its_sessions_is_erased(ann: BoundMemory) -> None:
    for session in ("a", "b", "c"):
        await sail(ann, session)
    policy = MaintainPolicy(periods=("week",))
    await maintain(ann, policy, summarizer=ExtractiveSummarizer())
    await ann.bind(session="a").erase()
    assert {each.session for each in await of_kind(ann, "summary")} == {"b", "c"}
    await maintain(ann, policy, summarizer=ExtractiveSummarizer())
    week = next(each for each in await of_kind(ann, "summary") if each.data.get("period") == "week")
    assert {link.session for link in week.links} == {"b", "c"}


async def test_a_deleted_summary_stays_deleted_though_it_was_left_and_resumed_before(ann: BoundMemory) -> None:
    turns = await sail(ann, "a")
    await maintain(ann, summarizer=ExtractiveSummarizer())
    (summary,) = await of_kind(ann, "summary")
    await ann.update(turns[0].id, Patch(left=True))
    await ann.update(turns[0].id, Patch(left=False))
    await ann.delete(summary.id)
    assert await maintain(ann, summarizer=ExtractiveSummarizer()) == Maintenance()
