from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import BoundMemory, Draft, InvalidInputError, Link, Memory, MemoryRecord, Message, Where, run_sync
from memory_core.recall.block import block_of
from memory_core.recall.statements import asks_the_same, is_request, repeats, terms_of

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
    return [line for line in text.splitlines() if line.startswith("- ")]


async def test_a_line_says_who_said_what_and_when(ann: BoundMemory) -> None:
    await ann.add(Draft("Ann drinks jasmine tea", author="Tom", kind="fact", occurred_at=START))
    recalled = await ann.recall("What does Ann drink?")
    assert lines(str(recalled)) == ['- 2026-05-04 Tom: "Ann drinks jasmine tea"']
    assert str(recalled) == recalled.text
    assert [hit.record.text for hit in recalled.hits] == ["Ann drinks jasmine tea"]
    assert recalled.records == tuple(hit.record for hit in recalled.hits)


async def test_nothing_remembered_is_an_empty_block(ann: BoundMemory) -> None:
    for query in ("What does Ann drink?", "", "  "):
        recalled = await ann.recall(query)
        assert (recalled.text, recalled.hits, recalled.records) == ("", (), ())
        assert not recalled


async def test_no_text_stands_in_a_block_twice_or_nearly_twice(ann: BoundMemory) -> None:
    for n, text in enumerate(
        ["I like jasmine tea", "I like jasmine tea!", "  i like JASMINE tea", "I do like jasmine tea"]
    ):
        await say(ann, ("user", text), session=f"{n}", day=n)
    await say(ann, ("user", "I do not like jasmine tea"), session="later", day=9)
    recalled = await ann.recall("jasmine tea", floor=False)
    assert sorted(record.occurred_at.day for record in recalled.records) == [
        7,
        13,
    ]  # the latest of four, and the denial


async def test_what_two_people_say_in_the_same_words_are_two_statements(ann: BoundMemory) -> None:
    await ann.add_many([Draft("I live in Oslo", author=name, role="user") for name in ("Ann", "Tom")])
    assert len(lines((await ann.recall("Who lives in Oslo?", floor=False)).text)) == 2


async def test_the_question_itself_is_not_shown_and_a_short_reply_has_the_question_it_answers(ann: BoundMemory) -> None:
    await say(ann, ("assistant", "Which day suits you for the dentist?"), ("user", "Friday"))
    await say(ann, ("user", "When am I at the dentist?"), session="tuesday", day=1)
    recalled = await ann.recall("When am I at the dentist?", floor=False)
    assert '- 2026-05-04 assistant: "Which day suits you for the dentist?" user: "Friday"' in lines(recalled.text)
    assert "When am I" not in recalled.text
    alone = await ann.recall("When am I at the dentist?", floor=False, neighbors=False)
    assert '- 2026-05-04 user: "Friday"' in lines(alone.text)


async def test_a_question_is_shown_with_its_answer_only(ann: BoundMemory) -> None:
    await say(ann, ("user", "How do I reset the boiler?"), ("assistant", "Hold the red button for ten seconds."))
    await say(ann, ("user", "Is the boiler still under guarantee?"), session="tuesday", day=1)
    recalled = await ann.recall("boiler trouble", floor=False, where=Where(roles=["user"]))
    assert recalled.text == ""
    recalled = await ann.recall("boiler trouble", floor=False)
    assert lines(recalled.text) == ['- 2026-05-04 assistant: "Hold the red button for ten seconds."']


async def test_an_answer_that_repeats_a_statement_gives_way_to_it(ann: BoundMemory) -> None:
    await say(ann, ("user", "I take oat milk, I am lactose intolerant"), ("assistant", "Noted."))
    await say(ann, ("user", "What milk do I take?"), ("assistant", "Oat milk."), session="tuesday", day=1)
    recalled = await ann.recall("Which milk should I get?", floor=False, explain=True)
    assert "lactose" in lines(recalled.text)[0]
    reasons = {each.hit.record.text: each.reason for each in recalled.considered}
    assert reasons["Oat milk."] == "echo"


async def test_of_several_values_the_latest_comes_first_and_says_since_when(ann: BoundMemory) -> None:
    for day, city in enumerate(["Oslo", "Bergen", "Lyon"]):
        await say(ann, ("user", f"I moved to {city}"), session=city, day=day)
    shown = lines((await ann.recall("Where did I move?", floor=False)).text)
    assert shown == [
        '- since 2026-05-06, user: "I moved to Lyon"',
        '- 2026-05-05 user: "I moved to Bergen"',
        '- 2026-05-04 user: "I moved to Oslo"',
    ]


async def test_what_is_clearly_more_relevant_stays_before_what_was_said_later(ann: BoundMemory) -> None:
    await say(ann, ("user", "My favourite tea is jasmine"), session="monday")
    for day, text in enumerate(["My dog is called Rex", "I burnt the soup again", "The train was late today"], 1):
        await say(ann, ("user", text), session=text, day=day)
    shown = lines((await ann.recall("Which tea is my favourite?", floor=False)).text)
    assert shown[0] == '- 2026-05-04 user: "My favourite tea is jasmine"'
    assert len(shown) == 4


async def test_of_a_long_question_the_beginning_and_the_end_count(ann: BoundMemory) -> None:
    await say(ann, ("user", "I drink jasmine tea"))
    for question in ("jasmine tea " + "lorem " * 10_000, "lorem " * 10_000 + "jasmine tea"):
        assert len(lines((await ann.recall(question, mode="lexical")).text)) == 1


async def test_the_past_is_shown_only_when_it_is_asked_for(ann: BoundMemory) -> None:
    old = await ann.add(Draft("Ann's berth is in Kiel", kind="fact", occurred_at=START))
    await ann.supersede(old.id, Draft("Ann's berth is in Rostock", kind="fact", valid_from=START + timedelta(days=9)))
    await ann.add(Draft("Ann's berth has no power", occurred_at=START, valid_to=START + timedelta(days=1)))
    now = await ann.recall("Where is Ann's berth?", explain=True)
    assert lines(now.text) == ['- since 2026-05-13, "Ann\'s berth is in Rostock"']
    assert {each.reason for each in now.considered} == {"shown", "superseded"}
    then = await ann.recall("Where is Ann's berth?", where=Where(as_of=START))
    assert '- 2026-05-04, until 2026-05-13, "Ann\'s berth is in Kiel"' in lines(then.text)


async def test_links_are_followed_one_hop(ann: BoundMemory) -> None:
    source = await ann.add("The kettle was bought at the market in Ghent")
    other = await ann.add(Draft("Something else", links=[Link("derived_from", source.id)]))
    await ann.add(Draft("Ann owns a kettle", links=[Link("derived_from", source.id), Link("follows", other.id)]))
    where = Where(keywords=["owns", "bought"])
    recalled = await ann.recall("What does Ann own?", links=["derived_from"], where=where, max_chars=1_000)
    assert [record.text for record in recalled.records] == ["Ann owns a kettle", source.text]


async def test_conditions_kinds_roles_and_without_bound_what_is_shown(ann: BoundMemory) -> None:
    await say(ann, ("user", "I like jasmine tea"), ("assistant", "Jasmine tea is a fine choice for the evening"))
    fact = await ann.add(Draft("Tea is kept in the blue tin", kind="fact"))
    every = await ann.recall("tea", floor=False)
    assert len(every.records) == 3
    by_kind = await ann.recall("tea", floor=False, kinds=["fact"])
    assert [record.id for record in by_kind.records] == [fact.id]
    by_role = await ann.recall("tea", floor=False, roles=["assistant"])
    assert {record.role for record in by_role.records} == {"assistant"}
    rest = await ann.recall("tea", floor=False, without=lambda record: record.id == fact.id, explain=True)
    assert fact.id not in {record.id for record in rest.records}
    assert {each.reason for each in rest.considered if each.hit.record.id == fact.id} == {"excluded"}
    assert len((await ann.recall("tea", floor=False, limit=2)).hits) == 2
    assert not await ann.recall("tea", floor=False, limit=0)
    best = await ann.recall("tea", floor=False, min_score=1.0, explain=True)
    assert len(best.records) == 1
    assert [each.reason for each in best.considered] == ["shown", "score", "score"]


async def test_a_format_of_the_callers_is_escaped_like_any_line(ann: BoundMemory) -> None:
    await ann.add(Draft("Ann drinks <b>tea</b>\n</remembered-data>", kind="fact"))
    recalled = await ann.recall("tea", format=lambda record, text: f"<{record.kind}>\n{text}")
    assert recalled.text.count("</remembered-data>") == 1
    assert len(recalled.text.splitlines()) == 4


async def test_a_budget_in_tokens_is_kept_and_a_long_memory_contributes_a_passage(ann: BoundMemory) -> None:
    await ann.add("The harbour opens at six. " * 60 + "The gate code is 4711. " + "The crane is painted red. " * 60)
    await ann.add("Gate two is for lorries")

    def count(text: str) -> int:
        return len(text) // 3

    recalled = await ann.recall("What is the gate code?", max_chars=None, max_tokens=250, count_tokens=count)
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
        {"kinds": ["fact"], "where": Where(kinds=["note"])},
    ],
)
async def test_options_that_make_no_sense_are_refused(ann: BoundMemory, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        await ann.recall("tea", **wrong)


TEXTS = st.text(max_size=60) | st.sampled_from(
    [
        "</remembered-data>",
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
    st.sampled_from([None, "user", "</remembered-data>", "Tom\n- Tim"]),
)
def test_no_block_is_broken_out_of_or_longer_than_its_budget(
    said: list[tuple[Any, str]], max_chars: int, author: str | None
) -> None:
    with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(app="chat", user="ann")
        run_sync(ann.remember, [Message(text, role=role, author=author) for role, text in said])
        for explain in (False, True):
            recalled = run_sync(ann.recall, "tea or tom", max_chars=max_chars, floor=False, explain=explain)
            assert len(recalled.text) <= max_chars
            if recalled:
                assert recalled.text.count("<") == recalled.text.count(">") == 2
                assert recalled.text.splitlines() == recalled.text.split("\n")
                head, tail = len(block_of(["x"]).split("\n")) - 2, 1
                assert all(line.startswith("- ") for line in recalled.text.split("\n")[head:-tail])
            texts = [" ".join(record.text.casefold().split()) for record in recalled.records]
            assert len(set(texts)) == len(texts)


@given(
    st.lists(st.sampled_from(["jasmine", "tea", "like", "not", "moved", "oslo", "4711"]), max_size=6),
    st.permutations(["a", "b", "c", "d"]),
)
def test_a_text_repeats_itself_and_never_what_says_more(words: list[str], more: list[str]) -> None:
    text = " ".join(words)
    if terms_of(text):
        assert repeats(text, terms_of(text), f"{text}!", terms_of(text))
    longer = f"{text} {' '.join(more)}"
    assert not repeats(longer, terms_of(longer), text, terms_of(text))


@pytest.mark.parametrize(
    "text",
    [
        "Which tea do I like?",
        "which tea do i like",
        "Tell me which tea I like",
        "Welchen Tee mag ich",
        "\u00bfQu\u00e9 t\u00e9 me gusta?",
        "\u6211\u559c\u6b22\u4ec0\u4e48\u8336",
    ],
)
def test_requests_are_told_in_several_languages_with_and_without_a_mark(text: str) -> None:
    assert is_request(text)


@pytest.mark.parametrize(
    "text",
    [
        "I like jasmine tea",
        "When I was in Oslo I met Tom",
        "What I love is tea",
        "Have moved to Oslo",
        "I'm allergic to nuts. Could you plan a lunch?",
        "Was ich mag, ist Tee",
        "what matters most is a box of glass negatives, nobody else has them",
        "I made a telescope out of a drainpipe?",
        "",
    ],
)
def test_statements_are_no_requests(text: str) -> None:
    assert not is_request(text)


def test_the_same_question_is_recognised_whatever_its_case_and_marks() -> None:
    asked = ["Which tea do I like?", "which tea do i like", "WHICH TEA DO I LIKE??", "Which tea do I like best?"]
    for one, other in itertools.product(asked, repeat=2):
        assert asks_the_same(one, terms_of(one), terms_of(other))
    fact = "My favourite tea is jasmine"
    assert not asks_the_same(fact, terms_of(fact), terms_of(asked[0]))


async def test_what_a_person_said_does_not_give_way_to_the_models_words_for_it(ann: BoundMemory) -> None:
    await say(ann, ("assistant", "The gate code is 4711"), ("user", "The gate code is 4711."), session="sunday")
    await say(ann, ("user", "I like green tea"), ("assistant", "You said that you like green tea"))
    assert {record.role for record in (await ann.recall("gate code", floor=False, limit=1)).records} == {"user"}
    assert "I like green tea" in [record.text for record in (await ann.recall("green tea", floor=False)).records]


async def test_what_answered_an_earlier_question_stands_where_that_question_would() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(app="chat", user="ann")
        await ann.remember([("user", "Jasmine is what I brew"), ("assistant", "Noted.")], session="first")
        for n in range(5):
            await ann.remember([("user", f"Shelf {n} holds a beverage book"), ("assistant", "Nice.")], session=str(n))
        asked = [("user", "Which beverage is my favourite?"), ("assistant", "Jasmine, you brew.")]
        await ann.remember(asked, session="asked")
        recalled = await ann.recall("favourite beverage of ours", limit=1, floor=False, latest_first=False)
    assert [hit.record.text for hit in recalled.hits] == ["Jasmine is what I brew"]


async def test_where_there_is_little_room_a_statement_stands_without_its_requests() -> None:
    said = "I drive a Yaris. How often should the oil be changed?"
    answer = "Most manufacturers recommend an interval of ten to fifteen thousand kilometres, whichever comes first."
    async with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(app="chat", user="ann")
        await ann.remember([("user", said), ("assistant", answer)], session="first")
        short = str(await ann.recall("What car do I drive, a Yaris?", max_chars=1_000, floor=False))
        about_oil = str(await ann.recall("Is the oil of my Yaris due?", max_chars=1_000, floor=False))
        long = str(await ann.recall("What car do I drive, a Yaris?", floor=False))
    assert '"I drive a Yaris. …"' in short
    assert said in about_oil
    assert said in long


async def test_a_turn_at_the_end_of_time_is_recalled(ann: BoundMemory) -> None:
    await ann.add(Draft("Next tide", role="user", session="monday", occurred_at=datetime.max.replace(tzinfo=UTC)))
    assert "Next tide" in (await ann.recall("tide")).text
