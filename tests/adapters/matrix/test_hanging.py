"""A memory that hangs or fails costs a turn its memory, and never the answer; it heals by itself."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

import pytest

from memory_core import Memory, Quota
from tests.adapters.drivers.driver import Setting
from tests.adapters.drivers.every import each
from tests.adapters.drivers.moody import Moody
from tests.adapters.matrix.conftest import Drive

HEARING: Final = ("langchain chain", "langchain nodes", "langchain classic", "hook")
"""The drivers that tell the program of the fault, which goes on as it likes."""
REMEMBERING: Final = ("adk", "langchain agent")
"""The drivers whose next turn stores what an earlier one could not."""
BRIEF: Final = 0.2


def answer(said: str) -> str:
    return f"answer to {said}"


@pytest.mark.parametrize("name", each(*HEARING))
@pytest.mark.parametrize("mood", ["hangs", "fails"])
async def test_a_memory_that_does_not_answer_costs_no_answer(
    drive: Drive, name: str, mood: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_core.conversation.limits.RETRY_SECONDS", 0.0)
    store = Moody(tmp_path / "m.db")
    async with Memory(store) as memory:
        ann = memory.bind(app="demo", user="ann")
        async with drive(name, Setting(ann, answer, seconds=BRIEF)) as model:
            await model.say("one")
            store.mood = mood
            assert await model.say("two") == "answer to two"
            store.mood = "well"
            assert await model.say("three") == "answer to three"
            if name in REMEMBERING:
                await model.settled()
                said = [text for turn in ("one", "two", "three") for text in (turn, answer(turn))]
                assert sorted(record.text for record in await ann.list(limit=100)) == sorted(said)


@pytest.mark.parametrize("name", each(*HEARING))
async def test_an_owner_whose_quota_is_full_still_gets_answers_from_what_is_known(
    drive: Drive, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Memory(tmp_path / "memory.db", embedder=None, quota=Quota(records=1)) as memory:
        ann = memory.bind(app="demo", user="ann")
        await ann.add("Ann's tea is jasmine tea")
        with caplog.at_level(logging.WARNING):
            async with drive(name, Setting(ann, lambda _: "Jasmine.")) as model:
                assert await model.say("Which tea is Ann's tea?") == "Jasmine."
                assert "jasmine tea" in model.prompt()
        assert [record.text for record in await ann.list()] == ["Ann's tea is jasmine tea"]
    assert "QuotaExceededError" in caplog.text
