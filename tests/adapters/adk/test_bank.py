"""The tools of an ADK agent reach the bank of their session."""

from __future__ import annotations

from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from memory_adk import BankPlugin
from memory_adk.testing import ScriptedLlm, ask
from tests.adapters.adk.agents import ANN, runner_of


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
