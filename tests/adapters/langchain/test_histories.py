"""Generated histories: nobody is said to have said what their runs did not bring, and what people take out is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent

from tests.adapters.langchain.threads.histories import History, Played, Stage, history_of
from tests.adapters.langchain.threads.watching import EVERY, CountingSaver, Setting, numbered, setting_of
from tests.torture import TORTURE

KINDS: list[Any] = [one.values[0] for one in EVERY]
FEW = len(KINDS)
SEEDS = [
    pytest.param(seed, marks=[pytest.mark.torture] if seed >= FEW else []) for seed in range(1_000 if TORTURE else FEW)
]


@pytest.mark.uncovered
@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_is_followed(seed: int, tmp_path: Path) -> None:
    kind, history = KINDS[seed % len(KINDS)], history_of(seed)
    with setting_of(kind, tmp_path) as setting:
        for played in invocations(setting, history):
            check(history, played, is_stored=setting.durability != "exit")


def invocations(setting: Setting, history: History) -> list[Played]:
    def agent(*middleware: Any, last: list[Any], **options: Any) -> Any:
        return create_agent(numbered(), middleware=[*middleware, setting.watcher(), *last], **options)

    stage = Stage(setting, history.shape, agent, CountingSaver())
    return [played for act in history.acts if (played := stage.play(act)) is not None]


def check(history: History, played: Played, *, is_stored: bool) -> None:
    turn, shape = played.turn, history.shape
    if is_stored or shape.node == "none":  # else nodes cannot be told from people
        assert set(turn.asked) <= set(played.brought), played
    is_hidden = shape.form == "called by a node" and shape.node in {"supervise", "rewrite"}  # the agent sees only that
    if turn.changes and played.question is not None and not is_hidden:
        assert played.question in turn.asked or (not is_stored and shape.node != "none"), played
    assert turn.left <= played.gone, played
    if turn.changes and is_stored:
        assert played.removed <= turn.left, played
    written = {message.text for one in turn.changes for message in one.edited.values()}
    assert written <= {f"{words}{mark}" for words in played.edited for mark in ("", ", edited")}, played
