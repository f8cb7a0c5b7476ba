"""An MCP client finds what agents of other frameworks stored, and stores something for them.

Run: python examples/mcp_client.py
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from memory_core import Memory


async def main() -> None:
    """Start a server as a desktop application would, and use its tools."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "memory.db"
        async with Memory(db) as memory:
            ann = memory.bind(user="ann")
            await ann.add("Ann's spare key is with Mrs Okafor")  # by an agent of SPADE, ADK or LangChain

            arguments = ["-m", "memory_mcp", "--file", str(db), "--user", "ann"]
            async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:
                found = await client.call_tool("memory_search", {"query": "Who has a key?"})
                print(found.content[0].model_dump()["text"])
                fact = {"content": "Mrs Okafor moves to Lagos in June", "metadata": {"type": "fact", "importance": 0.9}}
                await client.call_tool("memory_store", fact)

            for hit in await ann.search("Mrs Okafor"):
                print(f"{hit.record.kind}: {hit.record.text}")


if __name__ == "__main__":
    asyncio.run(main())
