"""A Xaibo agent defined in YAML: `python -m demo.secretary FILE QUESTION...`"""

from __future__ import annotations

import asyncio
import json
import sys

from xaibo import AgentConfig, Xaibo
from xaibo.core.models.llm import LLMFunctionCall, LLMMessage, LLMOptions, LLMResponse
from xaibo.core.protocols.llm import LLMProtocol

from demo import transcript

AGENT = """
id: secretary
modules:
  - module: memory_xaibo.CoreMemory
    id: memory
    config: {path: DB, app: demo, user: ann, ranking: relevance}
  - {module: xaibo.primitives.modules.memory.MemoryToolProvider, id: tools}
  - {module: xaibo.primitives.modules.conversation.SimpleConversation, id: history}
  - {module: xaibo.primitives.modules.orchestrator.SimpleToolOrchestrator, id: orchestrator}
  - {module: demo.secretary.ScriptedModel, id: llm}
"""


class ScriptedModel(LLMProtocol):
    """A scripted model: it searches the memory for the question and repeats the best hit."""

    async def generate(self, messages: list[LLMMessage], options: LLMOptions | None = None) -> LLMResponse:  # noqa: ARG002
        """Call `search_memory`, then answer with its result."""
        if results := messages[-1].tool_results:
            (found, *_) = json.loads(results[0].content) or [{"content": "nothing", "similarity_score": 0}]
            transcript.note(f"search_memory, similarity {found['similarity_score']:.2f}")
            return LLMResponse(content=f"You once said: {found['content']}.")
        arguments = {"query": messages[-1].content[0].text, "k": 1}
        return LLMResponse(content="", tool_calls=[LLMFunctionCall(id="1", name="search_memory", arguments=arguments)])

    def __init__(self, config: dict[str, object] | None = None):
        """Xaibo gives every module its `config`."""


async def main(path: str, questions: list[str]) -> None:
    """Ask the agent."""
    xaibo = Xaibo()
    xaibo.register_agent(AgentConfig.from_yaml(AGENT.replace("DB", path)))
    for question in questions:
        transcript.line("Ann", question, color="magenta")
        answer = await xaibo.get_agent("secretary").handle_text(question)
        transcript.line("secretary", str(answer.text), color="red")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
