"""A LangChain chat model as the manager of a memory."""

from __future__ import annotations

from collections.abc import Sequence

try:
    from langchain_core.language_models import BaseChatModel
except ImportError as error:
    raise ImportError("`memory_langchain` needs langchain-core: pip install 'memory-core[langchain]'") from error

from memory_core import ChatMessage


class LangChainModel:
    """A `ChatModel` for `maintain(ann, model=LangChainModel(model))`."""

    def __init__(self, model: BaseChatModel) -> None:
        self._model = model

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """See `ChatModel.complete`."""
        answer = await self._model.ainvoke([(message["role"], message["content"]) for message in messages])
        return str(answer.text)
