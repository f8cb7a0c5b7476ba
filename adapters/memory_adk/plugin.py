"""Memory without any code in the agent: turns are stored, and relevant memories are added to prompts.

```python
app = App(name="demo", root_agent=agent, plugins=[MemoryPlugin()])
runner = Runner(app=app, session_service=InMemorySessionService(), memory_service=MemoryService("memory.db"))
```
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Self

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.load_memory_tool import LoadMemoryTool
from google.adk.tools.tool_context import ToolContext

from memory_adk.convert import content_text
from memory_adk.following import Following, is_of_plugin
from memory_adk.latest import Latest
from memory_adk.others import current
from memory_adk.policy import CapturePolicy
from memory_adk.recall import show
from memory_adk.service import MemoryService, check_service
from memory_adk.shown import Shown, in_conversation, in_prompt, shown_in
from memory_adk.watching import Watching
from memory_core import PUSHED, EmbeddingError, MemoryCoreError, Recalled, RecallOptions, StorageError
from memory_core.adapting import (
    Asked,
    Deadline,
    block_of_turn,
    check_seconds,
    limits,
    one_line,
    reason_for_log,
)

logger = logging.getLogger(__name__)

_SERVES_NOBODY: Final = (
    "nothing is stored or recalled, because the runner's memory service is %s and not the plugin's MemoryService: "
    "Runner(memory_service=...), or --memory_service_uri on the command line"
)


@dataclass(slots=True)
class _Turn:
    """State of one invocation."""

    has_begun: bool = False
    """True if an agent has begun to answer, and not a guardrail."""
    is_answered: bool = False
    """True if anybody has answered."""
    shown: dict[str, Shown] = field(default_factory=dict[str, Shown])
    """By agent, what the latest request shows; plugins after this one may still change it."""
    recall: asyncio.Future[str] | None = None
    """The block recalled for it."""


class MemoryPlugin(BasePlugin):
    """Remembers every turn of a runner and, once per turn, recalls memories that are relevant to it.

    Capturing happens in the background: it never delays an answer, and errors are logged and do not reach the
    conversation (missing messages are stored with the next successful turn). A turn is stored while it runs, so that a
    cancelled or failed turn is not lost. Turns that a guardrail blocked are not stored.

    Args:
        service: The memory service whose runners to serve; by default every runner with a `MemoryService`. A nested
            runner, such as that of `AgentTool`, has its own memory service and is ignored.
        capture: True to store turns, or the policy: which messages, in which words, for how long.
        recall: True to add memories to the prompt, or the recall options: budget, conditions (kinds, tags, session,
            …), least score, mode and so on.
        recall_seconds: The time that a turn waits for its memories, 2 seconds by default; opening the memory and
            loading its model, which begins with the first turn, does not count. If the memory fails or takes longer,
            the turn goes on without memories, and so do the next ones, without waiting, until the memory has answered.
        name: Name of the plugin in ADK.
    """

    def __init__(
        self,
        service: MemoryService | None = None,
        *,
        capture: bool | CapturePolicy = True,
        recall: bool | RecallOptions = True,
        recall_seconds: float | None = None,
        name: str = "memory",
    ) -> None:
        super().__init__(name)
        check_service(service)
        self._service = service
        self._has_been_asked = False
        self._recalls = recall is not False
        self._options = recall if isinstance(recall, RecallOptions) else PUSHED
        self._turns = Latest[str, _Turn]()
        given = limits.RECALL_SECONDS if recall_seconds is None else recall_seconds
        self._seconds = check_seconds("recall_seconds", given)
        self._deadline = Deadline(self._seconds, "an agent")
        self._following = Following(CapturePolicy() if capture is True else capture or None)
        self._watching = Watching(self._follow)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """The same plugin: it knows what each runner has handed over."""
        return self

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Store what the session says that no turn here has told: a guardrail may still answer this one."""
        service = self._serving(invocation_context)
        if service is None and not self._has_been_asked:  # later, it may be the runner of an `AgentTool`
            logger.warning(_SERVES_NOBODY, type(invocation_context.memory_service).__name__)
        self._has_been_asked = True
        if service is not None:
            if self._recalls:
                service.access.load()
            await self._follow(service, invocation_context, undecided=True)

    async def before_agent_callback(
        self,
        *,
        agent: BaseAgent,  # noqa: ARG002  (ADK's signature)
        callback_context: CallbackContext,
    ) -> None:
        """Store the user's message before anything can fail: an agent begins to answer it."""
        await self._begin(callback_context.get_invocation_context())

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        """Store the turn up to this event, which the session does not contain yet."""
        if service := self._serving(invocation_context):
            self._turn(invocation_context).is_answered = True
            if self._turn(invocation_context).has_begun or not is_of_plugin(event):  # nodes of workflows are no agents
                await self._begin(invocation_context)
                if not event.partial:
                    self._watching.expect(service, invocation_context, event)

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Store the rest of the turn, unless a guardrail answered instead of the agent."""
        await self._end(invocation_context)

    async def on_run_error_callback(
        self,
        *,
        invocation_context: InvocationContext,
        error: Exception,  # noqa: ARG002  (ADK's signature)
    ) -> None:
        """Store the turn up to the error."""
        await self._end(invocation_context)

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Add relevant memories to the prompt; one search serves all requests of a turn."""
        invocation_context = callback_context.get_invocation_context()
        service = self._serving(invocation_context)
        if service is None:
            return
        turn = self._turn(invocation_context)
        read = service.reader(invocation_context)
        turn.shown[callback_context.agent_name] = shown_in(llm_request, invocation_context, read)
        if not self._recalls:
            return
        if turn.recall is None:
            asked = _asked(invocation_context, shown_in(llm_request, invocation_context, read))
            turn.recall = asyncio.ensure_future(self._recall(service, invocation_context, asked))
        show(llm_request, await asyncio.shield(turn.recall))

    async def before_tool_callback(
        self,
        *,
        tool: BaseTool,  # noqa: ARG002  (ADK's signature)
        tool_args: dict[str, Any],  # noqa: ARG002  (ADK's signature)
        tool_context: ToolContext,
    ) -> None:
        """Exclude messages that the prompt shows, above all the current one, from the results of tools."""
        context = tool_context.get_invocation_context()
        if service := self._serving(context):
            turn = self._turns.get(tool_context.invocation_id, _Turn())
            shown = turn.shown.get(tool_context.agent_name) or in_prompt(context, service.reader(context))
            in_conversation.set(shown)  # each tool call has its own context

    async def on_tool_error_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],  # noqa: ARG002  (ADK's signature)
        tool_context: ToolContext,
        error: Exception,
    ) -> dict[str, Any] | None:
        """Let the agent continue without its memory if ADK's `load_memory` fails, which would end the run."""
        is_ours = isinstance(error, MemoryCoreError) or isinstance(tool, LoadMemoryTool)
        if not is_ours or self._serving(tool_context.get_invocation_context()) is None:
            return None
        logger.warning("%s failed: %s", tool.name, reason_for_log(error))
        return {"status": "error", "error": f"The memory cannot be used right now: {error}"}

    async def flush(self) -> None:
        """Return when everything captured so far is stored, and found by its words; its vectors follow."""
        await self._watching.settle()
        await self._following.flush()

    async def close(self) -> None:
        """Store pending turns and retry failed ones once; ADK calls this when the runner closes.

        It returns after four seconds even if the store has not answered, because ADK counts five as a failure. The
        turns are stored as soon as the store answers, unless the process ends before that; closing the memory waits for
        them.
        """
        await self._watching.settle()
        await self._following.close(limits.CLOSE_SECONDS)

    def _serving(self, invocation_context: InvocationContext) -> MemoryService | None:
        service = invocation_context.memory_service
        if self._service is None:
            return service if isinstance(service, MemoryService) else None
        return self._service if service is self._service else None

    def _turn(self, invocation_context: InvocationContext) -> _Turn:
        name = invocation_context.invocation_id
        return self._turns.note(name, self._turns.get(name) or _Turn())

    async def _begin(self, invocation_context: InvocationContext) -> None:
        """Store what the session says, with this turn."""
        if service := self._serving(invocation_context):
            self._turn(invocation_context).has_begun = True
            await self._follow(service, invocation_context)

    async def _end(self, invocation_context: InvocationContext) -> None:
        """Store the rest of a turn, unless a guardrail answered instead of the agent."""
        if service := self._serving(invocation_context):
            self._watching.has_told(invocation_context)
            turn = self._turns.pop(invocation_context.invocation_id, None)
            if turn is not None and turn.is_answered and not turn.has_begun:
                service.block(invocation_context.invocation_id)
            await self._follow(service, invocation_context)

    async def _follow(
        self, service: MemoryService, invocation_context: InvocationContext, *, undecided: bool = False
    ) -> None:
        session = one_line(invocation_context.session.id)
        with self._deadline.spared(f"a turn of session {session} is not stored", Exception):  # ADK would end the run
            await self._following.follow(service, invocation_context, undecided=undecided)

    async def _recall(self, service: MemoryService, context: InvocationContext, asked: Asked) -> str:
        """Return the profile and the block of memories for this turn; empty if there is nothing, or not in time."""
        session, read = context.session, service.reader(context)
        lack = f"nothing is recalled for session {one_line(session.id)}"
        with self._deadline.spared(lack, Exception), suppress(StorageError, EmbeddingError):  # which are logged once
            memory = await service.reached(session.app_name, session.user_id, self._deadline)

            async def recall(question: Asked) -> Recalled:
                return await block_of_turn(memory, question, self._options)

            ask = partial(current, memory, asked, recall, session.id, read, self._seconds / 2)
            return (await service.access.run(ask, seconds=self._seconds)).text
        return ""


def _asked(context: InvocationContext, shown: Shown) -> Asked:
    """The question of a turn, and what the prompt shows of its session."""
    before = [
        content_text(event.content)
        for event in shown.events.values()
        if event.author == "user" and event.invocation_id != context.invocation_id
    ]
    return Asked(content_text(context.user_content), before, shown.shows, shown.condition())
