"""The complete example of spade_llm's memory document, as printed but for what `AS_PRINTED_BUT_FOR` says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spade_llm.providers import LLMProvider

from memory_spade import AgentBaseMemory, AgentInteractionMemory, MemoryLLMAgent
from memory_spade import agent as agent_module
from memory_spade.testing.provider import ScriptedProvider
from memory_spade.testing.xmpp import XmppServer

EXAMPLE = '''
import asyncio
from spade_llm.agent import LLMAgent
from spade_llm.providers import LLMProvider
from spade_llm.memory import AgentBaseMemory, AgentInteractionMemory

async def memory_integration_example():
    # Create provider
    provider = LLMProvider.create_openai(
        api_key="your-api-key",
        model="gpt-4"
    )

    # Create agent with both memory types
    agent = LLMAgent(
        jid="memory_agent@example.com",
        password="password",
        provider=provider,
        interaction_memory=True,
        agent_base_memory=True,
        system_prompt="""You are an assistant with dual memory capabilities.

        Use remember_interaction_info for conversation-specific information.
        Use store_memory, search_memories, and list_memories for long-term learning.
        """
    )

    # Access memory instances directly
    interaction_memory = agent.interaction_memory
    base_memory = agent.agent_base_memory

    # Direct memory operations
    if interaction_memory:
        interaction_memory.add_information("conv_1", "User prefers JSON")
        summary = interaction_memory.get_context_summary("conv_1")
        print(f"Interaction memory: {summary}")

    if base_memory:
        await base_memory.initialize()

        # Store a fact
        memory_id = await base_memory.store_memory(
            content="API requires authentication",
            category="fact",
            context="API integration"
        )

        # Search memories
        results = await base_memory.search_memories("API")
        print(f"Found {len(results)} relevant memories")

        # Get statistics
        stats = await base_memory.get_memory_stats()
        print(f"Memory statistics: {stats}")

        await base_memory.cleanup()

    await agent.start()
    print("Agent started with memory capabilities")

    # Agent will automatically use memory during conversations
    await asyncio.sleep(10)
    await agent.stop()
'''

IMPORTS = {
    "from spade_llm.agent import LLMAgent": "from memory_spade.agent import MemoryLLMAgent as LLMAgent",
    "from spade_llm.memory import": "from memory_spade.memory import",
}
AS_PRINTED_BUT_FOR = {**IMPORTS, "memory_agent@example.com": "{jid}", "asyncio.sleep(10)": "asyncio.sleep(0.1)"}
"""There is no server at example.com, and nobody wants to wait."""


def create_openai(api_key: str, model: str) -> ScriptedProvider:
    """The document's example uses it; spade_llm 0.3 does not have it."""
    return ScriptedProvider(lambda request: f"{model} with {api_key}")


async def test_the_complete_integration_example_runs(
    server: XmppServer,
    container: None,
    jid: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPADE_LLM_MEMORY_PATH", raising=False)
    source = EXAMPLE
    for printed, here in AS_PRINTED_BUT_FOR.items():
        assert printed in source
        source = source.replace(printed, here.format(jid=jid("memory_agent")))
    agents: list[MemoryLLMAgent] = []

    class OnServer(MemoryLLMAgent):
        def __init__(self, **arguments: Any) -> None:
            super().__init__(port=server.port, **arguments)
            agents.append(self)

    monkeypatch.setattr(agent_module, "MemoryLLMAgent", OnServer)
    monkeypatch.setattr(LLMProvider, "create_openai", staticmethod(create_openai), raising=False)
    names: dict[str, Any] = {"__name__": "example"}
    exec(source, names)
    await names["memory_integration_example"]()
    for agent in agents:
        await server.stop(agent)

    printed = capsys.readouterr().out
    assert "Interaction memory: Previous interactions:\n- User prefers JSON\n" in printed
    assert "Found 1 relevant memories" in printed
    assert "'total_memories': 1" in printed
    assert "Agent started with memory capabilities" in printed
    folder = tmp_path / "spade_llm" / "data" / "agent_memory"
    assert AgentInteractionMemory(jid("memory_agent"), folder).get_all_conversations() == ["conv_1"]
    kept = AgentBaseMemory(jid("memory_agent"), folder)
    assert [entry.context for entry in await kept.get_recent_memories()] == ["API integration"]
    await kept.cleanup()
