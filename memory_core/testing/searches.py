"""Searching: hits, modes and explanations."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, cast

import pytest

from memory_core import BoundMemory, Draft, InvalidInputError, Passage, Patch, Where, run_sync
from memory_core.models import Mode
from memory_core.testing.base import Contract, Ticks, add, texts

MODES: Final[tuple[Mode, ...]] = ("hybrid", "lexical", "vector", "substring")

HOSTILE: Final = {
    "quote": '"',
    "quotes": "'\"'",
    "percent": "%_%",
    "near": "NEAR(tea, 5)",
    "star": "*",
    "prefix": "te*",
    "column": "terms: tea",
    "boolean": "AND OR NOT",
    "brackets": "((((((",
    "minus": "-tea ^tea +tea",
    "sql": "'; DROP TABLE record; SELECT '1",
    "pattern": "(?:a+)+$[",
    "format": "{0} %s %n",
    "nul": "tea\0",
    "controls": "".join(map(chr, range(32))),
    "bidi": "\u202e\u200b\ufeff",
    "emoji": "🍵🍵🍵",
    "stop words": "to be or not to be",
    "punctuation": "?!.,;",
    "long word": "x" * 10_000,
    "long text": "tea and biscuits " * 580,
    "dates": "99/99/9999 in year 0 on 31 February 99999 ago",
}


class SearchContract(Contract):
    """Ranked searches."""

    def test_words_find_records_best_first(self, ann: BoundMemory) -> None:
        add(ann, "Ann drinks jasmine tea", "The train leaves at nine", "jasmine")
        for mode in ("hybrid", "lexical"):
            hits = run_sync(ann.search, "jasmine tea", mode=mode)
            assert hits[0].record.text == "Ann drinks jasmine tea"
            assert "The train leaves at nine" not in texts(hits)
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)

    @pytest.mark.parametrize("mode", MODES)
    def test_hits_end_when_their_bytes_are_used_up_and_the_rest_is_named(
        self, ann: BoundMemory, mode: Mode, *, has_vectors: bool
    ) -> None:
        if mode == "vector" and not has_vectors:
            pytest.skip("a store without vectors")
        add(ann, *(f"harbour {number} " + "boat " * 2_000 for number in range(30)))
        every = run_sync(ann.search, "harbour", limit=25, mode=mode, floor=False)
        assert not every.rest
        hits = run_sync(ann.search, "harbour", limit=25, mode=mode, floor=False, most_bytes=35_000)
        assert [hit.record.id for hit in [*hits]] == [hit.record.id for hit in every][:4]
        assert [*hits.rest] == [hit.record.id for hit in every][4:]
        found, rest = {hit.record.id for hit in hits}, hits.rest
        while rest:
            more = run_sync(
                ann.search, "harbour", limit=25, mode=mode, floor=False, most_bytes=35_000, where=Where(ids=rest)
            )
            assert 0 < len(more) <= 4
            found |= {hit.record.id for hit in more}
            rest = more.rest
        assert found == {hit.record.id for hit in every}

    def test_the_first_hit_comes_whatever_bytes_it_has(self, ann: BoundMemory) -> None:
        add(ann, "harbour " * 1_000)
        hits = run_sync(ann.search, "harbour", most_bytes=1)
        assert len(hits) == 1
        assert not hits.rest

    def test_a_question_about_the_present_finds_the_latest_of_like_statements_first(
        self, ann: BoundMemory, clock: Ticks, *, has_vectors: bool
    ) -> None:
        if not has_vectors:
            pytest.skip("a store without vectors")
        old, new = "The code of the car park is 4471", "The code of the car park is 9035"
        for text in (old, "The windows were washed in spring.", new):
            add(ann, Draft(text, author="ann"))
            clock.advance(days=30)
        asked, limit = "What is the code of the car park?", 3
        now = run_sync(ann.search, asked, limit=limit, explain=True)
        assert texts(now)[:2] == [new, old]
        assert now[0].score > now[1].score
        assert any("later" in (hit.components or {}) for hit in now[:2])
        assert texts(run_sync(ann.search, asked, limit=1)) == [new]
        then = run_sync(ann.search, "What was the code of the car park?", limit=limit, explain=True)
        assert texts(then)[0] == old
        assert all("later" not in (hit.components or {}) for hit in then)

    def test_a_vector_finds_its_text(self, ann: BoundMemory, *, has_vectors: bool) -> None:
        if not has_vectors:
            pytest.skip("a store without vectors")
        add(ann, "Ann drinks jasmine tea", "The train leaves at nine")
        hits = run_sync(ann.search, "Ann drinks jasmine tea", mode="vector")
        assert hits[0].record.text == "Ann drinks jasmine tea"
        assert hits[0].similarity == pytest.approx(hits[0].score)
        assert 0.0 <= (hits[0].similarity or -1.0) <= 1.0

    def test_without_vectors_nothing_is_similar(self, ann: BoundMemory, *, has_vectors: bool) -> None:
        if has_vectors:
            pytest.skip("a store with vectors")
        add(ann, "tea")
        assert [hit.similarity for hit in run_sync(ann.search, "tea")] == [None]

    def test_a_substring_ignores_case_and_comes_newest_first(self, ann: BoundMemory) -> None:
        add(ann, "JASMINE", "train", "xjasminey", "straße")
        assert texts(run_sync(ann.search, "jasmine", mode="substring")) == ["xjasminey", "JASMINE"]
        assert texts(run_sync(ann.search, "STRASSE", mode="substring")) == ["straße"]
        assert run_sync(ann.search, "%", mode="substring") == []

    @pytest.mark.parametrize("mode", MODES)
    def test_nothing_relevant_is_an_empty_list(self, ann: BoundMemory, *, has_vectors: bool, mode: Any) -> None:
        if mode == "vector" and not has_vectors:
            pytest.skip("a store without vectors")
        assert run_sync(ann.search, "tea", mode=mode) == []
        add(ann, "The train leaves at nine", Draft(data={"tea": "tea"}))
        assert run_sync(ann.search, "zyxwvut", mode=mode) == []

    @pytest.mark.parametrize("query", ["", " ", "\n\t"], ids=repr)
    def test_a_blank_query_finds_nothing(self, ann: BoundMemory, query: str) -> None:
        add(ann, "two  spaces \n\t and more")
        for mode in ("hybrid", "lexical", "substring"):
            for floor in (True, False):
                assert run_sync(ann.search, query, mode=mode, floor=floor) == []

    @pytest.mark.parametrize("query", ["?", "!?\u2026 --", "\u00bf\u3002"], ids=ascii)
    def test_punctuation_alone_finds_only_itself(self, ann: BoundMemory, query: str) -> None:
        add(ann, "When does the ferry leave?", f"A note {query}")
        for mode in ("hybrid", "lexical"):
            for floor in (True, False):
                assert run_sync(ann.search, query, mode=mode, floor=floor) == []
        assert run_sync(ann.search, query, mode="substring")

    def test_the_limit_cuts_the_same_ranking(self, ann: BoundMemory) -> None:
        run_sync(ann.add_many, [f"tea number {n} {'tea ' * (n % 4)}" for n in range(30)])
        for mode in ("hybrid", "lexical", "substring"):
            full = run_sync(ann.search, "tea", mode=mode, limit=100)
            assert len(full) == 30
            for limit in (1, 7, 29):
                assert run_sync(ann.search, "tea", mode=mode, limit=limit) == full[:limit]

    def test_filters_apply_before_the_limit(self, ann: BoundMemory) -> None:
        run_sync(ann.add_many, [*["tea tea tea"] * 30, Draft("a tea", kind="fact")])
        for mode in ("hybrid", "lexical", "substring"):
            assert texts(run_sync(ann.search, "tea", mode=mode, limit=1, where=Where(kinds=("fact",)))) == ["a tea"]

    @pytest.mark.parametrize("mode", MODES)
    def test_the_parts_of_an_explanation_sum_to_the_score(
        self, ann: BoundMemory, *, has_vectors: bool, mode: Any
    ) -> None:
        if mode == "vector" and not has_vectors:
            pytest.skip("a store without vectors")
        drafts = [("Ann", "When did you drink tea?"), ("Bob", "I drank tea on May 7"), ("Ann", "tea, Bob!")]
        run_sync(ann.add_many, [Draft(text, author=author, session="s") for author, text in drafts])
        hits = run_sync(ann.search, "tea, Bob!", mode=mode, explain=True)
        assert hits
        for hit in hits:
            assert hit.components is not None
            assert sum(part.weighted for part in hit.components.values()) == pytest.approx(hit.score, abs=1e-5)
        plain = run_sync(ann.search, "tea, Bob!", mode=mode)
        assert [hit.components for hit in plain] == [None] * len(hits)
        assert [(hit.record, hit.score) for hit in plain] == [(hit.record, hit.score) for hit in hits]

    @pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE.keys())
    def test_no_query_is_an_error(self, ann: BoundMemory, query: str) -> None:
        add(ann, Draft("tea and biscuits", author=f"Ann {query[:500]}".replace("\0", "")), "percent % and \" and '")
        for mode in ("hybrid", "lexical", "substring"):
            run_sync(ann.search, query, mode=mode, explain=True)

    def test_a_change_is_found_at_once(self, ann: BoundMemory) -> None:
        (record,) = add(ann, "green tea")
        assert len(run_sync(ann.search, "green")) == 1
        run_sync(ann.update, record.id, Patch(text="black coffee", author="Zoe"))
        assert run_sync(ann.search, "green", mode="lexical") == []
        assert texts(run_sync(ann.search, "coffee", mode="lexical")) == ["black coffee"]
        assert texts(run_sync(ann.search, "Zoe", mode="lexical")) == ["black coffee"]
        assert texts(run_sync(ann.search, "coffee", mode="substring")) == ["black coffee"]

    def test_conditions_apply_to_changes_since_the_last_search(self, ann: BoundMemory, *, has_vectors: bool) -> None:
        green = Where(tags_any=["green"])

        def found() -> set[str]:
            modes: tuple[Mode, ...] = ("lexical", "hybrid", "vector") if has_vectors else ("lexical", "hybrid")
            hits = [texts(run_sync(ann.search, "tea", where=green, mode=mode, floor=False)) for mode in modes]
            assert all(set(each) == set(hits[0]) for each in hits)
            return set(hits[0])

        records = add(ann, *(Draft(f"tea {n}", tags=["green"] if n == 0 else []) for n in range(40)))
        assert found() == {"tea 0"}
        add(ann, Draft("green tea", tags=["green"]), "black tea")
        assert found() == {"tea 0", "green tea"}
        run_sync(ann.update, records[0].id, Patch(tags=[]))
        run_sync(ann.update, records[9].id, Patch(tags=["green"]))
        assert found() == {"tea 9", "green tea"}
        run_sync(ann.update, records[9].id, Patch(text="mint tea"))
        assert found() == {"mint tea", "green tea"}
        run_sync(ann.delete, records[9].id)
        assert found() == {"green tea"}

    def test_a_record_embedded_later_is_found_by_its_words_at_once(self, ann: BoundMemory) -> None:
        run_sync(ann.add, "green tea", embed="later")
        assert texts(run_sync(ann.search, "tea", mode="lexical")) == ["green tea"]

    def test_a_search_by_meaning_alone_needs_vectors(self, ann: BoundMemory, *, has_vectors: bool) -> None:
        add(ann, "tea")
        if has_vectors:
            assert texts(run_sync(ann.search, "tea", mode="vector")) == ["tea"]
            return
        with pytest.raises(InvalidInputError, match=r"embedder=None.*mode='lexical' or 'hybrid'"):
            run_sync(ann.search, "tea", mode="vector")
        assert run_sync(ann.stats).vectors_pending == 0

    def test_only_turns_of_a_conversation_have_neighbors(self, ann: BoundMemory) -> None:
        """A fact has no neighbors, no matter who stated it and in which session."""
        texts_of_session = ["What did the harbour office say?", "Berth fourteen.", "Rain again."]
        run_sync(ann.add_many, [Draft(text, session="notes", kind="fact", role="user") for text in texts_of_session])
        run_sync(ann.add_many, [Draft(text, session="talk", kind="message") for text in texts_of_session])
        hits = run_sync(ann.search, "harbour office", limit=6, floor=False, explain=True)
        parts = {(hit.record.session, hit.record.text): set(hit.components or {}) for hit in hits}
        assert all({"neighbor", "session"}.isdisjoint(parts["notes", text]) for text in texts_of_session)
        assert "neighbor" in parts["talk", "Berth fourteen."]
        assert all("session" in parts["talk", text] for text in texts_of_session)

    def test_an_answer_is_found_by_the_question_before_it(self, ann: BoundMemory) -> None:
        run_sync(ann.add_many, [Draft(f"note {n} on shipping", session="other", kind="message") for n in range(5)])
        turns = ["What did the harbour office say?", "Berth fourteen.", "Rain again."]
        run_sync(ann.add_many, [Draft(text, session="talk", kind="message") for text in turns])
        for mode in ("hybrid", "lexical"):
            found = texts(run_sync(ann.search, "What did the harbour office answer?", mode=mode))
            assert found[:2] == turns[:2]

    def test_a_question_about_what_the_assistant_said_finds_the_assistant(self, ann: BoundMemory) -> None:
        spoken = [("user", "I painted the kitchen door green"), ("assistant", "The kitchen door goes well with green")]
        run_sync(ann.add_many, [Draft(text, role=cast("Any", role)) for role, text in spoken])
        asked = {"What did I paint in the kitchen?": "user", "What did you say about the kitchen door?": "assistant"}
        for question, role in asked.items():
            for mode in ("hybrid", "lexical"):
                assert run_sync(ann.search, question, mode=mode)[0].record.role == role

    def test_every_word_finds_only_what_has_every_word(self, ann: BoundMemory) -> None:
        add(
            ann,
            "order number 4711 was shipped",
            "order number 4712 was shipped",
            "4711",
            Draft("shipped", author="Ann"),
        )
        found = run_sync(ann.search, "Was order 4711 shipped?", every_word=True)
        assert texts(found) == ["order number 4711 was shipped"]
        assert found[0].similarity is None
        assert texts(run_sync(ann.search, "4711", every_word=True, limit=1)) == ["4711"]
        assert run_sync(ann.search, "order 4713", every_word=True) == []
        assert run_sync(ann.search, "to be or not to be", every_word=True) == []

    def test_recency_and_importance_count_when_asked_for(self, ann: BoundMemory, clock: Ticks) -> None:
        old, late = (clock.now - timedelta(hours=hours) for hours in (1000, 1))
        drafts = [("tea one", old, 1.0), ("tea two", late, 0.0), ("tea six", old, 0.0)]
        run_sync(ann.add_many, [Draft(text, occurred_at=at, importance=weight) for text, at, weight in drafts])
        plain = run_sync(ann.search, "tea", explain=True)
        assert all("recency" not in (hit.components or {}) for hit in plain)
        recent = run_sync(ann.search, "tea", recency=1.0, explain=True)
        assert recent[0].record.text == "tea two"
        parts = {hit.record.text: hit.components or {} for hit in recent}
        assert parts["tea two"]["recency"].raw == pytest.approx(0.995, abs=1e-4)
        assert parts["tea one"]["recency"].weighted == pytest.approx(10 * 0.995**1000, abs=1e-4)
        important = run_sync(ann.search, "tea", importance=1.0, explain=True)
        assert important[0].record.text == "tea one"
        assert (important[0].components or {})["importance"].raw == 1.0
        assert "importance" not in (important[1].components or {})
        for name in ("recency", "importance", "diversity"):
            wrong: dict[str, Any] = {name: 1.5}
            with pytest.raises(InvalidInputError, match=name):
                run_sync(ann.search, "tea", **wrong)

    def test_diversity_keeps_repetitions_out(self, ann: BoundMemory) -> None:
        run_sync(ann.add_many, [*["we drink green tea at noon"] * 5, "green tea comes from Uji"])
        assert len(set(texts(run_sync(ann.search, "green tea at noon", limit=2)))) == 1
        for mode in ("hybrid", "lexical", "substring"):
            query = "green tea" if mode == "substring" else "green tea at noon"
            hits = run_sync(ann.search, query, limit=2, diversity=0.8, mode=mode, explain=True)
            assert len(set(texts(hits))) == 2
            for hit in hits:
                assert sum(part.weighted for part in (hit.components or {}).values()) == pytest.approx(
                    hit.score, abs=1e-5
                )

    def test_a_long_text_is_found_by_any_part_of_it_and_shows_that_part(
        self, ann: BoundMemory, *, has_vectors: bool
    ) -> None:
        filler = "and so the afternoon went on without anything else that anybody would remember. " * 15
        subjects = ["walrus moustache", "copper kettle", "violet submarine", "harbour crane"]
        text = "".join(f"Then she told of the {subject}, {filler}" for subject in subjects)
        long, short = add(ann, text, "a short note on kettles")
        modes: list[Mode] = [mode for mode in MODES if has_vectors or mode != "vector"]
        for subject in subjects:
            for mode in modes:
                hits = run_sync(ann.search, subject, mode=mode, floor=False)
                (hit,) = [hit for hit in hits if hit.record.id == long.id]  # once, however many of its parts match
                assert hit.passage is not None
                assert subject in hit.passage.text, mode
                assert hit.passage.text == text[hit.passage.start : hit.passage.stop]
                assert len(hit.passage.text) < len(text) / 3
        (hit,) = run_sync(ann.search, "short note", mode="substring")
        assert hit.passage == Passage(0, len(short.text), short.text)
