"""Each tool call of a spade_llm agent is a step of its conversation's bank, and the next request sees the last ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from spade.message import Message
from spade_llm.agent import LLMAgent
from spade_llm.tools import LLMTool

from memory_core import Memory, MemoryBank
from memory_spade import BankProvider
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall

pytestmark = pytest.mark.usefixtures("container")


def measure(tank: str) -> str:
    if tank == "three":
        raise RuntimeError("no such tank")
    return f"{tank} has 900 psi"


MEASURE = LLMTool("measure", "Measure a tank.", {"type": "object", "properties": {"tank": {"type": "string"}}}, measure)


said: list[Message] = []
"""All messages, kept: spade_llm ignores one at the address of another that it has seen."""


async def say(agent: LLMAgent, text: str, thread: str = "t1") -> None:
    """Drive the agent's behaviour the way XMPP does, without a server."""
    behaviour: Any = agent.llm_behaviour
    behaviour.set_agent(agent)

    async def keep(message: Message) -> None:
        assert message.body

    behaviour.send = keep
    message = Message(
        to="bot@localhost", sender="ann@localhost/phone", body=text, thread=thread, metadata={"message_type": "llm"}
    )
    said.append(message)
    await behaviour.queue.put(message)
    await behaviour.run()


def measuring(*tanks: str) -> Callable[[Request], str | ToolCall]:
    def script(request: Request) -> str | ToolCall:
        done = len(request.results)
        return ToolCall("measure", {"tank": tanks[done]}) if done < len(tanks) else "Done."

    return script


async def test_each_tool_call_is_a_step_and_the_next_request_shows_it(memory: Memory) -> None:
    model, ann = ScriptedProvider(measuring("one", "two")), memory.bind(user="ann")
    agent = LLMAgent("bot@localhost", "pw", BankProvider(model, ann), tools=[MEASURE], system_prompt="Be kind.")
    await say(agent, "Measure both")
    assert model.requests[0].system == "Be kind."
    assert model.requests[1].system.startswith("Be kind.")
    assert "Step 1 - measure" in model.requests[1].system
    assert "two has 900 psi" in model.requests[2].system
    await say(agent, "Measure both again")
    entries = MemoryBank(memory=ann, task="t1").get_all_memories()
    assert [entry.command for entry in entries] == ['{"tank": "one"}', '{"tank": "two"}'] * 2
    assert [entry.step_number for entry in entries] == [1, 2, 3, 4]


async def test_a_tool_that_fails_is_remembered_as_such_and_a_thread_is_a_task() -> None:
    provider = BankProvider(ScriptedProvider(measuring("three")))
    agent = LLMAgent("bot@localhost", "pw", provider, tools=[MEASURE])
    await say(agent, "Measure")
    (entry,) = await provider.bank("t1").get_all_memories()
    assert entry.tags == ["error"]
    assert "no such tank" in entry.result
    assert await provider.bank("t2").get_all_memories() == []
