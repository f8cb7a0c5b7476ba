"""A memory for the chains of `langchain-classic` (`LLMChain`, `ConversationChain` and their like)."""

from __future__ import annotations

from typing import Any

from langchain_classic.memory import ConversationBufferMemory
from langchain_classic.memory.utils import get_prompt_input_key
from pydantic import Field, InstanceOf
from typing_extensions import override

from memory_core import PUSHED, RecallOptions, run_sync
from memory_core.adapting import Deadline, before_prompt, limits
from memory_langchain.history import MemoryChatMessageHistory


class ConversationMemory(ConversationBufferMemory):
    """`ConversationBufferMemory` that also recalls what is relevant to the question from the memories of the user.

    ```python
    history = MemoryChatMessageHistory(memory, user_id="ann", session_id="monday")
    prompt = PromptTemplate.from_template("{memories}\\n{history}\\nHuman: {input}\\nAI:")
    chain = ConversationChain(llm=model, prompt=prompt, memory=ConversationMemory(chat_memory=history))
    ```

    An instance belongs to one user and one conversation, because classic chains do not pass on their configuration. For
    the history alone, LangChain's own classes take it as `chat_memory=`.
    """

    # Narrower than in the base class, and required: its default is a deprecated history of the process.
    chat_memory: InstanceOf[MemoryChatMessageHistory]  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    """The conversation."""
    memories_key: str = "memories"
    """Prompt variable for the recalled memories, as text."""
    recall: InstanceOf[RecallOptions] = Field(default=PUSHED, exclude=True, repr=False)
    """Recall options: number, budget, conditions, mode and so on."""

    @property
    @override
    def memory_variables(self) -> list[str]:
        """The keys that this memory adds to a chain's inputs."""
        return [self.memory_key, self.memories_key]

    @override
    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the history and the memories for the question in `inputs`; with no input, there is no question."""
        return run_sync(self.aload_memory_variables, inputs)

    @override
    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """As `load_memory_variables`."""
        scope = self.chat_memory.scope
        key = self.input_key or (get_prompt_input_key(inputs, self.memory_variables) if inputs else "")
        question = str(inputs.get(key, ""))
        memories = await Deadline(limits.EXPLICIT_SECONDS, "a chain").read(
            "recalling", lambda: before_prompt(scope.reach, question, scope.session, self.recall)
        )
        return {**await super().aload_memory_variables(inputs), self.memories_key: memories}
