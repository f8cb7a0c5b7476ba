"""A scripted language model for real agents."""

from __future__ import annotations

try:
    from spade_llm.context import ContextManager
    from spade_llm.providers.base_provider import BaseLLMProvider
    from spade_llm.tools import LLMTool
except ImportError as error:
    raise ImportError(
        "`ScriptedProvider` needs spade_llm 0.3, which runs on Python 3.11 and 3.12; there: "
        "pip install 'memory-core[spade-llm]'"
    ) from error

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of the model."""

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of the model, as it would be sent over the network."""

    conversation_id: str | None
    messages: Sequence[Mapping[str, Any]]
    """The prompt in the framework's format: role, content and, after tool calls, their ids."""
    tools: Mapping[str, Mapping[str, Any]]
    """Name and JSON schema of every offered tool."""

    @property
    def system(self) -> str:
        """The text of all system messages."""
        return "\n\n".join(str(message["content"]) for message in self.messages if message["role"] == "system")

    @property
    def said(self) -> str:
        """The last message of the user."""
        texts = [str(message["content"]) for message in self.messages if message["role"] == "user"]
        return texts[-1] if texts else ""

    @property
    def results(self) -> list[str]:
        """The results of the tools called since that message, in order."""
        since: list[str] = []
        for message in reversed(self.messages):
            if message["role"] == "user":
                break
            if message["role"] == "tool":
                since.insert(0, str(message["content"]))
        return since


Script = Callable[[Request], str | ToolCall | Sequence[ToolCall]]
"""Returns the model's answer: a text, or tools to call first."""


class ScriptedProvider(BaseLLMProvider):
    """A provider for any number of agents and threads that answers from a script and records every request.

    ```python
    def script(request: Request) -> str | ToolCall:
        if request.results:
            return request.results[-1]
        return ToolCall("search_memories", {"query": request.said})
    ```
    """

    def __init__(self, script: Script) -> None:
        self._script, self._numbers = script, itertools.count(1)
        self.requests: list[Request] = []
        """Every call so far, in order."""

    async def get_llm_response(
        self,
        context: ContextManager,
        tools: list[LLMTool] | None = None,
        conversation_id: str | None = None,
        output_schema: type[Any] | None = None,
    ) -> dict[str, Any]:
        """See `BaseLLMProvider`; with a schema, the script's text is parsed as JSON of that schema."""
        request = Request(
            conversation_id=conversation_id,
            messages=context.get_prompt(conversation_id),
            tools={tool.name: tool.parameters for tool in tools or ()},
        )
        self.requests.append(request)
        answer = self._script(request)
        if isinstance(answer, str):
            parsed = None if output_schema is None or tools else output_schema.model_validate_json(answer)
            return {"text": None if parsed else answer, "tool_calls": [], "structured": parsed}
        calls = [answer] if isinstance(answer, ToolCall) else answer
        return {"text": None, "tool_calls": [self._as_call(call) for call in calls], "structured": None}

    def _as_call(self, call: ToolCall) -> dict[str, Any]:
        return {"id": f"call_{next(self._numbers)}", "name": call.name, "arguments": dict(call.arguments)}
