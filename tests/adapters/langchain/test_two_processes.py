"""Two processes that run one thread at once: the memory has what each has said, although the thread shows one."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core import Memory, run_sync

sqlite: Any = pytest.importorskip("langgraph.checkpoint.sqlite", reason="langgraph-checkpoint-sqlite is not installed")

PROGRAM = '''
import sys, time
from pathlib import Path
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from memory_core import Memory
from memory_langchain import MemoryMiddleware
from memory_langchain.testing import ScriptedChatModel

folder, name, question = Path(sys.argv[1]), sys.argv[2], sys.argv[3]


def clock() -> str:
    """Tell the time."""
    return "noon"


def answer(prompt):
    if prompt[-1].type == "human" and prompt[-1].text == "What time is it?":
        return AIMessage("", tool_calls=[{"name": "clock", "args": {}, "id": "call"}])
    (folder / f"{name} asks").touch()
    while not (folder / f"{name} may go on").exists():
        time.sleep(0.01)
    return f"answer of {name}"


saver = SqliteSaver.from_conn_string(str(folder / "saver.db"))
with Memory(folder / "memory.db", embedder=None) as memory, saver as checkpointer:
    agent = create_agent(
        ScriptedChatModel(script=answer),
        [clock],
        middleware=[
            HumanInTheLoopMiddleware(interrupt_on={"clock": True}),
            MemoryMiddleware(memory.bind(user="ann"), tools=()),
        ],
        checkpointer=checkpointer,
    )
    given = {"messages": [("user", question)]} if question else Command(resume={"decisions": [{"type": "approve"}]})
    agent.invoke(given, {"configurable": {"thread_id": "monday"}})
'''

ORDERS = [pytest.param(("one", "two"), marks=pytest.mark.torture), ("two", "one")]
"""The one of the two that ends first; CI sees the run that overtakes the other."""


class Runs:
    """Runs of one thread, each in a process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[str]] = {}

    def begin(self, name: str, question: str = "") -> None:
        """Ask, or approve the call of a tool; returns when the model is asked for its last answer."""
        command = [sys.executable, "-c", PROGRAM, str(self._folder), name, question]
        self._running[name] = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while not (self._folder / f"{name} asks").exists():
            assert self._running[name].poll() is None, self._running[name].communicate()[1]
            time.sleep(0.01)

    def end(self, name: str) -> None:
        (self._folder / f"{name} may go on").touch()
        _, complaints = self._running[name].communicate(timeout=300)
        assert (self._running[name].returncode, complaints) == (0, "")

    def close(self) -> None:
        for running in self._running.values():
            running.kill()
            running.communicate()

    def shown(self) -> list[str]:
        thread = {"configurable": {"thread_id": "monday"}}
        with sqlite.SqliteSaver.from_conn_string(str(self._folder / "saver.db")) as saver:
            found = saver.get_tuple(thread)
            assert found is not None
            messages = found.checkpoint["channel_values"]["messages"]
        return [message.text for message in messages if message.text and message.type != "tool"]

    def remembered(self) -> list[str]:
        with Memory(self._folder / "memory.db", embedder=None) as memory:
            return [record.text for record in run_sync(memory.bind(user="ann").list, order="oldest").records]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    runs.close()


@pytest.mark.process
@pytest.mark.parametrize("order", ORDERS)
def test_two_answers_to_one_interrupt_both_stay(runs: Runs, tmp_path: Path, order: tuple[str, str]) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path), "first", "What time is it?"], check=True, timeout=300)
    for name in ("one", "two"):
        runs.begin(name)
    for name in order:
        runs.end(name)
    assert runs.shown() == ["What time is it?", f"answer of {order[1]}"]
    assert runs.remembered() == ["What time is it?", *(f"answer of {name}" for name in order)]


@pytest.mark.process
@pytest.mark.parametrize("order", ORDERS)
def test_two_questions_at_once_and_their_answers_all_stay(runs: Runs, order: tuple[str, str]) -> None:
    runs.begin("first", "Hello!")
    runs.end("first")
    for name in ("one", "two"):
        runs.begin(name, f"question of {name}")
    for name in order:
        runs.end(name)
    assert runs.shown()[-1] == f"answer of {order[1]}"
    said = [f"{what} of {name}" for what in ("question", "answer") for name in ("one", "two")]
    assert sorted(runs.remembered()) == sorted(["Hello!", "answer of first", *said])
