"""A model of Xaibo as the manager of a memory."""

from __future__ import annotations

from collections.abc import Sequence

from memory_core import ChatMessage
from memory_xaibo.protocols import LLMMessage, LLMProtocol


class XaiboModel:
    """A `ChatModel` for `maintain(ann, model=XaiboModel(OpenAILLM({"model": "gpt-5-mini"})))`."""

    def __init__(self, model: LLMProtocol) -> None:
        self._model = model

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """See `ChatModel.complete`."""
        system, question = messages[0]["content"], messages[-1]["content"]
        answer = await self._model.generate([LLMMessage.system(system), LLMMessage.user(question)])
        return answer.content
