"""A Xaibo agent, defined in YAML, finds what agents of other frameworks stored, and stores a fact for them.

Run: python examples/xaibo_agent.py
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from xaibo import AgentConfig, Xaibo
from xaibo.core.models.llm import LLMFunctionCall, LLMMessage, LLMOptions, LLMResponse
from xaibo.core.protocols.llm import LLMProtocol

from memory_core import Memory

AGENT = """
id: secretary
modules:
  - module: memory_xaibo.CoreMemory
    id: memory
    scope: agent
    config: {path: DB, user: ann, ranking: relevance}
  - {module: xaibo.primitives.modules.memory.MemoryToolProvider, id: tools}
  - {module: xaibo.primitives.modules.conversation.SimpleConversation, id: history}
  - {module: xaibo.primitives.modules.orchestrator.SimpleToolOrchestrator, id: orchestrator}
  - {module: __main__.ScriptedModel, id: llm}
"""


class ScriptedModel(LLMProtocol):
    """A scripted model: it searches for questions, stores everything else, and repeats the tool's answer."""

    async def generate(self, messages: list[LLMMessage], options: LLMOptions | None = None) -> LLMResponse:  # noqa: ARG002
        """Call a tool, then repeat its answer."""
        if results := messages[-1].tool_results:
            found: Any = json.loads(results[0].content)
            is_stored = "memory_id" in found
            return LLMResponse(content="Noted." if is_stored else str(found[0]["content"]))
        said = messages[-1].content[0].text or ""
        name, argument = ("search_memory", "query") if said.endswith("?") else ("store_memory", "text")
        call = LLMFunctionCall(id="1", name=name, arguments={argument: said})
        return LLMResponse(content="", tool_calls=[call])

    def __init__(self, config: dict[str, object] | None = None):
        """Xaibo gives every module its `config`."""


async def main() -> None:
    """Ask the agent for another agent's memory, give it a new fact, and find that fact outside Xaibo."""
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

            for hit in await ann.search("When does the passport run out?"):
                print(f"elsewhere: {hit.record.text}")


if __name__ == "__main__":
    asyncio.run(main())
