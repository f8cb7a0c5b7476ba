"""Behaviours that are equal in all frameworks: each test runs with the driver of each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

import pytest
from frameworks import own_container

from tests.adapters.drivers.driver import Driver, Setting
from tests.adapters.drivers.every import DRIVERS

Drive = Callable[[str, Setting], AbstractAsyncContextManager[Driver]]


@pytest.fixture
def drive(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Drive]:
    """Opens a framework by its name; the one that needs a server gets it."""

    def opened(name: str, setting: Setting) -> AbstractAsyncContextManager[Driver]:
        # Some have no deadline of their own for what is recalled.
        monkeypatch.setattr("memory_core.conversation.limits.RECALL_SECONDS", setting.seconds)
        server = request.getfixturevalue("server") if name == "spade" else None
        return DRIVERS[name](replace(setting, server=server))

    with own_container():
        yield opened
