"""The drivers of all frameworks, by name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import pytest

from tests.adapters.drivers.adk import adk
from tests.adapters.drivers.driver import Driver, Setting
from tests.adapters.drivers.langchain import Agent, Chain, Classic, Nodes
from tests.adapters.drivers.mcp import Hook
from tests.adapters.drivers.spade import spade
from tests.adapters.drivers.xaibo import Xaibo

Opening = Callable[[Setting], AbstractAsyncContextManager[Driver]]


def _made(make: Callable[[Setting], Driver]) -> Opening:
    @asynccontextmanager
    async def opened(setting: Setting) -> AsyncIterator[Driver]:
        yield make(setting)

    return opened


DRIVERS: Final[Mapping[str, Opening]] = {
    "adk": adk,
    "langchain agent": _made(Agent),
    "langchain chain": _made(Chain),
    "langchain nodes": _made(Nodes),
    "langchain classic": _made(Classic),
    "hook": _made(Hook),
    "xaibo": _made(Xaibo),
    "spade": spade,
}


def each(*without: str) -> list[Any]:
    """The drivers as parameters of a test; the agents of SPADE talk through a server, which is a process."""
    marks = {"spade": (pytest.mark.process, pytest.mark.xmpp)}
    return [pytest.param(name, marks=marks.get(name, ())) for name in DRIVERS if name not in without]
