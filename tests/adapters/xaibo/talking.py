"""Agents made of YAML whose conversations are remembered, and a model that says what it is told to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from xaibo import AgentConfig, ConfigOverrides, ExchangeConfig, Xaibo
from xaibo.core.models.llm import LLMMessage, LLMOptions, LLMResponse
from xaibo.core.models.tools import Tool, ToolResult
from xaibo.core.protocols.llm import LLMProtocol
from xaibo.core.protocols.tools import ToolProviderProtocol
from xaibo.primitives.modules.conversation.conversation import SimpleConversation

from memory_xaibo import CoreMemory

Reply = str | LLMResponse | Exception
SIMPLE = "xaibo.primitives.modules.orchestrator.SimpleToolOrchestrator"
REACT = "xaibo.primitives.modules.orchestrator.react_orchestrator.ReActOrchestrator"
HISTORY = "  - {module: memory_xaibo.MemoryConversation, id: history}\n"
AGENT = """\
id: helper
modules:
  - {{module: memory_xaibo.CoreMemory, id: memory, config: {{path: unused.db, user: nobody, session: unused}}}}
  - {{module: memory_xaibo.MemoryLLM, id: remembering, config: {config}}}
  - {{module: {orchestrator}, id: orchestrator, config: {{system_prompt: Be brief., show_reasoning: false}}}}
  - {{module: tests.adapters.xaibo.talking.Told, id: llm}}
  - {{module: tests.adapters.xaibo.talking.Clock, id: tools}}
{history}
exchange:
  - {{module: orchestrator, protocol: LLMProtocol, provider: remembering}}
  - {{module: remembering, protocol: LLMProtocol, provider: llm}}
"""


class Told(LLMProtocol):
    """A model that answers by a function of its prompt."""

    def __init__(self, answer: Callable[[Sequence[LLMMessage]], Reply] | None = None, config: Any = None):
        self._answer = answer
        self.prompts: list[list[LLMMessage]] = []

    async def generate(self, messages: list[LLMMessage], options: LLMOptions | None = None) -> LLMResponse:
        assert self._answer is not None
        self.prompts.append(list(messages))
        reply = self._answer(messages)
        if isinstance(reply, Exception):
            raise reply
        return LLMResponse(content=reply) if isinstance(reply, str) else reply

    async def generate_stream(
        self, messages: list[LLMMessage], options: LLMOptions | None = None
    ) -> AsyncIterator[str]:
        for part in (await self.generate(messages, options)).content.split(" "):
            yield part

    def shown(self, at: int = -1) -> str:
        """All that a prompt says."""
        return "\n".join(said(self.prompts[at]))


Told.__init__.__annotations__.clear()  # Xaibo would look for a module that is a function


class Clock(ToolProviderProtocol):
    """A tool."""

    def __init__(self, config: Any = None):
        pass

    async def list_tools(self) -> list[Tool]:
        return [Tool(name="clock", description="What time it is", parameters={})]

    async def execute_tool(self, tool_name: str, parameters: dict[str, Any]) -> ToolResult:
        return ToolResult(success=True, result="noon")


Clock.__init__.__annotations__.clear()


def said(messages: Sequence[LLMMessage]) -> list[str]:
    """The texts of messages."""
    return [part.text or "" for message in messages for part in message.content]


class Talk:
    """An agent, made for each message as Xaibo's servers do it, and as another process would."""

    def __init__(
        self,
        memory: CoreMemory,
        model: LLMProtocol,
        *,
        orchestrator: str = SIMPLE,
        history: str = HISTORY,
        config: str = "{}",
    ) -> None:
        yaml = AGENT.format(orchestrator=orchestrator, history=history, config=config)
        self._config = AgentConfig.from_yaml(yaml)
        self._instances = {"memory": memory, "llm": model}

    async def say(self, text: str, history: SimpleConversation | None = None) -> str:
        """The answer; with a history, as the servers supply one, of an agent that has none of its own."""
        overrides = ConfigOverrides()
        if history is not None:
            overrides.instances["__conversation_history__"] = history
            overrides.exchange.append(
                ExchangeConfig(protocol="ConversationHistoryProtocol", provider="__conversation_history__")
            )
        return str((await self.xaibo().get_agent_with("helper", overrides).handle_text(text)).text)

    def xaibo(self) -> Xaibo:
        """Xaibo with the agent."""
        xaibo = Xaibo()
        xaibo.register_agent(self._config.model_copy(deep=True))
        for name, module in self._instances.items():
            xaibo.register_server_module(name, module)
        return xaibo
