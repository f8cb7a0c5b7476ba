"""A provider of spade_llm as the manager of a memory."""

from __future__ import annotations

from collections.abc import Sequence

try:
    from spade_llm.context import ContextManager
    from spade_llm.providers.base_provider import BaseLLMProvider
except ImportError as error:
    raise ImportError(
        "`ProviderModel` needs spade_llm 0.3, which runs on Python 3.11 and 3.12; there: "
        "pip install 'memory-core[spade-llm]'"
    ) from error

from memory_core import ChatMessage

_CONVERSATION = "memory"


class ProviderModel:
    """A `ChatModel` for `maintain(agent.memory, model=ProviderModel(provider))`."""

    def __init__(self, provider: BaseLLMProvider) -> None:
        self._provider = provider

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """See `ChatModel.complete`."""
        context = ContextManager(system_prompt=messages[0]["content"])
        context.add_message_dict({"role": "user", "content": messages[-1]["content"]}, _CONVERSATION)
        response = await self._provider.get_llm_response(context, None, _CONVERSATION)
        return str(response["text"] or "")
