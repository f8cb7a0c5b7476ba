"""The part of a prompt that the evidence takes: `recall` beside lists of hits, on every corpus of `tests/corpora`.

    python tests/benchmarks/budget.py [CORPUS ...] [--files FILE ...] [--tokens 500 1000 2000 4000] [--floor] [--peers]

A question counts where all its evidence stands in a block of so many tokens. Beside the block of `recall` stand the
same budgets filled with the whole texts of BM25's, cosine's and their rank fusion's list (see `breadth.py`), and of the
default search's list, each as "author: text" on a line of its own, and the latter also with a date before each line,
since a block has dates; a text that does not fit is passed over, as in the block. In a block a long text counts as
present with the passage that is shown of it, in a list it has to fit whole.

A token is estimated as four characters, rounded up for each line: about right for English with the models of today, too
few for other languages, the same for everybody here.

--files   files in LoCoMo's format instead; see `recall.py`
--peers   also the lists of other memories (see `peers_recall.py`): as many hits as each gives, up to 500
--floor   keep the default search's floor; without it every budget is filled, for recall and for the lists alike
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

import numpy as np

from memory_core import BoundMemory, Draft, Memory, MiniLmEmbedder, RecallOptions

sys.path.insert(0, str(Path(__file__).parents[2]))  # a script finds only what is in its own folder

from breadth import Baselines
from peers_recall import PEERS, Ask
from recall import load
from tests.corpora.loading import CORPORA, Owner, Question, owners

BUDGETS: Final = (500, 1_000, 2_000, 4_000)
_LISTED: Final = 500
"""The number of hits of a list: more than the largest budget holds."""
_DATED: Final = "search, with dates"
_DATE: Final = "2026-01-05 "
_FULL: Final = 8
"""Tokens of the shortest line."""

Shares = Mapping[str, Mapping[int, Sequence[bool]]]
"""By system and budget, for each question, whether all its evidence is there."""


def tokens(text: str) -> int:
    """An estimate: four characters are a token."""
    return (len(text) + 3) // 4


def within(order: Iterable[int], costs: Sequence[int], budget: int) -> set[int]:
    """The texts of a list that fit, best first."""
    held: set[int] = set()
    for at in order:
        if costs[at] <= budget:
            held.add(at)
            budget -= costs[at]
        elif budget < _FULL:
            break
    return held


async def blocks(handle: BoundMemory, question: str, budgets: Sequence[int], *, floor: bool) -> dict[int, set[str]]:
    """By budget the source keys of what stands in the block."""
    held: dict[int, set[str]] = {}
    for budget in budgets:
        block = await handle.recall(
            question, RecallOptions(max_chars=None, max_tokens=budget, count_tokens=tokens, floor=floor)
        )
        if tokens(block.text) > budget:
            raise AssertionError(f"a block of {tokens(block.text)} tokens for a budget of {budget}: {question!r}")
        held[budget] = {str(record.source_key) for record in block.records}
    return held


async def measure(
    memory: Memory, owner: Owner, corpus: str, budgets: Sequence[int], peers: Mapping[str, Ask], *, floor: bool
) -> Shares:
    """The questions of an owner that have all their evidence in each budget."""
    handle = memory.bind(app=corpus, user=owner.name)
    await handle.add_many(owner.records)
    embedder = MiniLmEmbedder()
    texts, keys = [draft.text for draft in owner.records], [str(draft.source_key) for draft in owner.records]
    keyed = dict(zip(reversed(texts), reversed(keys), strict=True))
    place = {key: at for at, key in enumerate(keys)}
    costs = [tokens(_line(draft)) for draft in owner.records]
    dated = [tokens(_DATE + _line(draft)) for draft in owner.records]
    baselines = Baselines(texts, np.asarray(await embedder.embed_documents(texts), np.float32))
    shares: defaultdict[str, defaultdict[int, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for question in owner.questions:
        found = await handle.search(question.text, limit=_LISTED, floor=floor)
        lists = {name: [place[str(hit.record.source_key)] for hit in found] for name in ("search", _DATED)}
        lists |= baselines.rank(question.text, np.asarray(await embedder.embed_query(question.text), np.float32))
        for peer, ask_peer in peers.items():
            lists[peer] = [place[keyed[text]] for text in await ask_peer(question.text, _LISTED) if text in keyed]
        held = await blocks(handle, question.text, budgets, floor=floor)
        for budget in budgets:
            shares["recall"][budget].append(set(question.evidence) <= held[budget])
            for system, order in lists.items():
                present = {keys[at] for at in within(order, dated if system == _DATED else costs, budget)}
                shares[system][budget].append(set(question.evidence) <= present)
    await embedder.close()
    return shares


def report(title: str, parts: Sequence[Shares], budgets: Sequence[int]) -> None:
    count = sum(len(part["recall"][budgets[0]]) for part in parts)
    print(f"\n{title}: {count} questions, share with all evidence in a block of so many tokens")
    print(f"{'':26}" + "".join(f"{budget:8,}" for budget in budgets))
    for system in parts[0]:
        means = (fmean(one for part in parts for one in part[system][budget]) for budget in budgets)
        print(f"{system:26}" + "".join(f"{100 * mean:8.1f}" for mean in means), flush=True)


def _line(draft: Draft) -> str:
    return f"{draft.author or ''}: {draft.text}\n"


def conversations(file: Path) -> list[Owner]:
    """The conversations of a file in LoCoMo's format, each as an owner."""
    return [
        Owner(each.name, each.turns, [Question(one.text, frozenset(one.evidence)) for one in each.questions], [])
        for each in load(file)
    ]


async def main(chosen: Mapping[str, Sequence[Owner]], budgets: Sequence[int], *, floor: bool, with_peers: bool) -> None:
    every: list[Shares] = []
    for corpus, owned in chosen.items():
        parts: list[Shares] = []
        with tempfile.TemporaryDirectory() as folder:
            async with Memory(Path(folder) / "budget.db") as memory:
                for owner in owned:
                    (home := Path(folder) / owner.name).mkdir()
                    peers = {name: await make(owner, home) for name, make in PEERS.items()} if with_peers else {}
                    parts.append(await measure(memory, owner, corpus, budgets, peers, floor=floor))
        report(corpus, parts, budgets)
        every += parts
    if len(chosen) > 1:
        report("all", every, budgets)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", help=", ".join(CORPORA))
    parser.add_argument("--files", nargs="*", type=Path, default=[], metavar="FILE")
    parser.add_argument("--tokens", nargs="+", type=int, default=list(BUDGETS))
    parser.add_argument("--floor", action="store_true")
    parser.add_argument("--peers", action="store_true")
    arguments = parser.parse_args()
    names = arguments.corpora or ([] if arguments.files else CORPORA)
    asyncio.run(
        main(
            {name: owners(name) for name in names} | {file.stem: conversations(file) for file in arguments.files},
            sorted(arguments.tokens),
            floor=arguments.floor,
            with_peers=arguments.peers,
        )
    )
