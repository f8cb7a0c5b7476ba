"""A chat model behind a URL that speaks OpenAI's protocol: OpenAI, Ollama, vLLM, LM Studio and others."""

from __future__ import annotations

try:
    import httpx
except ImportError as error:
    raise ImportError("`OpenAiChat` needs httpx: pip install 'memory-core[openai]'") from error

import os
from collections.abc import Sequence

from memory_core.embedding.openai import OPENAI_URL
from memory_core.supplied import ChatMessage
from memory_core.values.header_values import check_header


class OpenAiChat:
    """A `ChatModel` for `maintain(ann, model=...)`, without tools or streaming.

    Args:
        model: The name under which the server knows the model.
        api_key: If not given, `OPENAI_API_KEY` is read at each request, but sent to OpenAI only, as for
            `OpenAiEmbedder`.
        base_url: Another server with the same protocol; the URL without `/chat/completions`.
    """

    def __init__(self, model: str, *, api_key: str | None = None, base_url: str | None = None) -> None:
        self._model = model
        self._key = api_key
        self._is_openai = base_url is None
        self._url = f"{(base_url or OPENAI_URL).rstrip('/')}/chat/completions"

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """The text of the answer.

        Raises:
            InvalidInputError: The key has a character that no header can carry.
            httpx.HTTPError: The server cannot be reached, or refuses.
            LookupError: The answer has another form.
        """
        key = self._key or (os.environ.get("OPENAI_API_KEY") if self._is_openai else None)
        headers = {"Authorization": f"Bearer {check_header('api_key', key)}"} if key else {}
        async with httpx.AsyncClient(timeout=None) as client:  # noqa: S113  (the manager ends a call that takes too long)
            body = {"model": self._model, "messages": list(messages)}
            response = await client.post(self._url, json=body, headers=headers)
        return str(response.raise_for_status().json()["choices"][0]["message"]["content"])
