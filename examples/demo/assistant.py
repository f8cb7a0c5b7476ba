"""A desktop assistant that knows only MCP: `python -m demo.assistant FILE QUESTION...`

It starts its server as a separate process, as the configuration of such an assistant says.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from demo import transcript


async def main(path: str, questions: list[str]) -> None:
    arguments = ["-m", "memory_mcp", "--file", path, "--app", "demo", "--user", "ann", "--collection", "*"]
    async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:
        for question in questions:
            transcript.line("Ann", question, color="magenta")
            query = {"query": question, "ranking": "relevance", "nResults": 1}
            found = await client.call_tool("memory_search", query)
            answer: dict[str, Any] = found.structured_content or {}
            for result in answer["results"]:
                transcript.line("assistant", f"You once said: {result['content']}.", color="cyan")
                transcript.note(f"memory_search, distance {result['distance']:.2f}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
