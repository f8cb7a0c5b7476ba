"""Messages that a person has left, and what a conversation knows of what is stored."""

# ruff: noqa: S101, S311  (a contract is made of assertions, and these changes of the same random ones)

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Final

from memory_core import BoundMemory, Draft, Memory, MemoryRecord, Message, Patch, RecallOptions, Where, run_sync
from memory_core.handle import known
from memory_core.models import STATES, Known
from memory_core.testing.base import Contract, Ticks, add, everything, texts
from memory_core.where.where import ANY_STATE, EVERYTHING

_LEFT: Final = Where(left=True)
_BOTH: Final = Where(left=None)
_PIER: Final = "the pier"
_CHANGES: Final = 60
"""Random changes, with a fixed seed."""


def _leave(handle: BoundMemory, record: MemoryRecord) -> MemoryRecord:
    return run_sync(handle.update, record.id, Patch(left=True))


def _ranked(handle: BoundMemory, where: Where = EVERYTHING) -> dict[str, list[tuple[str, float, tuple[str, ...]]]]:
    """The hits of searches, with the score and the names of its parts."""
    found = {
        query: run_sync(handle.search, query, where=where, floor=False, explain=True)
        for query in (_PIER, "on Friday?", "What did Nadia say?")
    }
    return {
        query: [(hit.record.text, round(hit.score, 4), tuple(sorted(hit.components or {}))) for hit in hits]
        for query, hits in found.items()
    }


class LeftContract(Contract):
    """A left record is stored and not read; `known` tells of every record with a key, without its words."""

    def test_reads_skip_what_was_left_until_it_is_resumed(self, ann: BoundMemory) -> None:
        record, _ = add(ann, Draft("old tea", collection="old"), Draft("new tea", collection="new"))
        for times in range(2):
            _leave(ann, record)
            assert texts(everything(ann)) == ["new tea"]
            assert run_sync(ann.collections) == ["new"]
            assert run_sync(ann.collections, _BOTH) == ["new", "old"]
            for mode in ("hybrid", "lexical", "substring"):
                assert texts(run_sync(ann.search, "tea", mode=mode)) == ["new tea"]
                assert texts(run_sync(ann.search, "tea", mode=mode, where=_LEFT)) == ["old tea"]
                assert len(run_sync(ann.search, "tea", mode=mode, where=_BOTH)) == 2
            run_sync(ann.update, record.id, Patch(left=False))
            assert len(run_sync(ann.search, "tea")) == len(everything(ann)) == 2
            assert run_sync(ann.get, record.id) == replace(record, version=3 + 2 * times)

    def test_leaving_is_a_change_like_any_other(self, ann: BoundMemory, clock: Ticks) -> None:
        (record,) = add(ann, "tea")
        clock.advance(hours=1)
        left = _leave(ann, record)
        assert left == replace(record, left=True, updated_at=clock.now, version=2) == run_sync(ann.get, record.id)
        clock.advance(hours=1)
        assert _leave(ann, record) == left

    def test_state_and_left_are_independent(self, ann: BoundMemory) -> None:
        (record,) = add(ann, "tea")
        _leave(ann, record)
        run_sync(ann.update, record.id, Patch(state="compacted"))
        assert everything(ann) == []
        resumed = run_sync(ann.update, record.id, Patch(left=False))
        assert (resumed.state, resumed.left) == ("compacted", False)
        assert texts(run_sync(ann.list, where=Where(states=("compacted",))).records) == ["tea"]

    def test_blocks_and_profiles_show_nothing_that_was_left(self, ann: BoundMemory, clock: Ticks) -> None:
        said = [("user", "Shall we meet on the pier?"), ("assistant", "Yes, on Friday!")]
        question, _ = run_sync(ann.remember, said, session="monday")
        (pinned,) = add(ann, Draft("Ann wants short answers", author="ann", tags=["pinned"]))
        clock.advance(days=1)
        options = RecallOptions(floor=False)
        assert "pier" in run_sync(ann.recall, "Yes, on Friday", options).text
        assert "short" in run_sync(ann.profile).text
        _leave(ann, question)
        _leave(ann, pinned)
        recalled = run_sync(ann.recall, "Yes, on Friday", options, explain=True)
        assert texts(recalled.records) == ["Yes, on Friday!"]
        assert "pier" not in recalled.text
        assert {each.reason for each in recalled.considered if each.hit.record.left} <= {"filter"}
        assert not run_sync(ann.profile).text

    def test_a_left_turn_does_not_stand_between_a_reply_and_its_question(self, ann: BoundMemory) -> None:
        said = [("user", "Shall we meet on the pier?"), ("user", "Never mind."), ("assistant", "Yes, on Friday!")]
        _, between, _ = run_sync(ann.remember, said, session="monday")
        together, options = 'the pier?" assistant: "Yes', RecallOptions(floor=False)
        assert together not in run_sync(ann.recall, "on Friday", options).text
        _leave(ann, between)
        assert together in run_sync(ann.recall, "on Friday", options).text

    def test_what_was_left_ranks_others_no_more_than_what_was_deleted(self, ann: BoundMemory) -> None:
        said = [("user", "Shall we meet on the pier?"), ("assistant", "Yes, on Friday!"), ("user", "The pier is wet.")]
        asked, *_ = run_sync(ann.remember, said, session="monday")
        (fact,) = add(ann, Draft("The pier was built in 1894", author="Nadia"))
        before = _ranked(ann)
        for record in (asked, fact):
            _leave(ann, record)
        left = _ranked(ann)
        assert left != before
        for record in (asked, fact):
            run_sync(ann.delete, record.id)
        assert _ranked(ann) == left

    def test_what_was_left_since_ranks_with_the_past(self, ann: BoundMemory, clock: Ticks) -> None:
        said = [("user", "Shall we meet on the pier?"), ("assistant", "Yes, on Friday!")]
        asked, _ = run_sync(ann.remember, said, session="monday")
        past = Where(as_of=clock.now)
        now, then = _ranked(ann), _ranked(ann, past)
        clock.advance(hours=1)
        _leave(ann, asked)
        assert _ranked(ann, past) == then
        run_sync(ann.update, asked.id, Patch(left=False))
        assert _ranked(ann) == now

    def test_the_past_shows_what_was_left_since(self, ann: BoundMemory, clock: Ticks) -> None:
        (record,) = add(ann, "tea")
        then = clock.now
        clock.advance(hours=1)
        _leave(ann, record)
        assert texts(run_sync(ann.list, where=Where(as_of=then)).records) == ["tea"]
        assert texts(run_sync(ann.search, "tea", where=Where(as_of=then), mode="lexical")) == ["tea"]
        assert everything(ann) == []

    def test_the_history_of_a_left_record_is_whole(self, ann: BoundMemory) -> None:
        (record,) = add(ann, "tea")
        run_sync(ann.update, record.id, Patch(text="coffee"))
        _leave(ann, record)
        assert [version.text for version in run_sync(ann.history, record.id)] == ["tea", "coffee"]

    def test_a_left_message_stays_known_under_its_key(self, ann: BoundMemory) -> None:
        said = [Message("I moved to Porto", id="1"), Message("Warm?", role="assistant", id="2")]
        stored = run_sync(ann.remember, said, session="monday")
        left = [_leave(ann, record) for record in stored]
        assert run_sync(ann.remember, said, session="monday") == left
        assert everything(ann) == []
        assert len(run_sync(ann.list, where=_BOTH)) == 2

    def test_deleting_takes_it_where_it_is_named(self, ann: BoundMemory) -> None:
        one, two, _ = add(ann, Draft("a", session="s"), Draft("b", session="s"), "c")
        _leave(ann, one)
        _leave(ann, two)
        assert run_sync(ann.delete_where, Where(session="s")).records == 0
        run_sync(ann.delete, one.id)
        assert run_sync(ann.delete_where, Where(session="s", left=None)).records == 1
        assert texts(run_sync(ann.list, where=ANY_STATE).records) == ["c"]

    def test_erasing_takes_it_and_counts_tell_of_it(self, ann: BoundMemory) -> None:
        one, _ = add(ann, Draft("a", session="s"), Draft("b", session="s"))
        _leave(ann, one)
        stats = run_sync(ann.stats)
        assert (stats.records, stats.left, dict(stats.by_state)) == (2, 1, {"active": 2})
        assert run_sync(ann.bind(session="s").erase).records == 2
        assert run_sync(ann.get, one.id) is None

    def test_after_any_changes_reads_find_what_is_active_and_was_not_left(self, ann: BoundMemory) -> None:
        stored = {record.id: record for record in add(ann, *(f"tea {number}" for number in range(6)))}
        random, seen = Random(5), set[int]()
        for _ in range(_CHANGES):
            which, is_left = random.choice([*stored]), random.random() < 0.5
            patch = random.choice([Patch(left=is_left), Patch(state=random.choice(STATES)), Patch(state="active")])
            stored[which] = run_sync(ann.update, which, patch)
            wanted = {name for name, each in stored.items() if each.state == "active" and not each.left}
            assert {record.id for record in everything(ann)} == wanted
            for mode in ("hybrid", "lexical", "substring"):
                hits = run_sync(ann.search, "tea", mode=mode, floor=False)
                assert {hit.record.id for hit in hits} == wanted
            seen.add(len(wanted))
        assert len(seen) > 2

    def test_what_is_known_of_a_session_is_every_record_with_a_key(self, ann: BoundMemory, clock: Ticks) -> None:
        monday = [Draft(f"m{n}", source_key=f"key {n}", session="monday", occurred_at=clock.now) for n in range(4)]
        early = replace(monday[0], source_key="early", occurred_at=clock.now - timedelta(days=1))
        gone = replace(monday[0], source_key="gone", expires_at=clock.now + timedelta(hours=1))
        others = [Draft("without a key", session="monday"), Draft("t", source_key="t", session="tuesday"), gone]
        ids = [record.id for record in add(ann, *monday, early, *others)]
        clock.advance(hours=2)
        run_sync(ann.update, ids[1], Patch(left=True))
        run_sync(ann.update, ids[2], Patch(state="archived", text="new text"))
        talk = ann.bind(session="monday")
        assert run_sync(known, talk) == [
            Known("early", ids[4], 1, 1, "active", left=False),
            Known("key 0", ids[0], 1, 1, "active", left=False),
            Known("key 1", ids[1], 1, 2, "active", left=True),
            Known("key 2", ids[2], 2, 2, "archived", left=False),
            Known("key 3", ids[3], 1, 1, "active", left=False),
        ]
        assert [each.key for each in run_sync(known, talk, ["key 3", "key 1", "nobody's", "t"])] == ["key 1", "key 3"]
        assert run_sync(known, talk, []) == []
        assert [each.key for each in run_sync(known, ann.bind(session="tuesday"))] == ["t"]

    def test_what_is_known_is_the_owners_own(self, memory: Memory, ann: BoundMemory) -> None:
        add(ann, Draft("tea", source_key="1", session="s"))
        assert run_sync(known, memory.bind(app="contract", user="bob", session="s")) == []
        assert run_sync(known, ann.bind(session="s", agent="another")) == []

    def test_a_superseded_message_is_known_as_archived(self, ann: BoundMemory) -> None:
        (record,) = add(ann, Draft("tea", source_key="1", session="s"))
        run_sync(ann.supersede, record.id, Draft("coffee", session="s"))
        assert run_sync(known, ann.bind(session="s")) == [Known("1", record.id, 1, 2, "archived", left=False)]
