"""A memory that does not answer costs a client its call, after the deadline, and no other client anything."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from calling import in_process

from memory_core import Hit, Memory, MemoryRecord, Scope
from memory_core.adapting import limits, on_core
from memory_core.requests import SearchRequest
from memory_core.storage.sqlite.store import SqliteStore
from memory_mcp.__main__ import main

BRIEF = 0.2


class Hanging(SqliteStore):
    """A store that does not answer Ann until it is well."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.well = asyncio.Event()

    async def _wait(self, scope: Scope) -> None:
        if scope.user == "ann":
            await self.well.wait()

    async def search(self, scopes: tuple[Scope, ...], request: SearchRequest) -> list[Hit]:
        await self._wait(scopes[0])
        return await super().search(scopes, request)

    async def add(self, scope: Scope, records: Sequence[MemoryRecord], **options: Any) -> list[MemoryRecord | None]:
        await self._wait(scope)
        return await super().add(scope, records, **options)


async def test_a_call_that_hangs_is_an_error_in_time_and_what_it_writes_is_written_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Hanging(tmp_path / "m.db", embedder=None, clock=lambda: datetime.now(UTC))
    async with Memory(store) as memory:
        ann, tom = memory.bind(app="demo", user="ann"), memory.bind(app="demo", user="tom")
        async with (
            in_process(ann, skynet=False, timeout=BRIEF) as call,
            in_process(tom, skynet=False, timeout=300.0) as other,
        ):
            said = [{"role": "user", "content": "my secret is tea"}]
            refused = await call.refused("memory_remember", messages=said)
            assert "memory_remember did not end within 0.2 s; what it was to write may still be written" in refused
            assert "memory_search did not end" in await call.refused("memory_search", query="tea")
            await other.store("Tom drinks coffee")
            assert await other.found("coffee") == ["Tom drinks coffee"]
            await _let(store)
            while not (await ann.list()).records:  # noqa: ASYNC110  (a late call has nobody who waits for it)
                await asyncio.sleep(0.01)
            assert await call.found("tea") == ["my secret is tea"]
    assert "the memory of an MCP client does not answer: memory_remember did not end within 0.2 s" in caplog.text
    assert "secret" not in caplog.text


async def _let(store: Hanging) -> None:
    async def let() -> None:
        store.well.set()

    await on_core(let)


def test_the_help_says_how_long_a_call_may_take(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert f"(default: {limits.EXPLICIT_SECONDS:g})" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("wrong", ["soon", "0", "-1", "nan", "inf"])
def test_a_limit_that_is_none_is_refused(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--file", "m.db", "--user", "ann", "--timeout", wrong])
    assert f"{wrong!r} is not a number of seconds above 0" in capsys.readouterr().err
