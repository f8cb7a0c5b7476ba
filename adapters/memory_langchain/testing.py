"""A scripted chat model for tests and demonstrations without a real model."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

try:
    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
    from langchain_core.messages.tool import tool_call_chunk
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langchain_core.runnables import Runnable
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from pydantic import Field, PrivateAttr, SkipValidation
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`memory_langchain` needs langchain-core: pip install 'memory-core[langchain]'") from error

Reply = str | AIMessage | BaseException
"""An answer of the model: text, a message (for example with tool calls), or an error to raise."""

Script = Sequence[Reply] | Callable[[list[BaseMessage]], Reply]
"""Replies in order, or a function of the prompt."""


class ScriptedChatModel(BaseChatModel):
    """Answers from a script, records its prompts, and streams word by word; safe to use from several threads.

    ```python
    model = ScriptedChatModel(script=["Hello.", AIMessage("", tool_calls=[...]), RuntimeError("overloaded")])
    model = ScriptedChatModel(script=lambda prompt: f"You said: {prompt[-1].text}")
    ```

    A list of replies raises `IndexError` when it is exhausted. With `stream`, a text arrives word by word and a tool
    call as a separate chunk.
    """

    script: SkipValidation[Script]
    prompts: SkipValidation[list[list[BaseMessage]]] = Field(default_factory=list[list[BaseMessage]])
    """Every prompt so far, in order of arrival."""
    tools: SkipValidation[list[list[dict[str, Any]]]] = Field(default_factory=list[list[dict[str, Any]]])
    """The tools of each prompt, in OpenAI's format."""
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @property
    @override
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Record the tools; the script decides which of them are called."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        *,
        tools: Sequence[dict[str, Any]] = (),
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages, tools))])

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        *,
        tools: Sequence[dict[str, Any]] = (),
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _pieces(self._reply(messages, tools)):
            generation = ChatGenerationChunk(message=chunk)
            if run_manager is not None:
                run_manager.on_llm_new_token(str(chunk.text), chunk=generation)
            yield generation

    def _reply(self, messages: list[BaseMessage], tools: Sequence[dict[str, Any]]) -> AIMessage:
        with self._lock:
            turn = len(self.prompts)
            self.prompts.append(list(messages))
            self.tools.append(list(tools))
        if callable(self.script):
            reply = self.script(list(messages))
        elif turn < len(self.script):
            reply = self.script[turn]
        else:
            raise IndexError(f"the script has {len(self.script)} replies, but this is prompt {turn + 1}: {messages!r}")
        if isinstance(reply, BaseException):
            raise reply
        return AIMessage(reply) if isinstance(reply, str) else reply.model_copy()


def _pieces(reply: AIMessage) -> Iterator[AIMessageChunk]:
    words = re.findall(r"\s*\S+\s*$|\s*\S+", reply.text) or ([reply.text] if reply.text else [])
    pieces = [AIMessageChunk(content=word, id=reply.id) for word in words]
    for n, call in enumerate(reply.tool_calls):
        chunk = tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=n)
        pieces.append(AIMessageChunk(content="", id=reply.id, tool_call_chunks=[chunk]))
    if not pieces:
        pieces.append(AIMessageChunk(content="", id=reply.id))
    pieces[-1].chunk_position = "last"
    yield from pieces
