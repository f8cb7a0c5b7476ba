"""A memory for the chains of `langchain-classic` (`ConversationChain`, `LLMChain` and their like)."""

from __future__ import annotations

from typing import Any, Self

from memory_core import BoundMemory, Memory, RecallOptions, run_sync
from memory_core.adapting import TURN, Deadline, limits
from memory_langchain.history import MemoryChatMessageHistory
from memory_langchain.scope import CallScope, ScopeResolver
from memory_langchain.turns import Plan, Turn

try:
    from langchain_classic.base_memory import BaseMemory
    from langchain_core.messages import BaseMessage, get_buffer_string
    from pydantic import Field, InstanceOf, NonNegativeInt, model_validator
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`ConversationMemory` needs langchain-classic: pip install 'memory-core[classic]'") from error


class ConversationMemory(BaseMemory):
    """The `memory=` of a classic chain: the conversation so far and the relevant memories of the user.

    ```python
    chain = ConversationChain(llm=model, memory=ConversationMemory(memory=ann, session_id="monday"))
    ```

    An instance belongs to one user and one conversation, because classic chains do not pass on their configuration.
    A turn is saved when the chain has finished: question and answer in one transaction.
    """

    memory: InstanceOf[BoundMemory] | InstanceOf[Memory] = Field(exclude=True, repr=False)
    """A handle on the user's memories, or a memory together with `user_id`."""
    session_id: str | None = None
    """The conversation; optional if the handle is bound to one."""
    user_id: str | None = None
    """The user; must match the user of a bound handle."""
    agent_id: str | None = None
    """The agent that answers."""
    memory_key: str = "history"
    """Prompt variable for the history."""
    memories_key: str | None = None
    """Prompt variable for the recalled memories, as text; by default nothing is recalled."""
    input_key: str | None = None
    """Key of the question; required if there are several inputs and none is called `"input"`."""
    output_key: str | None = None
    """Key of the answer; required if there are several outputs and none is called `"output"`."""
    return_messages: bool = False
    """Return the history as messages instead of text."""
    human_prefix: str = "Human"
    """Prefix of the user's messages in a text history."""
    ai_prefix: str = "AI"
    """Prefix of the model's messages in a text history."""
    k: NonNegativeInt = 4
    """Most memories to recall."""
    recall: InstanceOf[RecallOptions] = Field(default=TURN, exclude=True, repr=False)
    """Recall options: budget, conditions, mode and so on."""
    history_limit: NonNegativeInt | None = None
    """Show only this many of the newest messages; by default all."""
    timeout: float = limits.EXPLICIT_SECONDS
    """How many seconds a call may take before it is an error."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._scope()
        self._plan()
        return self

    @property
    @override
    def memory_variables(self) -> list[str]:
        """The keys that this memory adds to a chain's inputs."""
        return [self.memory_key] if self.memories_key is None else [self.memory_key, self.memories_key]

    @override
    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the history and the memories for the question in `inputs`; the question may be missing."""
        turn = self._turn(inputs)
        run_sync(turn.load)
        return self._variables(turn)

    @override
    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """As `load_memory_variables`."""
        turn = self._turn(inputs)
        await turn.load()
        return self._variables(turn)

    @override
    def save_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Append question and answer to the history."""
        turn = self._turn(inputs)
        run_sync(turn.save, turn.answer(outputs))

    @override
    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """As `save_context`."""
        turn = self._turn(inputs)
        await turn.save(turn.answer(outputs))

    @override
    def clear(self) -> None:
        """Delete the messages of this conversation."""
        self._history().clear()

    @override
    async def aclear(self) -> None:
        """As `clear`."""
        await self._history().aclear()

    def _scope(self) -> CallScope:
        return ScopeResolver(self.memory, self.user_id, self.session_id, self.agent_id).resolve(needs_session=True)

    def _history(self) -> MemoryChatMessageHistory:
        return MemoryChatMessageHistory(
            self.memory,
            self.session_id,
            user_id=self.user_id,
            agent_id=self.agent_id,
            timeout=self.timeout,
        )

    def _plan(self) -> Plan:
        return Plan(
            self.input_key,
            self.memory_key,
            self.memories_key,
            self.output_key,
            self.k,
            self.history_limit,
            recall=self.recall,
            deadline=Deadline(self.timeout, "a chain"),
        )

    def _turn(self, inputs: dict[str, Any]) -> Turn:
        given = {name: value for name, value in inputs.items() if name not in {*self.memory_variables, "stop"}}
        return Turn(self._plan(), self._scope(), given or {self.input_key or "input": ""})

    def _variables(self, turn: Turn) -> dict[str, Any]:
        filled: Any = turn.chain_input()
        variables = {name: filled[name] for name in self.memory_variables}
        if not self.return_messages:
            history: list[BaseMessage] = variables[self.memory_key]
            variables[self.memory_key] = get_buffer_string(history, self.human_prefix, self.ai_prefix)
        return variables
