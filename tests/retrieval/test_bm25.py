"""BM25 of one owner beside the formula written down plainly, for terms of few and of many rows."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.retrieval.bm25 import K1, B, bm25
from memory_core.retrieval.owner_index import Entry, OwnerIndex
from memory_core.retrieval.term_hashes import pack


def entry(key: int, text: str) -> Entry:
    return Entry(key, pack(text.split()), 0, len(text.split()), None, None, 0, None, active=True)


def plainly(texts: dict[int, str], terms: list[str]) -> dict[int, float]:
    counts = {key: Counter(text.split()) for key, text in texts.items()}
    average = sum(sum(count.values()) for count in counts.values()) / len(counts)
    scores = dict.fromkeys(texts, 0.0)
    for term in terms:
        holding = [key for key in texts if term in counts[key]]
        idf = math.log(1 + (len(texts) - len(holding) + 0.5) / (len(holding) + 0.5))
        for key in holding:
            times, length = counts[key][term], sum(counts[key].values())
            scores[key] += idf * times * (K1 + 1) / (times + K1 * (1 - B + B * length / average))
    return scores


@pytest.mark.parametrize("size", [3, 200, 4_500])
def test_every_row_has_the_score_of_the_plain_formula(size: int) -> None:
    """Nothing is pruned: not the terms of many rows, which are added up as columns, nor rows that came or went."""
    dice = random.Random(size)
    texts = {key: " ".join(dice.choices("abcdefghij", range(1, 11), k=dice.randint(1, 12))) for key in range(size)}
    corpus, terms = OwnerIndex(None), ["a", "c", "i", "j", "absent"]
    corpus.extend([entry(key, text) for key, text in texts.items()], [])
    for step in range(3):
        expected = plainly(texts, terms)
        found = bm25(corpus, terms).scores
        assert found[[corpus.row_of[key] for key in texts]] == pytest.approx(list(expected.values()), rel=1e-5)
        assert np.count_nonzero(found) == sum(score > 0 for score in expected.values())
        corpus.remove([step])
        del texts[step]
        texts[size + step] = "a j new"
        corpus.extend([entry(size + step, texts[size + step])], [])


TEXTS = st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=8).map(" ".join), min_size=1, max_size=12)
QUERY = st.lists(st.sampled_from("abcdefg"), unique=True, max_size=5)


def scored(texts: list[str], terms: list[str]) -> list[float]:
    corpus = OwnerIndex(None)
    corpus.extend([entry(key, text) for key, text in enumerate(texts)], [])
    found: list[float] = bm25(corpus, terms).scores.tolist()
    return found


@given(TEXTS, QUERY, st.data())
def test_any_texts_have_the_scores_of_the_plain_formula(
    texts: list[str], terms: list[str], data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.integers(0, len(texts) - 1), max_size=len(texts) - 1))
    corpus = OwnerIndex(None)
    corpus.extend([entry(key, text) for key, text in enumerate(texts)], [])
    corpus.remove(gone)
    left = {key: text for key, text in enumerate(texts) if key not in gone}
    found = bm25(corpus, terms)
    expected = plainly(left, terms)
    assert found.scores.tolist() == pytest.approx([expected.get(key, 0.0) for key in range(len(texts))], rel=1e-5)
    assert (found.ideal > 0.0) == bool(terms)
    assert set(found.missing) == {term for term in terms if not any(term in text.split() for text in left.values())}
    plain, doubted = found.coverage(0.0), found.coverage()
    assert ((doubted <= plain + 1e-6) & (doubted >= 0)).all()
    whole = [key for key, text in left.items() if terms and set(terms) <= set(text.split())]
    assert doubted[whole] == pytest.approx(plain[whole], rel=1e-4)
    assert found.lacking[whole] == pytest.approx([0.0] * len(whole), abs=1e-5)


def test_a_name_counts_in_a_memory_of_five_records_as_in_one_of_five_hundred() -> None:
    shares: list[float] = []
    for size in (5, 500):
        corpus = OwnerIndex(None)
        corpus.extend([entry(0, "mia nut"), *(entry(key, f"other{key} word{key}") for key in range(1, size))], [])
        found = bm25(corpus, ["kitchen", "leave", "mia"])
        shares.append(float(found.coverage()[0]))
        assert found.coverage(0.0)[0] > found.coverage()[0] > 0
    assert shares[0] > shares[1] / 3


@given(TEXTS, QUERY, st.randoms(use_true_random=False))
def test_the_order_of_records_and_words_does_not_matter(
    texts: list[str], terms: list[str], dice: random.Random
) -> None:
    order, expected = dice.sample(range(len(texts)), len(texts)), scored(texts, terms)
    shuffled = scored([texts[row] for row in order], dice.sample(terms, len(terms)))
    assert shuffled == pytest.approx([expected[row] for row in order], rel=1e-5)


@given(TEXTS, st.integers(1, 7))
def test_a_text_that_says_it_more_often_ranks_higher(texts: list[str], times: int) -> None:
    often, seldom = " ".join("x" * times + "y" * (8 - times)), " ".join("x" * (times - 1) + "y" * (9 - times))
    more, less = scored([*texts, often, seldom], ["x"])[-2:]
    assert more > less
