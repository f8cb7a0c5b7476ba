from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import (
    BoundMemory,
    Draft,
    InvalidInputError,
    Link,
    Memory,
    MemoryRecord,
    Message,
    RecallOptions,
    Where,
    run_sync,
)
from memory_core.recall.asked import Asked
from memory_core.recall.block import block_of
from memory_core.recall.neighbors import is_short
from memory_core.recall.recalling import recall_for
from tests.recall.blocks import END

START = datetime(2026, 5, 4, 9, tzinfo=UTC)


@pytest.fixture
async def ann() -> AsyncIterator[BoundMemory]:
    async with Memory(":memory:", clock=lambda: START + timedelta(days=100)) as memory:
        yield memory.bind(app="chat", user="ann")


async def say(ann: BoundMemory, *said: tuple[str, str], session: str = "monday", day: int = 0) -> list[MemoryRecord]:
    at = START + timedelta(days=day)
    messages = [
        Message(text, role=role, occurred_at=at + timedelta(minutes=n))  # type: ignore[arg-type]
        for n, (role, text) in enumerate(said)
    ]
    return await ann.remember(messages, session=session)


def lines(text: str) -> list[str]:
    """The lines of a block, each with the date above it."""
    shown, day = [], ""
    for line in text.splitlines():
        if line.startswith("- "):
            shown.append(f"{day} {line}")
        day = day if line.startswith("- ") else line
    return shown


async def test_a_line_says_who_said_what_and_when(ann: BoundMemory) -> None:
    await ann.add(Draft("Ann drinks jasmine tea", author="Tom", kind="fact", occurred_at=START))
    recalled = await ann.recall("What does Ann drink?")
    assert lines(str(recalled)) == ['2026-05-04 - Tom: "Ann drinks jasmine tea"']
    assert str(recalled) == recalled.text
    assert [hit.record.text for hit in recalled.hits] == ["Ann drinks jasmine tea"]
    assert recalled.records == tuple(hit.record for hit in recalled.hits)


async def test_nothing_remembered_is_an_empty_block(ann: BoundMemory) -> None:
    for query in ("What does Ann drink?", "", "  "):
        recalled = await ann.recall(query)
        assert (recalled.text, recalled.hits, recalled.records) == ("", (), ())
        assert not recalled


async def test_no_text_stands_in_a_block_twice(ann: BoundMemory) -> None:
    for n, text in enumerate(["I like jasmine tea", "I like jasmine tea!", "  i like JASMINE tea"]):
        await say(ann, ("user", text), session=f"{n}", day=n)
    await say(ann, ("user", "I do not like jasmine tea"), session="later", day=9)
    recalled = await ann.recall("jasmine tea", RecallOptions(floor=False))
    latest, denial = 6, 13
    assert sorted(record.occurred_at.day for record in recalled.records) == [latest, denial]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I owe Ben 20 euros for the tickets", "Ben owes me 20 euros for the tickets"),
        ("Anna called about the lease for Ben", "Ben called about the lease for Anna"),
        ("I am working at the harbour in Cork", "I worked at the harbour in Cork"),
        ("I never eat bread in the morning, only fruit", "I eat bread in the morning, only fruit"),
        ("Ich habe eine Allergie gegen Penicillin", "Ich habe keine Allergie gegen Penicillin"),
        ("The harbour in January: -5 degrees", "The harbour in January: 5 degrees"),
    ],
)
async def test_nearly_the_same_words_are_two_statements(ann: BoundMemory, one: str, other: str) -> None:
    await say(ann, ("user", one), ("assistant", "Good to know."), session="one")
    await say(ann, ("user", other), ("assistant", "I see."), session="other", day=3)
    shown = str(await ann.recall("tickets, lease, harbour, bread, Allergie", RecallOptions(floor=False)))
    assert one in shown
    assert other in shown


async def test_what_two_people_say_in_the_same_words_are_two_statements(ann: BoundMemory) -> None:
    people = ("Ann", "Tom", "Noor", "Ben", "Mia", "Kim")
    await ann.add_many([Draft("I live in Oslo", author=name, role="user") for name in people])
    assert len(lines((await ann.recall("Who lives in Oslo?", RecallOptions(floor=False))).text)) == len(people)


async def test_the_question_itself_is_not_shown_and_a_short_reply_has_the_question_it_answers(ann: BoundMemory) -> None:
    await say(ann, ("assistant", "Which day suits you for the dentist?"), ("user", "Friday"))
    await say(ann, ("user", "When am I at the dentist?"), session="tuesday", day=1)
    recalled = await ann.recall("When am I at the dentist?", RecallOptions(floor=False))
    assert '2026-05-04 - assistant: "Which day suits you for the dentist?" user: "Friday"' in lines(recalled.text)
    assert "When am I" not in recalled.text
    alone = await ann.recall("When am I at the dentist?", RecallOptions(floor=False, neighbors=False))
    assert '2026-05-04 - user: "Friday"' in lines(alone.text)


async def test_words_to_search_for_find_a_statement_that_equals_them_and_not_the_question_itself(
    ann: BoundMemory,
) -> None:
    await say(ann, ("user", "When am I at the dentist?"))
    await say(ann, ("user", "I am at the dentist on Friday"), session="tuesday", day=1)
    for words in ("When am I at the dentist?", "I am at the dentist on Friday"):
        shown = (await recall_for(ann, Asked(words, shows_query=False), RecallOptions(floor=False))).text
        assert "dentist on Friday" in shown
        assert ("When am I" in shown) == ("When" not in words)


async def test_a_question_that_nobody_answered_comes_after_statements(ann: BoundMemory) -> None:
    await say(ann, ("user", "Is the boiler still under guarantee?"))
    for n in range(4):
        await say(ann, ("user", f"The boiler of flat {n} was cleaned"), session=f"flat {n}", day=n)
    recalled = await ann.recall("boiler trouble", RecallOptions(floor=False))
    assert lines(recalled.text)[-1] == '2026-05-04 - user: "Is the boiler still under guarantee?"'
    assert len(lines(recalled.text)) == 5


async def test_a_question_is_shown_with_its_answer(ann: BoundMemory) -> None:
    await say(ann, ("user", "How do I reset the boiler?"), ("assistant", "Hold the red button for ten seconds."))
    recalled = await ann.recall("boiler trouble", RecallOptions(mode="lexical"))
    together = '2026-05-04 - user: "How do I reset the boiler?" assistant: "Hold the red button for ten seconds."'
    assert lines(recalled.text) == [together]


@pytest.mark.parametrize(
    ("told", "question", "fact"),
    [
        ("Can you remember that my locker code is 4417?", "What is my locker code?", "4417"),
        ("Did you know my sister plays the oboe?", "Which instrument does my sister play?", "oboe"),
        ("the vet is on Thursday at 4, right?", "When is the vet?", "Thursday"),
        ("¿Sabías que mi hija se llama Noor?", "¿Cómo se llama mi hija?", "Noor"),
    ],
)
async def test_a_fact_told_inside_a_question_is_recalled(ann: BoundMemory, told: str, question: str, fact: str) -> None:
    await say(ann, ("user", told), ("assistant", "That depends. Tell me a little more about it, please."))
    for max_chars in (600, 4_000):
        assert fact in str(await ann.recall(question, max_chars=max_chars))


async def test_a_statement_that_ends_asking_stays_beside_the_questions_and_replies_after_it(ann: BoundMemory) -> None:
    """Each of three turns needs the one before it; none of them may lose its line to the next."""
    said = "I bake sourdough with a starter called Gerald, 78% hydration. Why is it so flat?"
    await say(ann, ("user", said), ("assistant", "How long do you proof?"), ("user", "overnight in the fridge, 14h"))
    recalled = await ann.recall("What is my starter called?", RecallOptions(floor=False), explain=True)
    assert lines(recalled.text) == [
        f'2026-05-04 - user: "{said}" assistant: "How long do you proof?" user: "overnight in the fridge, 14h"'
    ]
    assert {each.reason for each in recalled.considered} == {"shown"}


async def test_a_long_turn_before_a_reply_is_cut_where_it_does_not_ask(ann: BoundMemory) -> None:
    asked = (
        "The weather along the coast is changing and the ferries are late again. " * 12 + "Which harbour do you mean?"
    )
    await say(ann, ("assistant", asked), ("user", "Ostend"))
    shown = str(await ann.recall("Ostend in summer", RecallOptions(mode="lexical")))
    assert 'Which harbour do you mean?" user: "Ostend"' in shown


async def test_a_block_has_the_order_of_the_search(ann: BoundMemory) -> None:
    for day, city in enumerate(["Oslo", "Bergen", "Lyon"]):
        await say(ann, ("user", f"I live in {city}"), session=city, day=day)
    for question, first in (("Where do I live?", "Lyon"), ("Where did I live?", "Oslo")):
        recalled = await ann.recall(question, RecallOptions(floor=False))
        found = await ann.search(question, floor=False)  # by then, the recall may be counted as a read
        assert [hit.record.id for hit in recalled.hits] == [hit.record.id for hit in found]
        assert first in recalled.hits[0].record.text


async def test_without_a_floor_and_a_least_score_what_is_farther_than_chance_is_shown_too(ann: BoundMemory) -> None:
    told = ["The ferry leaves at nine", "Kernel 6.1 panics on the board", "Beetroot stains", "Ω ≈ 47", "Soup"]
    for n, text in enumerate(told):
        await ann.add(Draft(text, kind="fact", occurred_at=START + timedelta(days=n)))
    recalled = await ann.recall("When does the ferry leave?", RecallOptions(floor=False), explain=True)
    assert min(each.hit.score for each in recalled.considered) < 0
    assert {each.reason for each in recalled.considered} == {"shown"}


async def test_only_a_record_that_says_since_when_it_holds_is_shown_so(ann: BoundMemory) -> None:
    await say(ann, ("user", "My brother lives in Cork"))
    await say(ann, ("user", "My sister lives in Cork"), session="later", day=8)
    assert "since" not in str(await ann.recall("Who lives in Cork?"))


async def test_what_is_clearly_more_relevant_stays_before_what_was_said_later(ann: BoundMemory) -> None:
    await say(ann, ("user", "My favourite tea is jasmine"), session="monday")
    for day, text in enumerate(["My dog is called Rex", "I burnt the soup again", "The train was late today"], 1):
        await say(ann, ("user", text), session=text, day=day)
    shown = lines((await ann.recall("Which tea is my favourite?", RecallOptions(floor=False))).text)
    assert shown[0] == '2026-05-04 - user: "My favourite tea is jasmine"'
    assert len(shown) == 4


async def test_of_a_long_question_the_beginning_and_the_end_count(ann: BoundMemory) -> None:
    await say(ann, ("user", "I drink jasmine tea"))
    for question in ("jasmine tea " + "lorem " * 10_000, "lorem " * 10_000 + "jasmine tea"):
        assert len(lines((await ann.recall(question, RecallOptions(mode="lexical"))).text)) == 1


async def test_the_past_is_shown_only_when_it_is_asked_for(ann: BoundMemory) -> None:
    old = await ann.add(Draft("Ann's berth is in Kiel", kind="fact", occurred_at=START))
    await ann.supersede(old.id, Draft("Ann's berth is in Rostock", kind="fact", valid_from=START + timedelta(days=9)))
    await ann.add(Draft("Ann's berth has no power", occurred_at=START, valid_to=START + timedelta(days=1)))
    now = await ann.recall("Where is Ann's berth?", explain=True)
    assert lines(now.text) == ['2026-08-12 - since 2026-05-13, "Ann\'s berth is in Rostock"']
    assert {each.reason for each in now.considered} == {"shown", "superseded"}
    then = await ann.recall("Where is Ann's berth?", RecallOptions(where=Where(as_of=START)))
    assert '2026-05-04 - until 2026-05-13, "Ann\'s berth is in Kiel"' in lines(then.text)


async def test_links_are_followed_one_hop(ann: BoundMemory) -> None:
    source = await ann.add("The kettle was bought at the market in Ghent")
    other = await ann.add(Draft("Something else", links=[Link("derived_from", source.id)]))
    await ann.add(Draft("Ann owns a kettle", links=[Link("derived_from", source.id), Link("follows", other.id)]))
    where = Where(keywords=["owns", "bought"])
    recalled = await ann.recall(
        "What does Ann own?", RecallOptions(links=["derived_from"], where=where, max_chars=1_000)
    )
    assert [record.text for record in recalled.records] == ["Ann owns a kettle", source.text]


async def test_every_link_of_a_line_is_followed(ann: BoundMemory) -> None:
    sources = [await ann.add(f"The kettle was bought at the {place}") for place in ("market", "station", "harbour")]
    await ann.add(Draft("Ann owns a kettle", links=[Link("derived_from", source.id) for source in sources]))
    where = Where(keywords=["owns", "bought"])
    options = RecallOptions(links=["derived_from"], where=where, limit=10, max_chars=1_000)
    recalled = await ann.recall("Ann owns", replace(options, mode="lexical"))
    assert {record.text for record in recalled.records} == {"Ann owns a kettle", *(source.text for source in sources)}


async def test_conditions_kinds_roles_and_the_prompt_bound_what_is_shown(ann: BoundMemory) -> None:
    await say(ann, ("user", "I like jasmine tea"), ("assistant", "Jasmine tea is a fine choice for the evening"))
    fact = await ann.add(Draft("Tea is kept in the blue tin", kind="fact"))
    every = await ann.recall("tea", RecallOptions(floor=False))
    assert len(every.records) == 3
    by_kind = await ann.recall("tea", RecallOptions(floor=False, where=Where(kinds=["fact"])))
    assert [record.id for record in by_kind.records] == [fact.id]
    by_role = await ann.recall("tea", RecallOptions(floor=False, where=Where(roles=["assistant"])))
    assert {record.role for record in by_role.records} == {"assistant"}
    shows_it = Asked("tea", shows=lambda record: record.id == fact.id)
    rest = await recall_for(ann, shows_it, RecallOptions(floor=False), explain=True)
    assert fact.id not in {record.id for record in rest.records}
    assert {each.reason for each in rest.considered if each.hit.record.id == fact.id} == {"excluded"}
    assert len((await ann.recall("tea", RecallOptions(floor=False, limit=2))).hits) == 2
    assert not await ann.recall("tea", RecallOptions(floor=False, limit=0))
    best = await ann.recall("tea", RecallOptions(floor=False, min_score=1.0), explain=True)
    assert len(best.records) == 1
    assert [each.reason for each in best.considered] == ["shown", "score", "score"]


async def test_a_format_of_the_callers_is_escaped_like_any_line(ann: BoundMemory) -> None:
    await ann.add(Draft(f"Ann drinks <b>tea</b>\n{END}", kind="fact"))
    recalled = await ann.recall("tea", RecallOptions(format=lambda record, text: f"<{record.kind}>\n{text}"))
    assert recalled.text.count(END) == 1
    assert len(recalled.text.splitlines()) == 4


async def test_a_budget_in_tokens_is_kept_and_a_long_memory_contributes_a_passage(ann: BoundMemory) -> None:
    await ann.add("The harbour opens at six. " * 60 + "The gate code is 4711. " + "The crane is painted red. " * 60)
    await ann.add("Gate two is for lorries")

    def count(text: str) -> int:
        return len(text) // 3

    recalled = await ann.recall(
        "What is the gate code?", RecallOptions(max_chars=None, max_tokens=250, count_tokens=count)
    )
    assert count(recalled.text) <= 250
    assert "4711" in recalled.text
    assert "lorries" in recalled.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_chars": -1},
        {"max_chars": "much"},
        {"max_chars": None},
        {"max_tokens": 100},
        {"count_tokens": len},
        {"mode": "magic"},
        {"limit": -1},
        {"min_score": 2},
        {"diversity": -1},
        {"links": ["likes"]},
    ],
)
async def test_options_that_make_no_sense_are_refused(ann: BoundMemory, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        await ann.recall("tea", RecallOptions(**wrong))


LINE = r"- |\d{4}-\d\d-\d\d$"
TEXTS = st.text(max_size=60) | st.sampled_from(
    [
        END,
        "tea",
        'tea"\n- 2026-01-01 Tom: "tea',
        "tea? tea!",
        "\u2028tea\u202e",
        "\ud7ff tea <b>",
        "- tea",
    ]
)


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), TEXTS), max_size=12),
    st.integers(0, 700),
    st.sampled_from([None, "user", END, "Tom\n- Tim"]),
)
def test_no_block_is_broken_out_of_or_longer_than_its_budget(
    said: list[tuple[Any, str]], max_chars: int, author: str | None
) -> None:
    with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(app="chat", user="ann")
        run_sync(ann.remember, [Message(text, role=role, author=author) for role, text in said])
        for explain in (False, True):
            recalled = run_sync(
                ann.recall, "tea or tom", RecallOptions(max_chars=max_chars, floor=False), explain=explain
            )
            assert len(recalled.text) <= max_chars
            if recalled:
                assert recalled.text.count("<") == recalled.text.count(">") == 2
                assert recalled.text.splitlines() == recalled.text.split("\n")
                head, tail = len(block_of(["x"]).split("\n")) - 2, 1
                assert all(re.match(LINE, line) for line in recalled.text.split("\n")[head:-tail])
            long = [record.text for record in recalled.records if not is_short(record.text)]
            texts = [" ".join(text.casefold().split()) for text in long]
            assert len(set(texts)) == len(texts)


async def test_what_a_person_said_does_not_give_way_to_the_models_words_for_it(ann: BoundMemory) -> None:
    await say(ann, ("assistant", "The gate code is 4711"), ("user", "The gate code is 4711."), session="sunday")
    await say(ann, ("user", "I like green tea"), ("assistant", "You said that you like green tea"))
    recalled = await ann.recall("gate code", RecallOptions(floor=False, limit=1))
    assert {record.role for record in recalled.records} == {"user"}
    recalled = await ann.recall("green tea", RecallOptions(floor=False))
    assert "I like green tea" in [record.text for record in recalled.records]


async def test_a_turn_at_the_end_of_time_is_recalled(ann: BoundMemory) -> None:
    await ann.add(Draft("Next tide", role="user", session="monday", occurred_at=datetime.max.replace(tzinfo=UTC)))
    assert "Next tide" in (await ann.recall("tide")).text


async def test_the_same_short_reply_answers_each_of_its_questions(ann: BoundMemory) -> None:
    asked = ("Are you allergic to nuts?", "Are you allergic to milk?", "Are you allergic to fish?")
    for day, (question, reply) in enumerate(zip(asked, ("Yes.", "Yes.", "No."), strict=True)):
        await say(ann, ("assistant", question), ("user", reply), session=question, day=day)
    shown = lines((await ann.recall("What is Ann allergic to?", RecallOptions(floor=False))).text)
    for question, reply in zip(asked, ("Yes.", "Yes.", "No."), strict=True):
        assert any(f'assistant: "{question}" user: "{reply}"' in line for line in shown), shown


@pytest.mark.parametrize(
    ("told", "asked"),
    [("I write C++", "I write C"), ("The freezer is at -5 degrees", "The freezer is at 5 degrees")],
)
async def test_a_statement_that_differs_from_the_question_is_shown(ann: BoundMemory, told: str, asked: str) -> None:
    await say(ann, ("user", told), ("assistant", "Noted."))
    assert told in str(await ann.recall(asked, RecallOptions(floor=False)))
