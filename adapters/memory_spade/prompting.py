"""A block in the prompt of one call of the model, which a provider in front of the application's own adds."""

from __future__ import annotations

import copy
from typing import Any

from spade_llm.context import ContextManager
from spade_llm.providers.base_provider import BaseLLMProvider


class WrappingProvider(BaseLLMProvider):
    """A provider that has every attribute of the wrapped one."""

    def __init__(self, provider: BaseLLMProvider) -> None:
        self.provider = provider

    def __getattr__(self, name: str) -> object:
        if name == "provider":  # requested on a copy that is not initialised yet
            raise AttributeError(name)
        return getattr(self.provider, name)


def with_block(context: ContextManager, block: str, conversation_id: str | None) -> ContextManager:
    """The context of one call, with the block appended to its first system message or added as the only one.

    The conversations themselves are not changed. The view also has the conversation that is meant, for callers that do
    not name it, while other tasks change the current one.
    """
    view: Any = copy.copy(context)
    if conversation_id is not None:
        view.set_current_conversation(conversation_id)

    def get_prompt(given: str | None = None) -> list[Any]:
        prompt: list[Any] = list(context.get_prompt(given or conversation_id))
        if not block:
            return prompt
        if prompt and prompt[0]["role"] == "system":
            return [{**prompt[0], "content": f"{prompt[0]['content']}\n\n{block}"}, *prompt[1:]]
        return [{"role": "system", "content": block}, *prompt]

    view.get_prompt = get_prompt
    return view  # type: ignore[no-any-return]
