"""RadBot's factories for agents with memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self, TypeVar

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import BaseLlm
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types

from memory_adk.convert import content_text
from memory_adk.plugin import MemoryPlugin
from memory_adk.radbot.enhanced_memory import MemoryDetector
from memory_adk.radbot.memories import mark
from memory_adk.radbot.qdrant_memory import QdrantMemoryService
from memory_adk.toolset import MemoryToolset
from memory_core import InvalidInputError, TriggerDetector, WrongThreadError
from memory_core.adapting import Deadline, limits

T = TypeVar("T")
AgentTool = BaseTool | BaseToolset | Callable[..., object]
Config = Mapping[str, Mapping[str, Sequence[str]]]

INSTRUCTIONS: Final[dict[str, str]] = {
    "main_agent": (
        "You are a helpful assistant who remembers earlier conversations with the user. Use what you are shown of "
        "them where it helps. Search them with your tools before you say that you do not know something about the "
        "user, and store what is worth remembering."
    )
}
"""Instructions by name; add your own."""


class MemoryAgent:
    """An agent with its runner and its memory, created by a factory of this module.

    Turns are stored automatically, and relevant earlier turns are added to the prompt. `async with` closes the agent.
    """

    def __init__(
        self,
        runner: Runner,
        plugin: MemoryPlugin,
        service: QdrantMemoryService,
        *,
        owned: bool,
        triggers: TriggerDetector | None = None,
    ) -> None:
        self.runner = runner
        self.memory_service = service
        self.plugin = plugin
        self._owned = owned
        self._triggers = triggers
        self._briefly = Deadline(limits.RECALL_SECONDS, "an agent")

    def process_message(self, user_id: str, message: str, session_id: str = "main") -> str:
        """`aprocess_message` for synchronous code.

        Raises:
            WrongThreadError: An event loop is running in this thread.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.aprocess_message(user_id, message, session_id))
        raise WrongThreadError("process_message was called inside an event loop; use `await aprocess_message(...)`")

    async def aprocess_message(self, user_id: str, message: str, session_id: str = "main") -> str:
        """Send a message and return the answer. The turn is stored before it returns, so that a script may end and the
        next turn can recall it, unless the store takes longer than two seconds.

        Args:
            user_id: The user, who owns the memory.
            message: The user's message.
            session_id: The conversation of this user; its first message creates it.
        """
        said = types.Content(role="user", parts=[types.Part(text=message)])
        events = self.runner.run_async(user_id=user_id, session_id=session_id, new_message=said)
        answers = [content_text(event.content) async for event in events if not event.partial]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.RECALL_SECONDS):
                await self.plugin.flush()
        if self._triggers is not None:
            await self._mark(user_id, session_id, self._triggers)
        return "\n".join(answer for answer in answers if answer)

    async def _mark(self, user_id: str, session_id: str, triggers: TriggerDetector) -> None:
        service = self.memory_service
        memory = service.handle(self.runner.app_name, user_id)
        with self._briefly.spared("what a user asks to be remembered is not marked"):
            service.access.insist()
            await self._briefly.write("marking messages", lambda: mark(memory, session_id, triggers))

    async def close(self) -> None:
        """Store queued turns, and close the memory if the factory created it."""
        await self.runner.close()
        if self._owned:
            await self.memory_service.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class EnhancedMemoryAgent(MemoryAgent):
    """A `MemoryAgent` that also remembers what users ask it to, with tags. What could not be marked in time is marked
    at the next message of the session."""


def create_memory_enabled_agent(
    *,
    session_service: BaseSessionService | None = None,
    tools: Sequence[AgentTool] = (),
    memory_service: QdrantMemoryService | None = None,
    instruction_name: str = "main_agent",
    name: str = "memory_enabled_agent",
    model: str | BaseLlm = "",
) -> MemoryAgent:
    """Create an agent that stores its conversations, recalls from them, and has the memory tools.

    Args:
        session_service: By default an in-memory service: sessions end with the process, memories do not.
        tools: Additional tools.
        memory_service: By default a `QdrantMemoryService()`, closed with the agent; the caller closes a given one.
        instruction_name: A key of `INSTRUCTIONS`.
        name: Name of the agent and its app: letters, digits and underscores.
        model: By default ADK's default model (`LlmAgent.set_default_model`).

    Raises:
        InvalidInputError: There is no instruction with that name.
    """
    if instruction_name not in INSTRUCTIONS:
        raise InvalidInputError(f"there is no instruction {instruction_name!r}; add its text to INSTRUCTIONS first")
    service = memory_service or QdrantMemoryService()
    plugin = MemoryPlugin(service)
    agent = LlmAgent(
        name=name,
        model=model,
        instruction=INSTRUCTIONS[instruction_name],
        tools=[*tools, MemoryToolset(service)],
    )
    runner = Runner(
        app=App(name=name, root_agent=agent, plugins=[plugin]),
        session_service=session_service or InMemorySessionService(),
        memory_service=service,
        auto_create_session=True,
    )
    return MemoryAgent(runner, plugin, service, owned=memory_service is None)


def create_enhanced_memory_agent(
    *,
    session_service: BaseSessionService | None = None,
    tools: Sequence[AgentTool] = (),
    memory_service: QdrantMemoryService | None = None,
    instruction_name: str = "main_agent",
    name: str = "enhanced_memory_agent",
    model: str | BaseLlm = "",
    memory_manager_config: Config | None = None,
) -> EnhancedMemoryAgent:
    """Create an agent like `create_memory_enabled_agent` that also remembers what users ask it to, with tags.

    Args:
        session_service: See `create_memory_enabled_agent`, also for the following ones.
        tools: Additional tools.
        memory_service: The service to store in.
        instruction_name: A key of `INSTRUCTIONS`.
        name: Name of the agent and its app.
        model: The language model.
        memory_manager_config: `{"detector_config": {"memory_triggers": [...], "fact_triggers": [...]}}`; missing
            keys have the documented defaults.

    Raises:
        InvalidInputError: The configuration has an unknown key, a trigger is blank, or the instruction is unknown.
    """
    config = _known("memory_manager_config", memory_manager_config or {}, "detector_config")
    found = _known("detector_config", config.get("detector_config", {}), "memory_triggers", "fact_triggers")
    detector = MemoryDetector(found.get("memory_triggers"), found.get("fact_triggers"))
    agent = create_memory_enabled_agent(
        session_service=session_service,
        tools=tools,
        memory_service=memory_service,
        instruction_name=instruction_name,
        name=name,
        model=model,
    )
    return EnhancedMemoryAgent(
        agent.runner, agent.plugin, agent.memory_service, owned=memory_service is None, triggers=detector.triggers
    )


def _known(name: str, given: Mapping[str, T], *keys: str) -> Mapping[str, T]:
    if unknown := sorted(given.keys() - set(keys)):
        raise InvalidInputError(f"{name} accepts {' and '.join(keys)}, not {', '.join(map(repr, unknown))}")
    return given
