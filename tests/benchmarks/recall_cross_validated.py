"""Recall with every weight of the ranking chosen on the other conversations of a file in LoCoMo's format.

    python tests/benchmarks/recall_cross_validated.py FILE [--words]

For each conversation the weights start plain and climb on the rest, one after the other on a coarse grid, as long as a
step gains something; what they then find in the conversation that was left out is what counts. The form of the rules
stays as it is. See `recall.py` for what is measured; --words does it without vectors.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, Final
from unittest import mock

from memory_core import Memory
from memory_core.embedding.minilm import MiniLmEmbedder
from memory_core.retrieval import ranking
from recall import KS, Conversation, line, load, measure

Weights = Mapping[str, float]
Recalls = Sequence[tuple[float, ...]]

GRID: Final = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
"""Of each weight, in shares of what it is."""
STEPS: Final = (-1, 1, 2, -2)
"""Of a weight on the grid, in the order in which they are tried."""
ROUNDS: Final = 3
LEAST_GAIN: Final = 0.0005
"""Of the mean of recall at 5, 10 and 25: a quarter of a question out of 500."""
PLAIN: Final[Weights] = dict.fromkeys(("WORDS", "LENT", "SESSION", "HINT", "LENGTH"), 0.5)
"""The unit, a spread of the cosines of unrelated texts, stays: the weights are relative to it."""


@dataclass
class Trial:
    """What weights find in conversations that a memory holds, each measured once."""

    memory: Memory
    known: dict[tuple[str, tuple[float, ...]], Recalls] = field(
        default_factory=dict[tuple[str, tuple[float, ...]], Recalls]
    )

    async def recalls(self, conversation: Conversation, weights: Weights) -> Recalls:
        """Recall at `KS` of each question."""
        key = conversation.name, tuple(weights.values())
        if key not in self.known:
            with mock.patch.multiple(ranking, **_constants(weights)):
                found = await measure(self.memory, [conversation], together=False)
            self.known[key] = list(chain.from_iterable(found.values()))
        return self.known[key]

    async def worth(self, conversations: Sequence[Conversation], weights: Weights) -> float:
        recalls = [recall for held in conversations for recall in await self.recalls(held, weights)]
        return fmean(map(fmean, recalls))

    async def climb(self, conversations: Sequence[Conversation]) -> Weights:
        """The weights at which no step on the grid gains anything in these conversations."""
        weights, most = PLAIN, await self.worth(conversations, PLAIN)
        for _ in range(ROUNDS):
            before = weights
            for name, step in [(name, step) for name in PLAIN for step in STEPS]:
                place = GRID.index(weights[name]) + step
                if place in range(len(GRID)):
                    changed = {**weights, name: GRID[place]}
                    gained = await self.worth(conversations, changed)
                    if gained > most + LEAST_GAIN:
                        weights, most = changed, gained
            if weights == before:
                break
        return weights


def _constants(weights: Weights) -> dict[str, Any]:
    return {name: share * getattr(ranking, name) for name, share in weights.items()}


async def main(arguments: argparse.Namespace) -> None:
    conversations = load(arguments.file)
    embedder = None if arguments.words else MiniLmEmbedder()
    async with Memory(":memory:", embedder=embedder) as memory:
        for conversation in conversations:
            await memory.bind(app="recall", user=conversation.name).add_many(conversation.turns)
        trial = Trial(memory)
        print(f"{'':28}    n " + " ".join(f"{f'R@{k}':>6}" for k in KS))
        plain: list[tuple[float, ...]] = []
        chosen: list[tuple[float, ...]] = []
        for left_out in conversations:
            plain += await trial.recalls(left_out, PLAIN)
            weights = await trial.climb([held for held in conversations if held is not left_out])
            chosen += await trial.recalls(left_out, weights)
            print(line(left_out.name, await trial.recalls(left_out, weights)), weights, flush=True)
        print(line("plain weights", plain))
        print(line("cross-validated", chosen))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--words", action="store_true")
    asyncio.run(main(parser.parse_args()))
