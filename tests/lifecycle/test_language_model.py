"""A user's language model: no answer that was paid for is lost, and an unreadable one costs no turn its reading."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory_core import BoundMemory, Draft, InvalidInputError, MaintainPolicy, Memory, MemoryRecord, Where
from memory_core.errors import ModelTimeoutError, UnreadableAnswerError
from memory_core.lifecycle import (
    Extracted,
    ExtractiveSummarizer,
    LanguageModel,
    Maintenance,
    PatternExtractor,
    maintain,
)
from memory_core.lifecycle.language_model import MAX_ANSWERED

NOW = datetime(2026, 6, 1, tzinfo=UTC)
FACT = "1 fact: Ann broke her hand"
UNREADABLE = [
    '[{"turn": 1, "kind": "fact", "text": "Ann broke her hand"}]',
    "```json\n{}\n```",
    "I am sorry, but I cannot help with that.",
    "",
    "fact: Ann broke her hand",
    "99 fact: Ann owns the bank",
]


@pytest.fixture
def ann() -> BoundMemory:
    return Memory(":memory:", embedder=None, clock=lambda: NOW).bind(user="ann")


async def talk(ann: BoundMemory, sessions: int = 4, turns: int = 1) -> None:
    """Sessions with a question of the assistant and its answer."""
    for session in range(sessions):
        said = [("user", f"I broke my hand {session}"), ("assistant", "Oh no. Which hand?"), ("user", "right")]
        await ann.remember([*said, *(("user", f"Boat {n} sails") for n in range(turns - 1))], session=f"s{session}")


async def facts(ann: BoundMemory) -> list[str]:
    return [record.text for record in (await ann.list(where=Where(kinds=["fact"]), limit=1_000)).records]


class Answers:
    """Answers one prompt after the other; an exception is raised."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_a_failing_call_loses_no_answer_that_came_before_it(ann: BoundMemory) -> None:
    await talk(ann)
    ask = Answers(FACT, FACT, ConnectionError("rate limit"))
    with pytest.raises(ConnectionError):
        await maintain(ann, extractor=LanguageModel(ask))
    assert len(await facts(ann)) == 2
    rest = Answers(FACT, FACT)
    await maintain(ann, MaintainPolicy(duplicates="keep"), extractor=LanguageModel(rest))
    assert len(rest.prompts) == 2
    assert len(await facts(ann)) == 4


async def test_an_answer_is_on_disk_before_the_model_is_asked_again(ann: BoundMemory) -> None:
    await talk(ann)
    stored: list[int] = []

    async def ask(prompt: str) -> str:
        stored.append(len(await facts(ann)))
        return FACT

    await maintain(ann, extractor=LanguageModel(ask))
    assert stored == [0, 1, 2, 3]


async def test_a_failing_reflector_loses_neither_facts_nor_summaries(ann: BoundMemory) -> None:
    await talk(ann, sessions=2, turns=10)
    model = LanguageModel(Answers(FACT, FACT, ConnectionError()))
    with pytest.raises(ConnectionError):
        await maintain(ann, extractor=model, reflector=model, summarizer=None)
    assert len(await facts(ann)) == 2


@pytest.mark.parametrize("answer", UNREADABLE)
async def test_an_unreadable_answer_leaves_its_turns_unread_and_says_so(
    ann: BoundMemory, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    await talk(ann, sessions=2)
    with caplog.at_level(logging.WARNING):
        await maintain(ann, extractor=LanguageModel(Answers(answer, FACT)))
    assert len(await facts(ann)) == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "UnreadableAnswerError" in caplog.text
    assert not any(said in caplog.text for said in ("hand", "bank", "sorry"))
    again = Answers("1 fact: Ann broke her left hand")
    await maintain(ann, extractor=LanguageModel(again))
    assert len(again.prompts) == 1
    assert len(await facts(ann)) == 2


@pytest.mark.parametrize("answer", ["none", "None.", "`none`", "There is nothing:\nnone\n", f"Sure!\n{FACT}\nDone."])
async def test_an_answer_that_finds_nothing_or_says_more_is_read(ann: BoundMemory, answer: str) -> None:
    await talk(ann, sessions=1)
    await maintain(ann, extractor=LanguageModel(lambda _: answer))
    assert await maintain(ann, extractor=LanguageModel(Answers())) == Maintenance()
    assert len(await facts(ann)) == ("fact" in answer)


async def test_an_unreadable_answer_about_patterns_is_asked_for_again(
    ann: BoundMemory, caplog: pytest.LogCaptureFixture
) -> None:
    await talk(ann, sessions=2, turns=10)
    assert (await maintain(ann, reflector=LanguageModel(lambda _: "Ann sails a lot"))).steps == ()
    assert "UnreadableAnswerError" in caplog.text
    await maintain(ann, reflector=LanguageModel(lambda _: "1, 2: Ann sails a lot"))
    assert len((await ann.list(where=Where(kinds=["insight"]))).records) == 1


async def test_an_extractor_of_your_own_can_leave_turns_unread(ann: BoundMemory) -> None:
    class Own:
        name = "own"
        calls = 0

        async def extract(self, turns: Sequence[MemoryRecord]) -> list[Extracted]:
            self.calls += 1
            raise UnreadableAnswerError("not JSON")

    await talk(ann, sessions=2)
    own = Own()
    for _ in range(2):
        assert (await maintain(ann, extractor=own)).steps == ()
    assert own.calls == 4


async def test_the_model_sees_the_question_that_a_turn_answers_and_nothing_else_of_the_assistant(
    ann: BoundMemory,
) -> None:
    ask = Answers("none")
    await talk(ann, sessions=1)
    await maintain(ann, extractor=LanguageModel(ask))
    assert "2. user, asked 'Which hand?': right" in ask.prompts[0]
    assert "Oh no" not in ask.prompts[0]


async def test_turns_are_read_once_whichever_records_the_policy_names(ann: BoundMemory) -> None:
    await talk(ann, sessions=2, turns=10)
    policy = MaintainPolicy(where=Where(kinds=["message"]))
    model = LanguageModel(Answers(FACT, FACT, "1, 2: Ann sails"))
    assert (await maintain(ann, policy, extractor=model, reflector=model)).steps
    silent = LanguageModel(Answers())
    assert await maintain(ann, policy, extractor=silent, reflector=silent) == Maintenance()


async def test_sessions_are_summarised_once_whichever_records_the_policy_names(ann: BoundMemory) -> None:
    for n in range(10):
        at = NOW - timedelta(days=9, minutes=-n)
        await ann.add(Draft(f"Boat {n} sails", kind="message", role="user", session="s", occurred_at=at))
    policy = MaintainPolicy(where=Where(kinds=["message"]), alike="keep")
    assert len((await maintain(ann, policy, summarizer=LanguageModel(Answers("Boats sail")))).steps) == 1
    assert await maintain(ann, policy, summarizer=LanguageModel(Answers())) == Maintenance()


async def test_of_an_endless_answer_the_first_facts_are_stored(
    ann: BoundMemory, caplog: pytest.LogCaptureFixture
) -> None:
    await talk(ann, sessions=1)
    await maintain(ann, extractor=LanguageModel(lambda _: "\n".join(f"1 fact: Boat {n}" for n in range(5_000))))
    found = (await ann.list(where=Where(kinds=["fact"]), limit=10_000)).records
    assert len(found) == MAX_ANSWERED == 200
    assert "5000 results was cut to 200" in caplog.text


async def test_a_fact_that_cannot_be_stored_as_it_is_costs_no_other(ann: BoundMemory) -> None:
    await talk(ann, sessions=1)
    await maintain(ann, extractor=LanguageModel(lambda _: f"1 fact: tea \ud800\0 leaf\n{FACT}"))
    assert sorted(await facts(ann)) == ["Ann broke her hand", "tea leaf"]


async def never(_prompt: str) -> str:
    await asyncio.Event().wait()
    return FACT


def sleeps(_prompt: str) -> str:
    threading.Event().wait()
    return FACT


@pytest.mark.parametrize("ask", [never, sleeps])
async def test_a_model_that_never_answers_is_given_up(ann: BoundMemory, ask: Any) -> None:
    await talk(ann, sessions=1)
    with pytest.raises(ModelTimeoutError, match=r"'slow' has not answered for 0\.05 s; .*timeout=") as raised:
        await maintain(ann, extractor=LanguageModel(ask, name="slow", timeout=0.05))
    assert isinstance(raised.value, TimeoutError)
    assert await facts(ann) == []
    await maintain(ann, extractor=LanguageModel(lambda _: FACT, name="slow"))
    assert len(await facts(ann)) == 1


async def test_the_time_out_of_a_client_stays_its_own_error(ann: BoundMemory) -> None:
    await talk(ann, sessions=1)
    with pytest.raises(TimeoutError, match="rate limit") as raised:
        await maintain(ann, extractor=LanguageModel(Answers(TimeoutError("rate limit"))))
    assert not isinstance(raised.value, ModelTimeoutError)


@pytest.mark.process
def test_a_model_that_never_answers_does_not_keep_the_program_from_ending() -> None:
    program = """
import asyncio, threading
from memory_core.errors import ModelTimeoutError
from memory_core.lifecycle import LanguageModel
try:
    asyncio.run(LanguageModel(lambda prompt: threading.Event().wait(), timeout=0.05).summarize(["tea"]))
except ModelTimeoutError:
    print("given up")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("given up\n", "")


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "60"])
def test_a_time_out_that_is_none_is_refused(timeout: Any) -> None:
    with pytest.raises(InvalidInputError, match="timeout must be a number of seconds above 0, or None, not"):
        LanguageModel(lambda _: FACT, timeout=timeout)


def test_what_cannot_answer_is_no_model() -> None:
    wrong: Any = "gpt"
    with pytest.raises(InvalidInputError, match="ask must be a function that answers a prompt with a text, not 'gpt'"):
        LanguageModel(wrong)
    with pytest.raises(InvalidInputError, match="name must not be empty"):
        LanguageModel(lambda _: FACT, name=" ")


@pytest.mark.parametrize("wrong", [3, sleeps, PatternExtractor, object()])
@pytest.mark.parametrize("part", ["extractor", "summarizer", "reflector"])
async def test_what_cannot_help_is_refused_before_anything_is_done(ann: BoundMemory, part: str, wrong: Any) -> None:
    await talk(ann, sessions=1)
    with pytest.raises(InvalidInputError, match=f"{part} must be None or an object with `async def "):
        await maintain(ann, **{part: wrong})


@pytest.mark.parametrize("size", [0, -5, 1.5, True, "long"])
def test_a_summary_without_room_is_refused(size: Any) -> None:
    with pytest.raises(InvalidInputError, match="max_chars must be a whole number from 1"):
        ExtractiveSummarizer(size)
