"""A failure of one memory, seen by those who have another one, and the deadline of a middleware."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage

from memory_core import Memory
from memory_langchain import MemoryMiddleware
from memory_langchain.testing import ScriptedChatModel
from tests.adapters.drivers.moody import Moody


async def test_a_memory_that_fails_costs_those_who_have_another_nothing(tmp_path: Path) -> None:
    stores = {name: Moody(tmp_path / f"{name}.db") for name in "ab"}
    async with Memory(stores["a"]) as broken, Memory(stores["b"]) as well:
        handles = {"ann": broken.bind(user="ann"), "bob": well.bind(user="bob")}
        await handles["bob"].add("Bob drinks jasmine tea")
        model = ScriptedChatModel(script=lambda prompt: "noted")
        middleware = MemoryMiddleware(lambda user, _: handles[user], tools=())
        agent: Any = create_agent(model, middleware=[middleware])

        async def ask(user: str) -> str:
            config: Any = {"configurable": {"thread_id": user, "user_id": user}}
            await agent.ainvoke({"messages": [HumanMessage("Which tea does Bob drink?")]}, config)
            return str(model.prompts[-1][0].text)

        stores["a"].mood = "fails"
        assert "jasmine" not in await ask("ann")
        assert "jasmine" in await ask("bob")
        assert "jasmine" not in await ask("ann")


@pytest.mark.parametrize("seconds", [0, -1.0])
def test_a_timeout_is_above_zero(seconds: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        MemoryMiddleware(Memory(":memory:").bind(user="ann"), timeout=seconds)
