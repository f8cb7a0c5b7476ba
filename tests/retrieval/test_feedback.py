"""What the best rows have in common counts for rows that say it in other words."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Component, Draft, Hit, Memory
from memory_core.retrieval.feedback import tally
from memory_core.retrieval.postings import Postings, hashes, pack, unpack

TEXTS = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=5).map(" ".join), min_size=1, max_size=30)


@given(TEXTS, st.lists(st.sampled_from("abcdefghxyz"), unique=True, max_size=6))
def test_a_tally_is_the_weight_of_the_terms_each_text_has(texts: list[str], terms: list[str]) -> None:
    packed = [pack(text.split()) for text in texts]
    places = np.array([place for place, text in enumerate(texts) for _ in text.split()], np.int64)
    numbers = hashes(terms)
    weight = dict(zip(numbers.tolist(), range(1, len(terms) + 1), strict=True))
    weights = np.array([weight[number] for number in sorted(weight)], np.float32)
    found = tally(unpack(packed), places, np.sort(numbers), weights, len(texts))
    expected = [sum(weight[int(hashes([term])[0])] for term in set(text.split()) & set(terms)) for text in texts]
    assert found.tolist() == expected


@given(TEXTS, TEXTS, st.lists(st.sampled_from("abcdefghxyz"), unique=True, max_size=6))
def test_how_many_rows_hold_a_term_is_known(bulk: list[str], later: list[str], terms: list[str]) -> None:
    postings = Postings()
    postings.extend(0, [pack(text.split()) for text in bulk])
    for row, text in enumerate(later, len(bulk)):
        postings.extend(row, [pack(text.split())])
    rows = [set(text.split()) for text in bulk + later]
    assert postings.holding(hashes(terms)).tolist() == [sum(term in row for row in rows) for term in terms]


async def test_words_that_the_best_share_decide_between_equals() -> None:
    """Both of the last two have one word of the query; only one has another word that the best records have."""
    regattas = [f"The harbour crew won the regatta on lake {lake}" for lake in ("Como", "Garda", "Bled")]
    ledger = [f"Ledger entry {number}: paper and ink" for number in range(60)]
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        await handle.add_many([Draft(text) for text in (*regattas, *ledger, "He won money", "He won Garda")])
        hits = await handle.search("who won", explain=True)
    alike = {hit.record.text: part.raw for hit in hits for part in _alike(hit)}
    assert alike["He won Garda"] > alike["He won money"]
    assert [hit.record.text for hit in hits].index("He won Garda") < len(hits) - 1


async def test_a_handful_of_records_is_ranked_by_the_query_alone() -> None:
    """Of few records nobody can tell what the best have in common from what all have."""
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        await handle.add_many([f"Crew {number} won lake Garda" for number in range(5)])
        hits = await handle.search("who won", explain=True)
    assert hits
    assert not [part for hit in hits for part in _alike(hit)]


def _alike(hit: Hit) -> list[Component]:
    return [part for name, part in (hit.components or {}).items() if name == "like the best"]


async def test_a_long_text_does_not_have_more_in_common_because_it_is_long() -> None:
    regattas = [f"The harbour crew won the regatta on lake {lake}" for lake in ("Como", "Garda", "Bled")]
    ledger = [f"Ledger entry {number}: paper and ink" for number in range(60)]
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        await handle.add_many([*regattas, *ledger, "He won Garda", "She won Garda" + ", won" * 20])
        hits = await handle.search("who won", explain=True)
    alike = {hit.record.text[:3]: part.raw for hit in hits for part in _alike(hit)}
    assert alike["He "] > alike["She"] > 0


async def test_the_length_of_a_record_by_itself_does_not_matter() -> None:
    notes = [Draft("tea"), Draft("tea, and then " + "talk " * 30)]
    async with Memory(":memory:", embedder=None) as memory:
        for session in (None, "s"):
            handle = memory.bind(app="demo", user=str(session))
            await handle.add_many([replace(note, session=session) for note in notes])
            found = [hit.components or {} for hit in await handle.search("tea", explain=True)]
            lengths = {round(parts["length"].raw, 2) for parts in found if "length" in parts}
            assert lengths == ({0.03, 1.0} if session else set())


async def test_a_long_text_that_mentions_it_says_less_of_what_the_best_share() -> None:
    about = [f"Harbour of Garda, berth {number}" for number in range(2)]
    passing = [f"Harbour of Como {' '.join(f'w{number}x{word}' for word in range(30))}" for number in range(8)]
    ledger = [f"Ledger entry {number}: paper and ink" for number in range(60)]
    rest = ": what else there was to see, taste, smell, hear, touch, buy, sell, mend, paint, and remember of old days"
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        await handle.add_many([*about, *passing, *ledger, f"Harbour near Garda{rest}", f"Harbour near Como{rest}"])
        hits = await handle.search("harbour", limit=12, explain=True)
    alike = {
        hit.record.text.split()[2].strip(":"): part.raw
        for hit in hits
        if "near" in hit.record.text
        for part in _alike(hit)
    }
    assert alike["Como"] < 0.9 * alike["Garda"]
