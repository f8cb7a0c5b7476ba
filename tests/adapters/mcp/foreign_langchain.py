"""A LangChain agent that has the memory through langchain-mcp-adapters, which needs another `mcp` than the server.

Run by `make test-mcp-clients`, in an environment of its own: python foreign_langchain.py SERVER_PYTHON FILE
"""

from __future__ import annotations

import asyncio
import os
import sys

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_mcp_adapters.client import MultiServerMCPClient

from memory_langchain.testing import ScriptedChatModel


async def main(server_python: str, db: str) -> None:
    """Let the agent store something, search for it, and make a mistake."""
    client = MultiServerMCPClient(
        {
            "memory": {
                "transport": "stdio",
                "command": server_python,
                "args": ["-m", "memory_mcp", "--file", db, "--user", "ann"],
                "env": {"PYTHONPATH": os.environ["PYTHONPATH"], "PATH": os.environ["PATH"]},
            }
        }
    )
    calls = [
        ("memory_store", {"content": "Ann is allergic to peanuts", "metadata": {"type": "fact", "user": "ann"}}),
        ("memory_search", {"query": "What must Ann not eat?", "filter": {"user": "ann", "minImportance": 0.5}}),
        ("memory_search", {"query": "What must Ann not eat?", "nResults": 51}),
    ]
    script = [
        AIMessage("", tool_calls=[{"type": "tool_call", "id": str(n), "name": name, "args": arguments}])
        for n, (name, arguments) in enumerate(calls)
    ]
    agent = create_agent(ScriptedChatModel(script=[*script, "No peanuts."]), await client.get_tools())
    state = await agent.ainvoke({"messages": [HumanMessage("What must I not eat?")]})
    stored, found, refused = [str(m.content) for m in state["messages"] if isinstance(m, ToolMessage)]
    assert "Stored memory with ID: mem_" in stored, stored
    assert "Ann is allergic to peanuts" in found, found
    assert "nResults: Input should be less than or equal to 50" in refused, refused
    print("LangChain's agent stored, found, and read what it did wrong")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
