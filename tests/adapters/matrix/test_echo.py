"""One fact among twenty, asked in many conversations: it is in every prompt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from memory_core import Memory, RecallOptions
from tests.adapters.drivers.driver import Setting
from tests.adapters.drivers.every import WITHOUT_OPTIONS, each
from tests.adapters.matrix.conftest import Drive
from tests.recall.asking import ANSWER, ENGLISH, IN_ANY_LANGUAGE, MIXED, assert_recalled, facts

pytestmark = pytest.mark.slow


def answer(said: str) -> str:
    return ANSWER if "tea" in said.casefold() else "Noted."


async def told_and_asked(
    drive: Drive, name: str, file: Path, recall: RecallOptions | None, asked: Sequence[str]
) -> None:
    async with (
        Memory(file) as memory,  # recall goes by meaning, too
        drive(name, Setting(memory.bind(app="demo", user="ann"), answer, recall)) as model,
    ):
        for n, fact in enumerate(facts()):
            await model.say(fact, f"fact {n}")
        await model.settled()
        for n, question in enumerate(asked):
            await model.say(question, f"asking {n}")
            await model.settled()
            assert_recalled(model.prompt(), question)


@pytest.mark.parametrize("name", each())
async def test_the_prompt_shows_it_every_time(drive: Drive, name: str, tmp_path: Path) -> None:
    await told_and_asked(drive, name, tmp_path / "memory.db", None, ENGLISH)


@pytest.mark.parametrize("name", each(*WITHOUT_OPTIONS))
async def test_the_prompt_shows_it_in_any_language(drive: Drive, name: str, tmp_path: Path) -> None:
    await told_and_asked(drive, name, tmp_path / "memory.db", IN_ANY_LANGUAGE, MIXED)
