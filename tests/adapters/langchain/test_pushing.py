"""What agents and chains get into their prompts unasked: nothing, what is right, or what a follow-up is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver

from memory_core import BoundMemory, Draft, Memory, run_sync
from memory_langchain import MemoryMiddleware, with_memory
from memory_langchain.testing import ScriptedChatModel

FACTS = (
    "The router in the cellar has the password kolibri-9",
    "Ann drinks jasmine tea in the morning",
    "The boiler code is 4711",
    "Rosa is allergic to hazelnuts",
)
CONFIG: Any = {"configurable": {"thread_id": "t", "session_id": "t", "user_id": "ann"}}


@pytest.fixture
def ann() -> Iterator[BoundMemory]:
    with Memory(":memory:") as memory:  # with the default model, which knows what small talk is
        yield memory.bind(user="ann")


def agent(ann: BoundMemory, model: ScriptedChatModel) -> Callable[[str], Any]:
    made: Any = create_agent(model, middleware=[MemoryMiddleware(ann)], checkpointer=InMemorySaver())
    return lambda said: made.invoke({"messages": [("user", said)]}, CONFIG)


def chain(ann: BoundMemory, model: ScriptedChatModel) -> Callable[[str], Any]:
    made: Any = with_memory(model, ann)
    return lambda said: made.invoke(said, CONFIG)


@pytest.mark.parametrize("made", [agent, chain])
def test_a_prompt_is_silent_right_and_follows_up(ann: BoundMemory, made: Any) -> None:
    run_sync(ann.add_many, [Draft(fact) for fact in FACTS])
    model = ScriptedChatModel(script=lambda prompt: "Go on.")
    ask = made(ann, model)

    def pushed() -> str:
        first = model.prompts[-1][0]
        return first.text if first.type == "system" else ""

    ask("Good morning!")
    assert not pushed()
    ask("The router in the cellar needs a restart.")
    assert "kolibri-9" in pushed()
    assert "hazelnuts" not in pushed()
    ask("What do I need for it?")
    assert "kolibri-9" in pushed()
    ask("Thanks a lot!")
    assert not pushed()
