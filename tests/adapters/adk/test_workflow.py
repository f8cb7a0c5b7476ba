"""ADK's workflows add events to the session for a moment; nothing that is said in them is lost."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.workflow import Workflow

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask
from memory_core import Memory
from tests.adapters.adk.agents import ANN, APP


def says(name: str) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(script=[f"{name} says {n}" for n in (1, 2)]))


def shouted(node_input: str) -> str:
    return f"{node_input}!"


@pytest.mark.parametrize(
    ("nodes", "agents"),
    [
        ((says("a"),), "a"),
        ((says("a"), says("b"), says("c")), "abc"),
        ((says("a"), shouted, says("b")), "ab"),
    ],
)
async def test_every_answer_in_a_workflow_is_stored_once(
    service: MemoryService, memory: Memory, nodes: tuple[Any, ...], agents: str
) -> None:
    flow = Workflow(name="flow", edges=[("START", *nodes)])
    runner = Runner(
        app=App(name=APP, root_agent=flow, plugins=[MemoryPlugin(recall=False)]),
        session_service=InMemorySessionService(),
        memory_service=service,
        auto_create_session=True,
    )
    async with runner:
        for n in (1, 2):
            await ask(runner, f"question {n}", user_id=ANN, session_id="s")
    stored = (await memory.bind(app=APP, user=ANN).list(order="oldest")).records
    expected = [text for n in (1, 2) for text in (f"question {n}", *(f"{name} says {n}" for name in agents))]
    assert [record.text for record in stored] == expected
