"""A scripted model, so that agents can be demonstrated and tested without a network or a key.

```python
model = ScriptedLlm(script=[("load_memory", {"query": "tea"}), "You prefer jasmine tea."])
agent = LlmAgent(name="helper", model=model, tools=[load_memory])
```
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any, Final

from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.genai import types
from pydantic import Field, PrivateAttr

Said = str | tuple[str, dict[str, Any]] | list[types.Part]
"""An answer of the model: a text, a call of one tool `(name, arguments)`, or any parts."""

Step = Said | Exception | Callable[[LlmRequest], "Said"]
"""An answer, an error to raise, or a function that computes the answer from the request."""

_CHUNK: Final = re.compile(r"\S+\s*")
_USAGE: Final = types.GenerateContentResponseUsageMetadata(prompt_token_count=0, candidates_token_count=0)
"""ADK logs a warning for answers without token counts."""


class ScriptExhaustedError(RuntimeError):
    """The model got more requests than its script has steps."""


class ScriptedLlm(BaseLlm):
    """Answers request n with step n of its script; in streaming mode, a text is first streamed word by word."""

    model: str = "scripted"
    script: list[Any] = Field(default_factory=list)
    """The steps (`Step`), in order."""

    _requests: list[LlmRequest] = PrivateAttr(default_factory=list[LlmRequest])

    @property
    def requests(self) -> list[LlmRequest]:
        """All requests so far, as the model received them."""
        return self._requests

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002  (ADK's signature)
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield the next step.

        Raises:
            ScriptExhaustedError: There is no next step.
        """
        self._requests.append(llm_request)
        if len(self._requests) > len(self.script):
            raise ScriptExhaustedError(
                f"this is request {len(self._requests)}, but the script has {len(self.script)} steps; add one"
            )
        step: Step = self.script[len(self._requests) - 1]
        if isinstance(step, Exception):
            raise step
        answer = step(llm_request) if callable(step) else step
        if stream and isinstance(answer, str):
            for word in _CHUNK.findall(answer):
                yield LlmResponse(content=_content([types.Part(text=word)]), partial=True)
        yield LlmResponse(content=_content(_parts(answer)), usage_metadata=_USAGE)


async def ask(runner: Runner, text: str, *, user_id: str, session_id: str) -> str:
    """Send a user's message to an agent and return the answer."""
    events = runner.run_async(user_id=user_id, session_id=session_id, new_message=user_says(text))
    return "\n".join([answer async for event in events for answer in answers(event)])


def user_says(text: str) -> types.Content:
    """A user's message."""
    return types.Content(role="user", parts=[types.Part(text=text)])


def answers(event: Event) -> Iterator[str]:
    """The finished texts of an event."""
    if event.content and not event.partial:
        yield from (part.text for part in event.content.parts or [] if part.text and not part.thought)


def prompt(request: LlmRequest) -> str:
    """All text in a request that the model can read, tool results included."""
    return "\n".join(_readable(part) for content in request.contents for part in content.parts or [])


def _readable(part: types.Part) -> str:
    return str(part.function_response.response) if part.function_response else part.text or ""


def _parts(answer: Said) -> list[types.Part]:
    if isinstance(answer, str):
        return [types.Part(text=answer)]
    if isinstance(answer, tuple):
        name, arguments = answer
        return [types.Part(function_call=types.FunctionCall(name=name, args=arguments))]
    return answer


def _content(parts: list[types.Part]) -> types.Content:
    return types.Content(role="model", parts=parts)
