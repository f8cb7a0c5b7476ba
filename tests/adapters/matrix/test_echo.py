"""One fact among twenty, asked in many conversations: it is in every prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_core import Memory
from tests.adapters.drivers.driver import Setting
from tests.adapters.drivers.every import each
from tests.adapters.matrix.conftest import Drive
from tests.recall.asking import ANSWER, ASKED, assert_recalled, facts

pytestmark = pytest.mark.slow


def answer(said: str) -> str:
    return ANSWER if "tea" in said.casefold() else "Noted."


@pytest.mark.parametrize("name", each())
async def test_the_prompt_shows_it_every_time(drive: Drive, name: str, tmp_path: Path) -> None:
    async with (
        Memory(tmp_path / "memory.db") as memory,  # recall goes by meaning, too
        drive(name, Setting(memory.bind(app="demo", user="ann"), answer)) as model,
    ):
        for n, fact in enumerate(facts()):
            await model.say(fact, f"fact {n}")
        await model.settled()
        for n, question in enumerate(ASKED):
            await model.say(question, f"asking {n}")
            await model.settled()
            assert_recalled(model.prompt(), question)
