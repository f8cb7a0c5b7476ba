"""A LangChain chat model as the manager of a memory."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.language_models import BaseChatModel

from memory_core import ChatMessage


class LangChainModel:
    """A `ChatModel` for `maintain(ann, model=LangChainModel(model))`."""

    def __init__(self, model: BaseChatModel) -> None:
        self._model = model

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """See `ChatModel.complete`."""
        answer = await self._model.ainvoke([(message["role"], message["content"]) for message in messages])
        return str(answer.text)
