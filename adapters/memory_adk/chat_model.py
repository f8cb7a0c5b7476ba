"""A model of Google ADK as the manager of a memory."""

from __future__ import annotations

from collections.abc import Sequence

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from memory_core import ChatMessage


class AdkModel:
    """A `ChatModel` for `maintain(ann, model=AdkModel(Gemini(model="gemini-flash-latest")))`."""

    def __init__(self, model: BaseLlm) -> None:
        self._model = model

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """See `ChatModel.complete`."""
        system, question = messages[0]["content"], messages[-1]["content"]
        request = LlmRequest(
            model=self._model.model,
            contents=[types.UserContent(question)],
            config=types.GenerateContentConfig(system_instruction=system),
        )
        parts = [
            part
            async for response in self._model.generate_content_async(request)
            for part in (response.content and response.content.parts) or ()
        ]
        return "".join(part.text or "" for part in parts if not part.thought)
