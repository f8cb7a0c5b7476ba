"""The smallest budget at which `recall` holds as much evidence as at its default one, before and after `maintain`.

    python tests/benchmarks/smallest_block.py [CORPUS ...] [--any] [--step CHARS]

A corpus is one of `tests/corpora`, or the path of a file in their format, without ".jsonl". A question counts

- under `whole`, where the whole text of its evidence stands in the block: what "as before" means here, since only then
  nothing of it is lost;
- under `words`, where its evidence stands there at least in part, with one of the texts that the question's line of the
  file lists under "words"; only for files that have them;
- under `shown`, where its evidence stands there at least in part, whether or not this part answers.

The budgets count characters (`max_chars`), and go up to the default one. A larger budget may hold less, because it also
shows more of each long text; the smallest is the first one that holds enough.

--any    each evidence of a question answers it alone; otherwise a question counts where all of it is there
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))  # a script finds only what is in its own folder

from memory_core import BoundMemory, Memory, maintain
from memory_core.lifecycle import ExtractiveSummarizer
from memory_core.recall.quoting import printable
from memory_core.recall.values import DEFAULT_CHARS, Recalled
from tests.corpora.loading import CORPORA, Owner, Question, lines, owners

BATCH: Final = 1_000
"""Records that are added at once."""
Curve = Mapping[int, Counter[str]]
"""By budget, how many questions count under which heading."""
Words = Mapping[str, Sequence[str]]
"""By question, texts of which each answers it."""
Enough = Callable[[Iterable[bool]], bool]
"""`any` or `all` of a question's evidence."""


async def curve(handle: BoundMemory, owner: Owner, words: Words, enough: Enough, budgets: Iterable[int]) -> Curve:
    texts = {str(draft.source_key): draft.text for draft in owner.records}
    found: dict[int, Counter[str]] = {}
    for budget in budgets:
        found[budget] = Counter()
        for question in owner.questions:
            block = await handle.recall(question.text, max_chars=budget)
            found[budget].update(held(block, question, texts, words.get(question.text, ()), enough))
    return found


def held(
    block: Recalled, question: Question, texts: Mapping[str, str], words: Sequence[str], enough: Enough
) -> Iterable[str]:
    """The headings under which a question counts."""
    present = {str(record.source_key) for record in block.records}
    said = block.text.casefold()
    if enough(printable(texts[key], 2 * len(texts[key])) in block.text for key in question.evidence):
        yield "whole"
    if enough(key in present for key in question.evidence):
        yield "shown"
        if any(printable(each, 2 * len(each)).casefold() in said for each in words):
            yield "words"


def smallest(found: Curve, heading: str, wanted: int) -> str:
    """The first budget with so many questions under a heading."""
    return next((f"{budget:,}" for budget, counts in found.items() if counts[heading] >= wanted), "-")


async def measure(corpus: str, enough: Enough, budgets: Sequence[int]) -> list[tuple[str, Curve]]:
    """The curve of all owners together: before, and after each way of maintaining."""
    words = {line["question"]: line.get("words", ()) for line in lines(corpus) if "question" in line}
    ways = ("before", "after maintain", "after maintain with summaries")
    every: dict[str, dict[int, Counter[str]]] = {way: {budget: Counter() for budget in budgets} for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "block.db") as memory:
            for owner in owners(corpus):
                handle = memory.bind(user=owner.name)
                for at in range(0, len(owner.records), BATCH):
                    await handle.add_many(owner.records[at : at + BATCH])
                for way in ways:
                    if way != ways[0]:
                        await maintain(handle, summarizer=ExtractiveSummarizer() if way == ways[2] else None)
                    for budget, counts in (await curve(handle, owner, words, enough, budgets)).items():
                        every[way][budget] += counts
    return list(every.items())


def report(corpus: str, curves: Sequence[tuple[str, Curve]]) -> None:
    headings = [name for name in ("whole", "words", "shown") if any(name in each for each in curves[0][1].values())]
    budgets = list(curves[0][1])
    print(f"\n{corpus}: questions held in a block of so many characters")
    print(f"{'':38}" + "".join(f"{budget:6}" for budget in budgets) + "   enough from")
    for heading in headings:
        wanted = curves[0][1][budgets[-1]][heading]
        for way, found in curves:
            row = "".join(f"{found[budget][heading]:6}" for budget in budgets)
            print(f"{heading:7}{way:31}{row}   {smallest(found, heading, wanted)} ({wanted})", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", help=", ".join(CORPORA))
    parser.add_argument("--any", action="store_true")
    parser.add_argument("--step", type=int, default=250)
    arguments = parser.parse_args()
    steps = [*range(arguments.step, DEFAULT_CHARS, arguments.step), DEFAULT_CHARS]
    for chosen in arguments.corpora or CORPORA:
        report(chosen, asyncio.run(measure(chosen, any if arguments.any else all, steps)))
