"""A function as a language model: it is given up in time, and an unreadable answer is asked for again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory_core import BoundMemory, Draft, InvalidInputError, MaintainPolicy, Memory, Where
from memory_core.errors import ModelTimeoutError
from memory_core.lifecycle import (
    ExtractiveSummarizer,
    LanguageModel,
    Maintenance,
    Manager,
    PatternReflector,
    maintain,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
FACT = "add T1 fact: Ann broke her hand"


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


async def test_an_unreadable_answer_about_patterns_is_asked_for_again(
    ann: BoundMemory, caplog: pytest.LogCaptureFixture
) -> None:
    await talk(ann, sessions=2, turns=10)
    assert (await maintain(ann, reflector=LanguageModel(lambda _: "Ann sails a lot"))).steps == ()
    assert "UnreadableAnswerError" in caplog.text
    await maintain(ann, reflector=LanguageModel(lambda _: "1, 2: Ann sails a lot"))
    assert len((await ann.list(where=Where(kinds=["insight"]))).records) == 1


async def test_sessions_are_summarised_once_whichever_records_the_policy_names(ann: BoundMemory) -> None:
    for n in range(10):
        at = NOW - timedelta(days=9, minutes=-n)
        await ann.add(Draft(f"Boat {n} sails", kind="message", role="user", session="s", occurred_at=at))
    policy = MaintainPolicy(where=Where(kinds=["message"]), alike="keep")
    assert len((await maintain(ann, policy, summarizer=LanguageModel(Answers("Boats sail")))).steps) == 1
    assert await maintain(ann, policy, summarizer=LanguageModel(Answers())) == Maintenance()


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
        await maintain(ann, model=Manager(LanguageModel(ask, name="slow", timeout=0.05), attempts=1))
    assert isinstance(raised.value, TimeoutError)
    assert await facts(ann) == []
    await maintain(ann, model=LanguageModel(lambda _: FACT))
    assert len(await facts(ann)) == 1


async def test_the_time_out_of_a_client_stays_its_own_error(ann: BoundMemory) -> None:
    await talk(ann, sessions=1)
    with pytest.raises(TimeoutError, match="rate limit") as raised:
        await maintain(ann, model=Manager(LanguageModel(Answers(TimeoutError("rate limit"))), attempts=1))
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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert (done.stdout, done.stderr) == ("given up\n", "")


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "60"])
def test_a_time_out_that_is_none_is_refused(timeout: Any) -> None:
    with pytest.raises(InvalidInputError, match="timeout must be a number of seconds above 0, such as 5, not"):
        LanguageModel(lambda _: FACT, timeout=timeout)


def test_what_cannot_answer_is_no_model() -> None:
    wrong: Any = "gpt"
    with pytest.raises(InvalidInputError, match="ask must be a function that answers a prompt with a text, not 'gpt'"):
        LanguageModel(wrong)
    with pytest.raises(InvalidInputError, match="name must not be empty"):
        LanguageModel(lambda _: FACT, name=" ")


@pytest.mark.parametrize("wrong", [3, sleeps, PatternReflector, object()])
@pytest.mark.parametrize("part", ["model", "summarizer", "reflector"])
async def test_what_cannot_help_is_refused_before_anything_is_done(ann: BoundMemory, part: str, wrong: Any) -> None:
    await talk(ann, sessions=1)
    with pytest.raises(InvalidInputError, match=f"{part} must be (None or )?an object with `async def "):
        await maintain(ann, **{part: wrong})


@pytest.mark.parametrize("size", [0, -5, 1.5, True, "long"])
def test_a_summary_without_room_is_refused(size: Any) -> None:
    with pytest.raises(InvalidInputError, match="max_chars must be a whole number from 1"):
        ExtractiveSummarizer(size)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [".", "?", " .", "\u3002", "x", "\n", " "])
async def test_a_summary_takes_time_in_proportion_to_a_text(unit: str) -> None:
    text = f"Ann sails to the harbour of Riga. {unit * (1_000_000 // len(unit))}x"
    assert (await ExtractiveSummarizer(300).summarize([text])).startswith("Ann sails to the harbour of Riga")


@pytest.mark.parametrize("unit", ["\n", " \n", " ", "9", "9, ", "9:"])
async def test_an_answer_of_any_form_about_patterns_costs_no_more_than_itself(ann: BoundMemory, unit: str) -> None:
    record = await ann.add("Ann sails in June")
    model = LanguageModel(lambda prompt: f"{unit * 300_000}: x\n1: Ann sails in summer")
    assert [insight.text for insight in await model.reflect([record])] == ["Ann sails in summer"]
