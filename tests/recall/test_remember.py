from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import PULLED, BoundMemory, InvalidInputError, Memory, Message, Scope, ToolCall, Where, run_sync

REPLIES = ("Noted.", "You're welcome!")
SAID = [
    ("user", "I moved to Porto"),
    ("assistant", "Noted."),
    ("user", "My dog is called Rex"),
    ("assistant", "Noted."),
    ("user", "Thanks"),
    ("assistant", "You're welcome!"),
]
IN_ANOTHER_PROCESS = """
import json, sys
from memory_core import Memory, run_sync

with Memory(sys.argv[1], embedder=None) as memory:
    handle = memory.bind(app="chat", user="ann")
    sys.stdin.readline()
    for part in json.loads(sys.argv[2]):
        run_sync(handle.remember, [tuple(message) for message in part], session="monday")
"""


@pytest.fixture
async def ann() -> AsyncIterator[BoundMemory]:
    async with Memory(":memory:", embedder=None) as memory:
        yield memory.bind(app="chat", user="ann")


async def stored(ann: BoundMemory, session: str = "monday") -> list[tuple[str | None, str]]:
    page = await ann.bind(session=session).list(order="oldest", limit=1_000)
    return [(record.role, record.text) for record in page.records]


async def test_pairs_mappings_and_messages_make_the_same_records(ann: BoundMemory) -> None:
    mappings = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in SAID]
    messages = [Message(text, role=role) for role, text in SAID]  # type: ignore[arg-type]
    first = await ann.remember(SAID, session="monday")
    for again in (mappings, messages, SAID):
        assert [record.id for record in await ann.remember(again, session="monday")] == [r.id for r in first]
    assert await stored(ann) == SAID
    assert [(record.kind, record.session) for record in first] == [("message", "monday")] * len(SAID)


async def test_everything_that_is_known_of_a_message_is_kept(ann: BoundMemory) -> None:
    at = datetime(2026, 5, 4, 9, tzinfo=UTC)
    call = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    records = await ann.remember(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is the weather?", "name": "Ann", "id": "1", "occurred_at": at},
            {"role": "assistant", "content": "One moment.", "tool_calls": [call], "id": "2"},
            {"role": "assistant", "content": None, "tool_calls": [call], "id": "3"},
            {"role": "tool", "content": "Rain", "name": "weather", "id": "4"},
            Message("It rains.", role="assistant", id="5", tool_calls=[ToolCall("weather", {"city": "Oslo"})]),
        ],
        session="monday",
        data={"channel": "web"},
    )
    assert [(record.role, record.author, record.text) for record in records] == [
        ("user", "Ann", "What is the weather?"),
        ("assistant", None, "One moment."),
        ("tool", "weather", "Rain"),
        ("assistant", None, "It rains."),
    ]
    assert records[0].occurred_at == at
    assert records[0].data == {"channel": "web"}
    calls = [{"name": "weather", "arguments": {"city": "Oslo"}}]
    assert records[1].data == records[3].data == {"channel": "web", "tool_calls": calls}


async def test_ids_tell_equal_messages_apart_and_times_do_too(ann: BoundMemory) -> None:
    with_ids = [Message("yes", id=str(n)) for n in range(3)]
    for _ in range(2):
        await ann.remember(with_ids, session="ids")
    assert await stored(ann, "ids") == [("user", "yes")] * 3
    start = datetime(2026, 5, 4, tzinfo=UTC)
    for minute in (0, 1, 2, 1, 0):
        await ann.remember([Message("yes", occurred_at=start + timedelta(minutes=minute))], session="times")
    assert await stored(ann, "times") == [("user", "yes")] * 3


async def test_sessions_and_users_have_conversations_of_their_own(ann: BoundMemory) -> None:
    for handle in (ann, BoundMemory(ann.memory, Scope("chat", "tom"))):
        for session in ("monday", "tuesday"):
            await handle.remember(SAID[:2], session=session)
        assert (await handle.stats()).records == 4
    await ann.bind(session="monday").remember(SAID[:2])
    assert (await ann.stats()).records == 4


async def test_a_message_deleted_on_purpose_does_not_come_back(ann: BoundMemory) -> None:
    records = await ann.remember(SAID, session="monday")
    await ann.delete(records[2].id)
    left = [SAID[n] for n in (0, 1, 3, 4, 5)]
    for part in (SAID, SAID[2:], [*SAID, ("user", "Bye")]):
        await ann.remember(part, session="monday")
    assert await stored(ann) == [*left, ("user", "Bye")]


async def test_a_conversation_sent_again_with_another_ending_adds_only_the_ending(ann: BoundMemory) -> None:
    await ann.remember(SAID, session="monday")
    edited = [*SAID[:2], ("user", "My cat is called Tofu"), ("assistant", "A fine name."), ("user", "Bye")]
    for _ in range(2):
        await ann.remember(edited, session="monday")
    assert await stored(ann) == [*SAID, *edited[2:]]


async def test_a_long_conversation_is_recognised_as_a_whole_and_by_its_last_messages(ann: BoundMemory) -> None:
    said = [(("user", "assistant")[n % 2], f"message {n}" if n % 2 == 0 else "Noted.") for n in range(700)]
    for part in (said[:600], said, said[-20:], said[-41:]):
        await ann.remember(part, session="monday")
    assert await stored(ann) == said


@pytest.mark.parametrize(
    "wrong",
    [
        "I like tea",
        {"role": "user", "content": "tea"},
        [("user", "tea", "now")],
        [("nobody", "tea")],
        [{"content": "tea"}],
        [("user", 7)],
        [Message("tea", occurred_at=datetime(2026, 1, 1))],  # noqa: DTZ001
        [Message("tea", id="")],
        [("user", "fine"), None],
    ],
)
async def test_what_is_no_conversation_is_refused_and_nothing_is_stored(ann: BoundMemory, wrong: Any) -> None:
    with pytest.raises(InvalidInputError):
        await ann.remember(wrong, session="monday")
    assert (await ann.stats()).records == 0


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[tuple[str, str]], list[tuple[int, int]]]:
    """A conversation in which answers repeat, and the parts in which a client hands it over, in order.

    Parts overlap or touch and hold a message of the user each; each may be sent again later.
    """
    exchanges = draw(st.integers(1, 8))
    said = [
        message
        for n in range(exchanges)
        for message in (
            ("user", f"{draw(st.sampled_from(['I like', 'My']))} {n}"),
            ("assistant", draw(st.sampled_from(REPLIES))),
        )
    ]
    parts: list[tuple[int, int]] = []
    end = 0
    while end < len(said):
        start = draw(st.integers(0, end))
        end = draw(st.integers(max(end, start + 2), len(said))) if start + 2 <= len(said) else len(said)
        parts.append((min(start, len(said) - 2), end))
        if draw(st.booleans()):
            parts.append(draw(st.sampled_from(parts)))
    return said, parts


@given(deliveries())
def test_every_way_of_resending_stores_every_message_once(
    delivered: tuple[list[tuple[str, str]], list[tuple[int, int]]],
) -> None:
    said, parts = delivered
    with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(app="chat", user="ann")
        for start, end in parts:
            records = run_sync(ann.remember, said[start:end], session="monday")
            assert [(record.role, record.text) for record in records] == said[start:end]
        page = run_sync(ann.bind(session="monday").list, order="oldest", limit=100)
        assert [(record.role, record.text) for record in page.records] == said


def parts_of(said: Sequence[tuple[str, str]]) -> dict[str, list[list[tuple[str, str]]]]:
    said = list(said)
    return {
        "growing": [said[: n + 1] for n in range(len(said))],
        "halves": [said[: len(said) // 2], said[len(said) // 2 :]],
        "windows": [said[max(0, n - 4) : n] for n in range(2, len(said) + 1, 2)],
    }


@pytest.mark.process
@pytest.mark.parametrize(("first", "second"), [("growing", "growing"), ("halves", "windows")])
def test_two_processes_at_once_store_every_message_once(tmp_path: Path, first: str, second: str) -> None:
    said = [message for n in range(8) for message in (("user", f"I like {n}"), ("assistant", REPLIES[n % 2]))]
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None):
        pass  # makes the file
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", IN_ANOTHER_PROCESS, str(path), json.dumps(parts_of(said)[way])],
            stdin=subprocess.PIPE,
            text=True,
        )
        for way in (first, second)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    with Memory(path, embedder=None) as memory:
        page = run_sync(memory.bind(app="chat", user="ann").list, order="oldest", limit=100)
        assert [(record.role, record.text) for record in page.records] == said


@pytest.mark.parametrize("bound", ["agent", "collection"])
async def test_narrow_handles_of_one_user_remember_the_same_conversation_each(ann: BoundMemory, bound: str) -> None:
    with_ids = [Message("yes", id="1"), Message("no", id="2")]
    for conversation in (SAID, with_ids):
        for name in ("first", "second", "first"):
            narrow = ann.bind(agent=name) if bound == "agent" else ann.bind(collection=name)
            records = await narrow.remember(conversation, session=f"of {len(conversation)}")
            assert [getattr(record, bound) for record in records] == [name] * len(conversation)
    assert (await ann.stats()).records == 2 * len(SAID) + 2 * len(with_ids)


async def test_a_conversation_that_came_with_ids_is_known_without_them(ann: BoundMemory) -> None:
    with_ids = [Message(text, role=role, id=str(n)) for n, (role, text) in enumerate(SAID)]  # type: ignore[arg-type]
    ways: list[Any] = [with_ids, SAID]
    for way in (*ways, *ways):
        await ann.remember(way, session="monday")
    assert await stored(ann) == SAID


async def test_a_single_message_with_an_id_is_never_taken_for_one_without(ann: BoundMemory) -> None:
    await ann.remember([("user", "yes"), ("assistant", "ok")], session="monday")
    await ann.remember([Message("yes", id="1")], session="monday")
    assert [text for _, text in await stored(ann)] == ["yes", "ok", "yes"]


async def test_a_message_with_an_id_is_recognised_by_it_alone(ann: BoundMemory) -> None:
    at = datetime(2026, 5, 4, tzinfo=UTC)
    for identity in ("1", "2", "1"):
        await ann.remember([Message("yes", id=identity, occurred_at=at)], session="monday")
    assert await stored(ann) == [("user", "yes")] * 2


@pytest.mark.parametrize("moment", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
async def test_a_conversation_goes_on_after_a_message_at_either_end_of_time(ann: BoundMemory, moment: datetime) -> None:
    far = Message("The tide turns", role="user", id="far", occurred_at=moment)
    await ann.remember([far], session="monday")
    await ann.remember([("user", "At noon"), far, ("assistant", "Noted.")], session="monday")
    said = [record.text for record in (await ann.list(where=Where(session="monday"))).records]
    assert sorted(said) == ["At noon", "Noted.", "The tide turns"]
    recalled = await ann.recall("When does the tide turn?", PULLED)
    assert "The tide turns" in recalled.text


@pytest.mark.parametrize("results", [[], [("tool", "ok")]])
async def test_a_turn_is_stored_whole_if_its_question_was_the_first_of_its_session(
    ann: BoundMemory, results: list[tuple[str, str]]
) -> None:
    answers = ["Light is on.", "Set.", "Which room?", "Kitchen light is on."]
    questions = ["Turn on the light", "And the heating", "Turn on the light", "Turn on the light"]
    turns = [
        [("user", asked), *results, ("assistant", answer)] for asked, answer in zip(questions, answers, strict=True)
    ]
    for turn in turns:
        for _ in range(2):
            await ann.remember(turn, session="monday")
    assert await stored(ann) == [message for turn in turns for message in turn]


async def test_an_exchange_that_recurs_word_for_word_is_stored_again_if_the_message_before_it_is_passed(
    ann: BoundMemory,
) -> None:
    said = [("user", "hi"), ("assistant", "Hello!"), ("user", "How are you?"), ("assistant", "Well.")]
    await ann.remember(said, session="monday")
    await ann.remember(said[:2], session="monday")
    assert await stored(ann) == said
    await ann.remember([*said[3:], *said[:2]], session="monday")
    assert await stored(ann) == [*said, *said[:2]]


@pytest.mark.parametrize("speakers", [{"author": ("Ann", "Mallory")}, {"role": ("user", "assistant")}])
async def test_speakers_who_choose_the_same_id_keep_their_own_messages(
    ann: BoundMemory, speakers: dict[str, tuple[Any, Any]]
) -> None:
    ((field, names),) = speakers.items()
    texts = ("The spare key is with Mrs Okafor", "The spare key is with Mallory")
    messages = [Message(text, id="7", **{field: name}) for name, text in zip(names, texts, strict=True)]
    for _ in range(2):
        for message in messages:
            await ann.remember([message], session="monday")
    assert [text for _, text in await stored(ann)] == list(texts)


async def test_an_edited_message_has_its_new_text_and_keeps_the_old_one_in_its_history(ann: BoundMemory) -> None:
    for text in ("My cat is called Pepper", "My cat is called Ginger"):
        (record,) = await ann.remember([Message(text, author="Ann", id="1")], session="monday")
    assert [text for _, text in await stored(ann)] == ["My cat is called Ginger"]
    assert [version.text for version in await ann.history(record.id)] == [
        "My cat is called Pepper",
        "My cat is called Ginger",
    ]
