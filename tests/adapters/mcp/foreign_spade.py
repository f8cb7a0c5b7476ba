"""A SPADE agent that has the memory as an MCP server of spade_llm, which needs another `mcp` than the server.

Run by `make test-mcp-clients`, in an environment of its own: python foreign_spade.py SERVER_PYTHON FILE
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from spade_llm.agent import LLMAgent
from spade_llm.mcp import StreamableHttpServerConfig

from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from memory_spade.testing.xmpp import xmpp_server


def obey(request: Request) -> str | ToolCall:
    """Use the tool that a message names, and answer what it answers."""
    if request.results:
        return request.results[-1]
    tool, arguments = json.loads(request.said)
    return ToolCall(tool, arguments)


@contextmanager
def memory_server(server_python: str, db: str) -> Iterator[str]:
    """A server process; its address."""
    command = [server_python, "-m", "memory_mcp", "--file", db, "--user", "ann", "--http", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().removeprefix("memory-mcp: ").strip()
        finally:
            process.terminate()


async def main(url: str) -> None:
    """Let the agent store something and search for it, over XMPP."""
    memory = StreamableHttpServerConfig(name="memory", url=url, cache_tools=True)
    async with xmpp_server() as server:
        agent = LLMAgent(server.jid("bot"), "secret", ScriptedProvider(obey), mcp_servers=[memory])
        ann = Peer(server.jid("ann"))
        for one in (agent, ann):
            await server.start(one)

        async def use(tool: str, **arguments: object) -> str:
            name = next(tool_.name for tool_ in agent.tools if tool_.name.endswith(tool))
            answer = await ann.ask(server.jid("bot"), json.dumps([name, arguments]), thread="t", seconds=60)
            return str(answer.body)

        fact = {"content": "Ann is allergic to peanuts", "metadata": {"type": "fact", "user": "ann"}}
        stored, found = await use("memory_store", **fact), await use("memory_search", query="What must Ann not eat?")
        for one in (ann, agent):
            await server.stop(one)
    assert "Stored memory with ID: mem_" in stored, stored
    assert "Ann is allergic to peanuts" in found, found
    print("SPADE's agent stored and found")


if __name__ == "__main__":
    with memory_server(*sys.argv[1:]) as address:
        asyncio.run(main(address))
