"""No change spends speed unseen: the counted work of the main operations is what `figures.json` says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.budget.count import Figures, complaints, counted, kept
from tests.budget.counting import Counts
from tests.budget.turns import CLIENTS, LENGTHS

GROWS = {
    "ADK session: add the session",  # is given the whole session each time
    "ADK runner: recall",  # leaves out what the prompt shows, which is the whole session
    "ADK runner: search in a tool",
    "LangChain history: read",  # returns the whole conversation
    "LangChain chain: invoke",  # shows its model the whole conversation
    "LangGraph agent: invoke",  # is given the whole thread each time, and a person may have changed any of it
}
"""Parts of turns whose work grows with the conversation, because that is what they are asked for."""
SLACK = 0.1
"""A block of a longer conversation may hold a record or two more."""


@pytest.mark.parametrize("part", ["operations", pytest.param("turns", marks=pytest.mark.slow)])
def test_an_operation_does_as_much_work_as_is_kept(part: str) -> None:
    figures = {name: found.counts for name, found in counted(part).items()}
    assert figures, "nothing was counted"
    assert [*complaints(figures, kept()[part])] == []


def test_a_turn_does_not_do_more_in_a_longer_conversation() -> None:
    """From 200 messages on, as many as `remember` compares, nothing depends on how many there were before."""
    assert [*growing(kept()["turns"])] == []


def growing(figures: Figures) -> Iterator[str]:
    """A sentence for each part of a turn that does more after more messages."""
    *_, long, longest = (f", after {length} messages" for length in LENGTHS)
    for name, counts in figures.items():
        part = name.removesuffix(long)
        if part == name or part in GROWS:
            continue
        after = figures[part + longest]
        for kind, before, now in zip(Counts._fields, counts, after, strict=True):
            if now > before * (1 + SLACK):
                yield f"{part}: {before} {kind}{long}, and {now}{longest}: find out what grows with the conversation"


def test_every_framework_has_figures() -> None:
    assert {name.partition(":")[0] for name in kept()["turns"]} == set(CLIENTS)


KEPT = {"search": Counts(4, 0, 3, 300)}


@pytest.mark.parametrize("counts", [Counts(4, 0, 3, 300), Counts(4, 0, 3, 330), Counts(4, 0, 3, 270)])
def test_calls_within_the_margin_are_fine(counts: Counts) -> None:
    assert [*complaints({"search": counts}, KEPT)] == []


@pytest.mark.parametrize(
    "counts", [Counts(5, 0, 3, 300), Counts(4, 1, 3, 300), Counts(4, 0, 4, 300), Counts(4, 0, 3, 331)]
)
def test_a_rise_has_to_be_explained(counts: Counts) -> None:
    (sentence,) = complaints({"search": counts}, KEPT)
    assert "does more" in sentence


@pytest.mark.parametrize("counts", [Counts(3, 0, 3, 300), Counts(4, 0, 2, 300), Counts(4, 0, 3, 269)])
def test_a_fall_lowers_the_figure(counts: Counts) -> None:
    (sentence,) = complaints({"search": counts}, KEPT)
    assert "lower the figure" in sentence


def test_a_new_operation_needs_figures() -> None:
    assert len([*complaints({"search": Counts(4, 0, 3, 300), "forget": Counts(1, 1, 1, 1)}, KEPT)]) == 1
