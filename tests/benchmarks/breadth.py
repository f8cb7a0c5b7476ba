"""The default search on every corpus of `tests/corpora`, beside what anybody could write in an afternoon.

    python tests/benchmarks/breadth.py [CORPUS ...] [--by-owner] [--json FILE]

Every owner of a corpus is an owner of one memory; all questions are asked with `search(limit=25)`. Beside it stand BM25
with stemming (PyStemmer) and without stop words, cosine of the default embedder on the bare text, and the reciprocal
rank fusion of the two (k = 60). R@k is the share of a question's evidence among the first k, averaged over the
questions; `empty` the share of questions that found nothing; `silent` the share of unanswerable questions for which the
default search rightly finds nothing.

`margin` is the difference between the default search and the best baseline at each k, `+-` the standard error of that
difference over the questions. The exit status is 1 if at any k of any corpus the default search is below the best
baseline by more than that error.

--by-owner   also the figures of every owner, which of `languages` is every language
--json       write every question's ranks too, for a paired test of two versions
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

import numpy as np
import Stemmer
from numpy.typing import NDArray

from memory_core import BoundMemory, Memory, MiniLmEmbedder

sys.path.insert(0, str(Path(__file__).parents[2]))  # a script finds only what is in its own folder

from tests.corpora.loading import CORPORA, Owner, owners

KS: Final = (1, 5, 10, 25)
OURS: Final = "default"
BASELINES: Final = ("BM25", "cosine", "RRF")
FUSION: Final = 60
"""k of Cormack, Clarke and Buettcher, SIGIR 2009."""
SATURATION, LENGTH = 1.2, 0.75
"""k1 and b of BM25, the values that Lucene uses."""
STOP_WORDS: Final = """
a about am an and any are as at be been but by can could did do does for from had has have he her him his how i if in is
it its me my no not of on or our s she should so some t than that the their them then there they this to us was we were
what when where which who whom whose why will with would you your
"""
HAN_AND_KANA: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")


@dataclass(frozen=True)
class Answer:
    """The ranks at which a system found the evidence of one question."""

    owner: str
    question: str
    ranks: tuple[int, ...]
    """From 1, of the evidence that is among the first 25."""
    evidence: int
    """The number of records that it takes."""
    empty: bool

    def recall(self, k: int) -> float:
        return sum(rank <= k for rank in self.ranks) / self.evidence


Answers = Mapping[str, Sequence[Answer]]
"""By system, in the order of the questions."""


@dataclass(frozen=True)
class Found:
    """The answers that were found for an owner or a corpus."""

    answers: Answers
    silent: Sequence[bool]
    """For each unanswerable question whether the default search found nothing."""


def terms(text: str) -> list[str]:
    """Stems of the words that mean something; runs of Han and kana, which have no spaces, as pairs of characters."""
    words = re.findall(r"[^\W_]+", HAN_AND_KANA.sub(lambda run: f" {_pairs(run.group())} ", text.lower()))
    meaningful = [word for word in words if word not in STOP_WORDS.split()]
    stems: list[str] = Stemmer.Stemmer("english").stemWords(meaningful)
    return stems


def _pairs(run: str) -> str:
    return " ".join(run[at : at + 2] for at in range(max(1, len(run) - 1)))


class Baselines:
    """Three rankings of the same texts."""

    def __init__(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        self._texts = [Counter(terms(text)) for text in texts]
        self._holding = Counter(word for text in self._texts for word in text)
        self._mean = fmean(text.total() for text in self._texts)
        self._vectors = vectors

    def rank(self, question: str, vector: NDArray[np.float32]) -> dict[str, list[int]]:
        """Positions of texts by baseline, best first."""
        words = [self._bm25(set(terms(question)), text) for text in self._texts]
        by_words = [position for position in _descending(words) if words[position] > 0]
        by_meaning = _descending((self._vectors @ vector).tolist())
        fused = [0.0] * len(self._texts)
        for ranked in (by_words, by_meaning):
            for rank, position in enumerate(ranked, start=1):
                fused[position] += 1 / (FUSION + rank)
        return dict(zip(BASELINES, (by_words, by_meaning, _descending(fused)), strict=True))

    def _bm25(self, asked: set[str], text: Counter[str]) -> float:
        damping = SATURATION * (1 - LENGTH + LENGTH * text.total() / self._mean)
        return sum(
            self._rarity(word) * text[word] * (SATURATION + 1) / (text[word] + damping) for word in asked if text[word]
        )

    def _rarity(self, word: str) -> float:
        holding = self._holding[word]
        return math.log(1 + (len(self._texts) - holding + 0.5) / (holding + 0.5))


def _descending(scores: Sequence[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda position: -scores[position])


async def ask(handle: BoundMemory, question: str) -> list[str]:
    """Ids of what the default search finds, best first."""
    return [str(hit.record.source_key) for hit in await handle.search(question, limit=max(KS))]


async def measure(memory: Memory, corpus: str) -> dict[str, Found]:
    """The answers that were found, by owner."""
    found: dict[str, Found] = {}
    for owner in owners(corpus):
        handle = memory.bind(app=corpus, user=owner.name)
        await handle.add_many(owner.records)
        silent = [not await ask(handle, question.text) for question in owner.unanswerable]
        found[owner.name] = Found(await answer(handle, owner), silent)
    return found


def together(parts: Collection[Found]) -> Found:
    """The answers that were found for several owners, as one."""
    systems = {system: [one for part in parts for one in part.answers[system]] for system in (OURS, *BASELINES)}
    return Found(systems, [silent for part in parts for silent in part.silent])


async def answer(handle: BoundMemory, owner: Owner) -> Answers:
    """The answers of every system to an owner's questions."""
    embedder = MiniLmEmbedder()
    texts, ids = [draft.text for draft in owner.records], [str(draft.source_key) for draft in owner.records]
    baselines = Baselines(texts, np.asarray(await embedder.embed_documents(texts), np.float32))
    answers: defaultdict[str, list[Answer]] = defaultdict(list)
    for question in owner.questions:
        vector = np.asarray(await embedder.embed_query(question.text), np.float32)
        found = {OURS: await ask(handle, question.text)}
        found |= {name: [ids[at] for at in order] for name, order in baselines.rank(question.text, vector).items()}
        for system, ranked in found.items():
            ranks = tuple(rank for rank, key in enumerate(ranked[: max(KS)], start=1) if key in question.evidence)
            answers[system].append(Answer(owner.name, question.text, ranks, len(question.evidence), not ranked))
    await embedder.close()
    return answers


def difference(answers: Answers, k: int) -> tuple[float, float]:
    """The lead of the default search over the best baseline at `k`, and its standard error; in points."""
    recalls = {system: np.array([100 * one.recall(k) for one in some]) for system, some in answers.items()}
    best = max(BASELINES, key=lambda system: float(recalls[system].mean()))
    gaps = recalls[OURS] - recalls[best]
    return float(gaps.mean()), float(gaps.std(ddof=1)) / math.sqrt(len(gaps))


def report(title: str, found: Found) -> None:
    answers, silent = found.answers, found.silent
    print(
        f"\n{title}: {len(answers[OURS])} questions; silent at {fmean(silent):.0%} of {len(silent)} unanswerable ones"
    )
    print(f"{'':10}" + "".join(f"{f'R@{k}':>7}" for k in KS) + f"{'empty':>7}")
    for system in (OURS, *BASELINES):
        some = answers[system]
        recalls = "".join(f"{100 * fmean(one.recall(k) for one in some):7.1f}" for k in KS)
        print(f"{system:10}{recalls}{fmean(one.empty for one in some):7.0%}")
    margins = [difference(answers, k) for k in KS]
    print(f"{'margin':10}" + "".join(f"{margin:+7.1f}" for margin, _ in margins))
    print(f"{'+-':10}" + "".join(f"{error:7.1f}" for _, error in margins), flush=True)


def lost(answers: Answers) -> list[int]:
    """Every k at which the best baseline is better by more than one standard error."""
    return [k for k in KS if (margin := difference(answers, k))[0] < -margin[1]]


async def main(corpora: Sequence[str], *, by_owner: bool) -> tuple[bool, Mapping[str, object]]:
    """True if no corpus is lost, and by corpus all that was found."""
    behind: list[str] = []
    everything: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "breadth.db") as memory:
            for corpus in corpora:
                owned = await measure(memory, corpus)
                found = together(owned.values())
                report(corpus, found)
                for owner, part in owned.items() if by_owner else ():
                    report(f"{corpus}, {owner}", part)
                behind += [f"{corpus} R@{k}" for k in lost(found.answers)]
                everything[corpus] = asdict(found)
    print(f"\nbelow the best baseline: {', '.join(behind) or 'nothing'}")
    return not behind, everything


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", help=f"any of {', '.join(CORPORA)}; all by default")
    parser.add_argument("--by-owner", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    wanted = parser.parse_args()
    if unknown := set(wanted.corpora) - set(CORPORA):
        parser.error(f"no such corpus: {', '.join(sorted(unknown))}; there are {', '.join(CORPORA)}")
    won, everything = asyncio.run(main(wanted.corpora or CORPORA, by_owner=wanted.by_owner))
    if wanted.json:
        wanted.json.write_text(json.dumps(everything, ensure_ascii=False), encoding="utf-8")
    sys.exit(not won)
