"""A Xaibo agent, defined in YAML, knows what agents of other frameworks stored, and remembers for them what it hears.

Run: python examples/xaibo_agent.py
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path

from xaibo import AgentConfig, Xaibo
from xaibo.core.models.llm import LLMMessage, LLMOptions, LLMResponse
from xaibo.core.protocols.llm import LLMProtocol

from memory_core import Memory

AGENT = """
id: secretary
modules:
  - {module: memory_xaibo.CoreMemory, id: memory, config: {path: DB, user: ann, session: monday}}
  - {module: memory_xaibo.MemoryLLM, id: remembering}
  - {module: memory_xaibo.MemoryConversation, id: history}
  - {module: xaibo.primitives.modules.memory.MemoryToolProvider, id: tools}
  - {module: xaibo.primitives.modules.orchestrator.SimpleToolOrchestrator, id: orchestrator}
  - {module: __main__.ScriptedModel, id: llm}
exchange:
  - {module: orchestrator, protocol: LLMProtocol, provider: remembering}
  - {module: remembering, protocol: LLMProtocol, provider: llm}
"""


class ScriptedModel(LLMProtocol):
    """A scripted model: it answers a question with the first memory of its prompt."""

    async def generate(self, messages: list[LLMMessage], options: LLMOptions | None = None) -> LLMResponse:  # noqa: ARG002
        """Read the prompt."""
        texts = [part.text or "" for message in messages for part in message.content]
        known = re.findall('^- .*"(.*)"$', texts[0], re.MULTILINE)
        return LLMResponse(content=known[0] if known and texts[-1].endswith("?") else "Noted.")

    def __init__(self, config: dict[str, object] | None = None):
        """Xaibo gives every module its `config`."""


async def main() -> None:
    """Ask the agent for another agent's memory, tell it a new fact, and find that fact outside Xaibo."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "memory.db"
        async with Memory(db) as memory:
            ann = memory.bind(user="ann")
            await ann.add("Ann's spare key is with Mrs Okafor")  # by an agent of SPADE, ADK or LangChain

            xaibo = Xaibo()
            xaibo.register_agent(AgentConfig.from_yaml(AGENT.replace("DB", str(db))))
            for said in ("Who has the spare key?", "The passport expires on 3 June 2027"):
                answer = await xaibo.get_agent("secretary").handle_text(said)
                print(f"Ann: {said}\nagent: {answer.text}")

            best = (await ann.search("When does the passport run out?"))[0]
            print(f"elsewhere: {best.record.text}")


if __name__ == "__main__":
    asyncio.run(main())
