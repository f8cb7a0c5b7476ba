"""A SPADE agent learns facts over XMPP, is stopped, and still knows them after a restart.

The XMPP server is SPADE's own, in a separate process; the language model is scripted, so no key is needed.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from memory_spade import MemoryLLMAgent
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from memory_spade.testing.xmpp import XmppServer, xmpp_server


def script(request: Request) -> str | ToolCall:
    """Act like a model: store facts, and answer questions from the memories in the prompt."""
    if request.results:
        return request.results[-1]
    if request.said.endswith("?"):
        remembered = [line[2:] for line in request.system.splitlines() if line.startswith("- ")]
        return remembered[0] if remembered else "I do not know."
    return ToolCall("store_memory", {"content": request.said, "category": "preference"})


async def one_day(server: XmppServer, file: Path, ann: Peer, *messages: str) -> None:
    """Start a new agent on the memory file, talk to it, stop it."""
    bot = MemoryLLMAgent(server.jid("bot"), "secret", ScriptedProvider(script), memory=file)
    await server.start(bot)
    for message in messages:
        answer = await ann.ask(server.jid("bot"), message)
        print(f"  Ann: {message}\n  Bot: {answer.body}")
    await server.stop(bot)


async def main() -> None:
    """Talk to the agent on two days."""
    with tempfile.TemporaryDirectory() as folder:
        async with xmpp_server() as server:
            ann = Peer(server.jid("ann"))
            await server.start(ann)
            print("Monday")
            await one_day(server, Path(folder, "bot.db"), ann, "I like JSON better than XML", "I work from Lisbon")
            print("Tuesday, after a restart")
            await one_day(server, Path(folder, "bot.db"), ann, "Should the report be JSON or XML?")


if __name__ == "__main__":
    asyncio.run(main())
