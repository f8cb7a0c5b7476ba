"""An ADK agent that has the memory as an MCP toolset, as the page shows it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from calling import ENVIRONMENT, http_server
from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool.mcp_session_manager import (
    SseConnectionParams,
    StdioConnectionParams,
    StreamableHTTPConnectionParams,
)
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from mcp import StdioServerParameters

from memory_adk.testing import ScriptedLlm, user_says
from memory_core import Memory

pytestmark = pytest.mark.process

Connection = StdioConnectionParams | SseConnectionParams | StreamableHTTPConnectionParams


async def answers(connection: Connection) -> list[str]:
    """The answers of the tools to an agent that stores something and searches for it."""
    script = [
        ("memory_store", {"content": "Ann is allergic to peanuts", "metadata": {"type": "fact", "user": "ann"}}),
        ("memory_search", {"query": "What must Ann not eat?", "filter": {"user": "ann"}}),
        "No peanuts.",
    ]
    toolset = McpToolset(connection_params=connection)
    agent = LlmAgent(name="helper", model=ScriptedLlm(script=script), tools=[toolset])
    async with InMemoryRunner(agent=agent, app_name="helper") as runner:
        runner.auto_create_session = True
        said = user_says("What must Ann not eat?")
        events = [event async for event in runner.run_async(user_id="ann", session_id="s", new_message=said)]
    await toolset.close()
    return [str(response.response) for event in events for response in event.get_function_responses()]


async def test_an_adk_agent_stores_and_searches_over_stdio(tmp_path: Path) -> None:
    arguments = ["-m", "memory_mcp", "--file", str(tmp_path / "memory.db"), "--user", "ann"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=ENVIRONMENT)
    stored, found = await answers(StdioConnectionParams(server_params=server, timeout=300))
    assert "Stored memory with ID: mem_" in stored
    assert "Ann is allergic to peanuts" in found
    async with Memory(tmp_path / "memory.db") as memory:
        assert (await memory.bind(user="ann").list()).records[0].text == "Ann is allergic to peanuts"


async def test_an_adk_agent_stores_and_searches_over_http(tmp_path: Path) -> None:
    async with http_server(tmp_path / "memory.db", "--user", "ann") as url:
        stored, found = await answers(StreamableHTTPConnectionParams(url=url, timeout=300))
    assert "Stored memory with ID: mem_" in stored
    assert "Ann is allergic to peanuts" in found
