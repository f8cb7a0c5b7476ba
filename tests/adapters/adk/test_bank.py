"""Each tool call of an ADK runner is a step of its session's bank, and the next request sees the last ones."""

from __future__ import annotations

import pytest
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from memory_adk import BankPlugin
from memory_adk.testing import ScriptedLlm, ask, prompt
from memory_core import Memory, MemoryBank
from tests.adapters.adk.agents import ANN, APP, runner_of
from tests.recall.blocks import has_block


def measure(tank: str) -> dict[str, str]:
    """Measure a tank."""
    if tank == "three":
        raise RuntimeError("no such tank")
    return {"pressure": f"{tank} has 900 psi"}


async def test_each_tool_call_is_a_step_and_the_next_request_shows_it(memory: Memory) -> None:
    model = ScriptedLlm(script=[("measure", {"tank": "one"}), ("measure", {"tank": "two"}), "Both have 900."])
    plugin = BankPlugin(memory.bind(app=APP))
    async with runner_of(None, model, FunctionTool(measure), plugins=[plugin]) as runner:
        await ask(runner, "Measure both", user_id=ANN, session_id="s1")
    assert not has_block(prompt(model.requests[0]))
    assert "Step 1 - measure" in prompt(model.requests[1])
    assert "two has 900 psi" in prompt(model.requests[2])
    bank = MemoryBank(memory=memory.bind(app=APP, user=ANN), task="s1")
    assert [entry.command for entry in bank.get_all_memories()] == ['{"tank": "one"}', '{"tank": "two"}']
    assert (await memory.bind(app=APP, user="bob").stats()).records == 0


async def test_a_tool_that_fails_is_remembered_as_such(memory: Memory) -> None:
    model, plugin = ScriptedLlm(script=[("measure", {"tank": "three"})]), BankPlugin(memory.bind(app=APP))
    async with runner_of(None, model, FunctionTool(measure), plugins=[plugin]) as runner:
        with pytest.raises(RuntimeError, match="no such tank"):
            await ask(runner, "Measure", user_id=ANN, session_id="s1")
    (entry,) = MemoryBank(memory=memory.bind(app=APP, user=ANN), task="s1").get_all_memories()
    assert (entry.tags, entry.result) == (["error"], "RuntimeError: no such tank")


async def test_a_tool_reaches_the_bank_of_its_session() -> None:
    plugin = BankPlugin()
    seen: list[int] = []

    async def count(tool_context: ToolContext) -> str:
        """Count the steps."""
        seen.append(len(await plugin.bank(tool_context).get_recent_entries()))
        return "counted"

    model = ScriptedLlm(script=[("count", {}), ("count", {}), "Done.", ("count", {}), "Done."])
    async with runner_of(None, model, FunctionTool(count), plugins=[plugin]) as runner:
        await ask(runner, "Count", user_id=ANN, session_id="s1")
        await ask(runner, "Count", user_id=ANN, session_id="s2")
    assert seen == [0, 1, 0]


async def test_a_closed_memory_does_not_end_the_conversation(memory: Memory) -> None:
    model, plugin = ScriptedLlm(script=[("measure", {"tank": "one"}), "900."]), BankPlugin(memory.bind(app=APP))
    await memory.close()
    async with runner_of(None, model, FunctionTool(measure), plugins=[plugin]) as runner:
        events = await ask(runner, "Measure", user_id=ANN, session_id="s1")
    assert events
