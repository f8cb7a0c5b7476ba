"""Memory without any code in the agent: what is said is remembered, and what is known is at hand.

```python
app = App(name="demo", root_agent=agent, plugins=[MemoryPlugin()])
runner = Runner(app=app, session_service=InMemorySessionService(), memory_service=MemoryService("memory.db"))
```
"""

from __future__ import annotations

try:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Final

from memory_adk.capture import Capture
from memory_adk.convert import content_text
from memory_adk.recall import in_conversation, in_prompt, recall, show
from memory_adk.service import MemoryService
from memory_core import MemoryCoreError, RecallOptions
from memory_core.adapting import reason_for_log

logger = logging.getLogger(__name__)

RECALL_RESULTS: Final = 5
RECALL_CHARS: Final = 2_000
RECALL_SECONDS: Final = 2.0
"""A memory that takes longer than this to answer is left out of the prompt."""
MAX_TURNS: Final = 1_000
"""A cancelled turn does not say goodbye, so the oldest are let go."""


@dataclass(slots=True)
class _Turn:
    """One invocation as it goes: how far it is captured, and the block that is recalled for it."""

    seen: int = 0
    recall: asyncio.Future[str] | None = None


class MemoryPlugin(BasePlugin):
    """Remembers every turn of a runner and recalls what is relevant to the next, once a turn.

    Capturing happens in the background: it never delays an answer, and an error ends up in the log instead of the
    conversation (what is missing is stored with the next turn that can be). A turn is stored as it happens, so that a
    cancelled or failed one is not lost. Turns a guardrail blocked are not stored.

    Args:
        service: Whose runners to serve; by default every runner whose memory service is a `MemoryService`. A nested
            runner, such as `AgentTool` makes, has a memory of its own and is left alone.
        capture: Whether to remember.
        recall: Whether to add what is remembered to the prompt, or how: budget, conditions, mode and the rest.
        recall_results: Most memories a turn gets, unless `recall` says how.
        recall_chars: Most characters of the block they make, unless `recall` says how.
        name: ADK's name for the plugin.
    """

    def __init__(
        self,
        service: MemoryService | None = None,
        *,
        capture: bool = True,
        recall: bool | RecallOptions = True,
        recall_results: int = RECALL_RESULTS,
        recall_chars: int = RECALL_CHARS,
        name: str = "memory",
    ) -> None:
        super().__init__(name)
        self._service = service
        self._recalls = recall is not False
        usual = RecallOptions(max_chars=recall_chars, limit=recall_results)
        self._options = recall if isinstance(recall, RecallOptions) else usual
        self._turns: dict[str, _Turn] = {}
        self._capture = Capture(on=capture)

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Remember what the user said, before anything can go wrong."""
        if service := self._serving(invocation_context):
            await self._capture.catch_up(service, invocation_context)
            await self._remember(service, invocation_context)

    async def on_event_callback(
        self,
        *,
        invocation_context: InvocationContext,
        event: Event,  # noqa: ARG002  (ADK's signature)
    ) -> None:
        """Remember what was said up to this event, which is not stored in the session yet."""
        if service := self._serving(invocation_context):
            await self._remember(service, invocation_context)

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Remember the rest of the turn, or forget it if a guardrail answered in the agent's place."""
        if service := self._serving(invocation_context):
            await self._remember(service, invocation_context)
            self._turns.pop(invocation_context.invocation_id, None)

    async def on_run_error_callback(
        self,
        *,
        invocation_context: InvocationContext,
        error: Exception,  # noqa: ARG002  (ADK's signature)
    ) -> None:
        """Remember what was said before the error."""
        if service := self._serving(invocation_context):
            await self._remember(service, invocation_context)
            self._turns.pop(invocation_context.invocation_id, None)

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Put what is remembered into the prompt; one search serves all requests of a turn."""
        invocation_context = callback_context.get_invocation_context()
        service = self._serving(invocation_context)
        if service is None or not self._recalls:
            return
        turn = self._turn(invocation_context)
        if turn.recall is None:
            turn.recall = asyncio.ensure_future(self._recall(service, invocation_context))
        if not turn.recall.done():
            await asyncio.wait([turn.recall])  # which raises nothing: a defect of ours must not end the run
        if error := turn.recall.exception():
            logger.error("nothing is recalled for session %s: %s", invocation_context.session.id, reason_for_log(error))
        else:
            show(llm_request.contents, turn.recall.result())

    async def before_tool_callback(
        self,
        *,
        tool: BaseTool,  # noqa: ARG002  (ADK's signature)
        tool_args: dict[str, Any],  # noqa: ARG002  (ADK's signature)
        tool_context: ToolContext,
    ) -> None:
        """Let no tool find what the conversation shows, the message being answered first of all."""
        in_conversation.set(in_prompt(tool_context.session.events))  # a tool call has a context of its own

    async def on_tool_error_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],  # noqa: ARG002  (ADK's signature)
        tool_context: ToolContext,
        error: Exception,
    ) -> dict[str, Any] | None:
        """Let the agent go on without its memory where ADK's `load_memory` would end the run."""
        if not isinstance(error, MemoryCoreError) or self._serving(tool_context.get_invocation_context()) is None:
            return None
        logger.warning("%s failed: %s", tool.name, reason_for_log(error))
        return {"status": "error", "error": f"The memory cannot be used right now: {error}"}

    async def flush(self) -> None:
        """Return once everything captured so far is stored."""
        await self._capture.flush()

    async def close(self) -> None:
        """Store what is left, and try once more what failed; ADK calls this when the runner closes."""
        await self._capture.close()

    def _serving(self, invocation_context: InvocationContext) -> MemoryService | None:
        service = invocation_context.memory_service
        if self._service is None:
            return service if isinstance(service, MemoryService) else None
        return self._service if service is self._service else None

    def _turn(self, invocation_context: InvocationContext) -> _Turn:
        turn = self._turns.setdefault(invocation_context.invocation_id, _Turn())
        while len(self._turns) > MAX_TURNS:
            del self._turns[next(iter(self._turns))]
        return turn

    async def _remember(self, service: MemoryService, invocation_context: InvocationContext) -> None:
        turn, session = self._turn(invocation_context), invocation_context.session
        seen, turn.seen = turn.seen, len(session.events)
        await self._capture.turn(service, invocation_context, seen=seen)

    async def _recall(self, service: MemoryService, invocation_context: InvocationContext) -> str:
        """The block of memories for this turn; empty if there are none, or none in time."""
        query = content_text(invocation_context.user_content)
        session = invocation_context.session
        try:
            async with asyncio.timeout(RECALL_SECONDS):
                recalled = await recall(
                    service.handle(session.app_name, session.user_id),
                    query,
                    self._options,
                    without_events=in_prompt(session.events),
                )
        except (MemoryCoreError, TimeoutError) as error:
            reason = "the memory is too slow" if isinstance(error, TimeoutError) else reason_for_log(error)
            logger.warning("nothing is recalled for session %s: %s", session.id, reason)
            return ""
        return recalled.text
