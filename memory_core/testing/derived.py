"""A contract: a record that was made of the words of others has their life."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_core import BoundMemory, ConflictError, Deleted, Draft, Link, MemoryRecord, Patch, Where, run_sync
from memory_core.models import Relation
from memory_core.testing.base import Contract, Ticks, add, everything, texts
from memory_core.values.limits import MAX_LINKS
from memory_core.where.where import ANY_STATE


def _made(text: str, relation: Relation, *sources: MemoryRecord, links: Sequence[Link] = ()) -> Draft:
    read = [Link(relation, each.id, each.rev, each.session, each.collection, each.agent) for each in sources]
    return Draft(text, kind="fact", links=[*read, *links])


def _stored(handle: BoundMemory) -> set[str]:
    """The texts of all records, in every state."""
    return {record.text for record in run_sync(handle.list, where=ANY_STATE, limit=1_000).records}


def _superseded_by(handle: BoundMemory, record: MemoryRecord) -> set[str]:
    """The ids of what a stored record supersedes."""
    stored = run_sync(handle.get, record.id)
    assert stored is not None
    return {link.id for link in stored.links if link.relation == "supersedes"}


def _links(handle: BoundMemory, record: MemoryRecord) -> tuple[Link, ...]:
    """The links that a record has now."""
    stored = run_sync(handle.get, record.id)
    assert stored is not None
    return stored.links


class DerivedContract(Contract):
    """Derived records go, are left and come back with their sources."""

    @pytest.mark.parametrize("relation", ["derived_from", "summarizes"])
    def test_it_is_deleted_with_any_of_its_sources(self, ann: BoundMemory, relation: Relation) -> None:
        code, tea, _ = add(ann, "the door code is 2231", "I drink tea", "I live in Oslo")
        (fact,) = add(ann, _made("code 2231, tea", relation, code, tea))
        add(ann, _made("a summary of the fact", "summarizes", fact))
        run_sync(ann.delete, code.id)
        assert _stored(ann) == {"I drink tea", "I live in Oslo"}

    def test_a_deletion_says_how_many_have_gone_with_it(self, ann: BoundMemory) -> None:
        def delete(source: MemoryRecord, how: str) -> Deleted:
            if how == "id":
                return run_sync(ann.delete, source.id)
            if how == "version":
                return run_sync(ann.delete_exactly, {source.id: source.version})
            return run_sync(ann.delete_where, Where(ids=(source.id,)))

        for how in ("id", "version", "conditions"):
            source, _ = add(ann, "the code is 2231", "I drink tea")
            (fact,) = add(ann, _made("Ann's code is 2231", "derived_from", source))
            add(ann, _made("a summary of the fact", "summarizes", fact))
            assert delete(source, how) == Deleted(1, derived=2)
        assert run_sync(ann.delete_where, Where()) == Deleted(3)

    def test_what_only_says_the_same_stays(self, ann: BoundMemory) -> None:
        one, two = add(ann, Draft("I drink tea", session="monday"), Draft("I drink tea", session="friday"))
        read = [Link("confirmed_by", two.id), Link("read", two.id)]
        (fact,) = add(ann, _made("Ann drinks tea", "derived_from", one, links=read))
        run_sync(ann.bind(session="friday").erase)
        kept = run_sync(ann.get, fact.id)
        assert kept is not None
        assert kept.links == (Link("derived_from", one.id),)

    def test_a_source_that_is_gone_left_or_changed_is_refused(self, ann: BoundMemory) -> None:
        gone, left, changed, same = add(ann, "gone", "left", "changed", "same")
        run_sync(ann.delete, gone.id)
        run_sync(ann.update, left.id, Patch(left=True))
        run_sync(ann.update, changed.id, Patch(text="changed since"))
        run_sync(ann.update, same.id, Patch(tags=("tea",)))
        for source in (gone, left, changed):
            with pytest.raises(ConflictError, match=source.id):
                add(ann, _made("a fact", "derived_from", same, source))
            with pytest.raises(ConflictError, match=source.id):
                run_sync(ann.add_many, ["beside it", _made("a fact", "derived_from", source)])
        add(ann, _made("of the same", "derived_from", same))
        assert texts(everything(ann)) == ["changed since", "same", "of the same"]

    def test_it_is_left_while_a_source_is(self, ann: BoundMemory) -> None:
        one, two = add(ann, "one", "two")
        (fact,) = add(ann, _made("of both", "derived_from", one, two))
        add(ann, _made("of that", "summarizes", fact))
        for source in (one, two):
            run_sync(ann.update, source.id, Patch(left=True))
            assert not {"of both", "of that"} & set(texts(everything(ann)))
        run_sync(ann.update, one.id, Patch(left=False))
        assert texts(everything(ann)) == ["one"]
        run_sync(ann.update, two.id, Patch(left=False))
        assert texts(everything(ann)) == ["one", "two", "of both", "of that"]

    def test_it_is_left_when_a_source_is_edited(self, ann: BoundMemory) -> None:
        (source,) = add(ann, "the code is 2231")
        add(ann, _made("Ann's code is 2231", "derived_from", source))
        run_sync(ann.update, source.id, Patch(importance=1.0))
        assert len(everything(ann)) == 2
        edited = run_sync(ann.update, source.id, Patch(text="the code is 8874"))
        assert texts(everything(ann)) == ["the code is 8874"]
        add(ann, _made("Ann's code is 8874", "derived_from", edited))
        assert texts(everything(ann)) == ["the code is 8874", "Ann's code is 8874"]

    def test_what_it_had_replaced_is_true_again(self, ann: BoundMemory, clock: Ticks) -> None:
        ends = clock.now + timedelta(days=90)
        (oslo,) = add(ann, Draft("Ann lives in Oslo", kind="fact", valid_to=ends))
        (said,) = add(ann, "I have moved to Bergen")
        (bergen,) = add(ann, _made("Ann lives in Bergen", "derived_from", said, links=[Link("supersedes", oslo.id)]))
        assert texts(everything(ann)) == ["I have moved to Bergen", "Ann lives in Bergen"]
        run_sync(ann.delete, said.id)
        (again,) = everything(ann)
        assert (again.text, again.valid_to) == ("Ann lives in Oslo", ends)
        assert run_sync(ann.get, bergen.id) is None

    def test_an_heir_replaces_what_it_had_replaced(self, ann: BoundMemory) -> None:
        (oslo,) = add(ann, Draft("Ann lives in Oslo", kind="fact"))
        (said,) = add(ann, "I have moved to Bergen")
        (bergen,) = add(ann, _made("Ann lives in Bergen", "derived_from", said, links=[Link("supersedes", oslo.id)]))
        rome = run_sync(ann.supersede, bergen.id, "Ann lives in Rome")
        run_sync(ann.delete, said.id)
        assert texts(everything(ann)) == ["Ann lives in Rome"]
        kept = run_sync(ann.get, rome.id)
        assert kept is not None
        assert kept.links == (Link("supersedes", oslo.id),)

    def test_in_a_chain_of_three_the_heir_replaces_the_predecessor(self, ann: BoundMemory, clock: Ticks) -> None:
        ends = clock.now + timedelta(days=90)
        (oslo,) = add(ann, Draft("Ann lives in Oslo", kind="fact", valid_to=ends))
        moved, again, last = add(ann, "to Bergen", "to Rome", "to Paris")
        (bergen,) = add(ann, _made("in Bergen", "derived_from", moved, links=[Link("supersedes", oslo.id)]))
        (rome,) = add(ann, _made("in Rome", "derived_from", again, links=[Link("supersedes", bergen.id)]))
        (paris,) = add(ann, _made("in Paris", "derived_from", last, links=[Link("supersedes", rome.id)]))
        run_sync(ann.delete, again.id)
        assert _superseded_by(ann, paris) == {bergen.id}
        run_sync(ann.delete, moved.id)
        assert _superseded_by(ann, paris) == {oslo.id}
        assert texts(everything(ann)) == ["to Paris", "in Paris"]
        run_sync(ann.delete, last.id)
        (back,) = everything(ann)
        assert (back.text, back.valid_to, back.state) == ("Ann lives in Oslo", ends, "active")

    def test_a_chain_that_goes_at_once_gives_back_what_it_began_with(self, ann: BoundMemory) -> None:
        (oslo,) = add(ann, Draft("Ann lives in Oslo", kind="fact"))
        (said,) = add(ann, "first to Bergen, then to Rome")
        (bergen,) = add(ann, _made("in Bergen", "derived_from", said, links=[Link("supersedes", oslo.id)]))
        add(ann, _made("in Rome", "derived_from", said, links=[Link("supersedes", bergen.id)]))
        run_sync(ann.delete, said.id)
        (back,) = everything(ann)
        assert (back.text, back.valid_to) == ("Ann lives in Oslo", None)

    def test_what_follows_a_deletion_is_not_bounded_by_the_scope_of_the_handle(self, ann: BoundMemory) -> None:
        """The scope bounds what is named. What is undone with it are records of the owner."""
        turns = add(ann, Draft("one", session="monday"), Draft("two", session="friday"))
        weekly = ann.bind(session="friday")
        (summary,) = add(weekly, _made("both", "summarizes", *turns))
        for turn in turns:
            run_sync(ann.update, turn.id, Patch(state="compacted"))
        assert everything(ann.bind(session="monday")) == []
        run_sync(weekly.delete, summary.id)
        assert texts(everything(ann)) == ["one", "two"]
        (fact,) = add(ann, _made("of one", "derived_from", turns[0]))
        run_sync(ann.bind(session="monday").erase)
        assert run_sync(ann.get, fact.id) is None

    def test_turns_of_a_deleted_summary_are_active_again(self, ann: BoundMemory) -> None:
        turns = add(ann, "one", "two", "three")
        (summary,) = add(ann, _made("one to three", "summarizes", *turns))
        for turn in turns[:2]:
            run_sync(ann.update, turn.id, Patch(state="compacted"))
        run_sync(ann.update, turns[2].id, Patch(state="archived"))
        run_sync(ann.delete, summary.id)
        assert texts(everything(ann)) == ["one", "two"]

    def test_a_turn_that_another_summary_covers_stays_compacted(self, ann: BoundMemory) -> None:
        one, two = add(ann, "one", "two")
        (first,) = add(ann, _made("first", "summarizes", one, two))
        add(ann, _made("second", "summarizes", two))
        for turn in (one, two):
            run_sync(ann.update, turn.id, Patch(state="compacted"))
        run_sync(ann.delete, first.id)
        assert texts(everything(ann)) == ["one", "second"]

    def test_turns_of_a_summary_that_is_left_are_active_again(self, ann: BoundMemory) -> None:
        one, two, three = add(ann, "one", "two", "three")
        add(ann, _made("one and two", "summarizes", one, two), _made("two and three", "summarizes", two, three))
        for turn in (one, two, three):
            run_sync(ann.update, turn.id, Patch(state="compacted"))
        run_sync(ann.update, two.id, Patch(text="two, or three"))
        assert texts(everything(ann)) == ["one", "two, or three", "three"]

    def test_what_has_expired_leaves_what_was_made_of_it(self, ann: BoundMemory, clock: Ticks) -> None:
        expires = clock.now + timedelta(days=1)
        (source,) = add(ann, Draft("I am in Oslo", session="monday", expires_at=expires))
        (fact,) = add(ann, _made("Ann was in Oslo", "derived_from", source))
        clock.advance(days=2)
        run_sync(ann.add, "later")
        assert texts(everything(ann)) == ["Ann was in Oslo", "later"]
        kept = run_sync(ann.get, fact.id)
        assert kept is not None
        assert [(link.id, link.session) for link in kept.links] == [(source.id, "monday")]

    @pytest.mark.parametrize("how", ["delete", "erase", "edit", "leave"])
    @pytest.mark.parametrize("depth", [1, 3])
    def test_a_source_reaches_what_was_made_of_it_through_what_has_expired(
        self, ann: BoundMemory, clock: Ticks, how: str, depth: int
    ) -> None:
        expires = clock.now + timedelta(days=1)
        source, made = add(ann, Draft("the code is 2231", session="monday"), "I drink tea")
        for n in range(depth):
            made = source if n == 0 else made
            (made,) = add(ann, replace(_made(f"step {n}: 2231", "derived_from", made), expires_at=expires))
        add(ann, _made("in short: 2231", "summarizes", made))
        clock.advance(days=2)
        run_sync(ann.add, "later")
        run_sync(ann.sweep)
        assert texts(everything(ann)) == ["the code is 2231", "I drink tea", "in short: 2231", "later"]
        if how == "delete":
            assert run_sync(ann.delete, source.id).derived == 1
        elif how == "erase":
            assert run_sync(ann.bind(session="monday").erase).derived == 1
        else:
            run_sync(ann.update, source.id, Patch(left=True) if how == "leave" else Patch(text="the code is 8874"))
        assert "in short: 2231" not in texts(everything(ann))
        assert ("in short: 2231" in _stored(ann)) is (how in ("edit", "leave"))

    def test_what_would_have_too_many_sources_goes_with_what_has_expired(self, ann: BoundMemory, clock: Ticks) -> None:
        """Nothing could say any more what it was made of."""
        expires = clock.now + timedelta(days=1)
        turns = [each for each in run_sync(ann.add_many, [f"turn {n}" for n in range(MAX_LINKS)]) if each is not None]
        (half,) = add(ann, replace(_made("half", "summarizes", *turns[:-1]), expires_at=expires))
        (last,) = add(ann, replace(_made("last", "summarizes", *turns[-1:]), expires_at=expires))
        add(ann, _made("all", "derived_from", half, last), _made("the last", "derived_from", last))
        clock.advance(days=2)
        run_sync(ann.add, "later")
        run_sync(ann.sweep)
        assert {"all", "the last"} & _stored(ann) == {"the last"}

    def test_turns_of_a_summary_that_has_expired_are_active_again(self, ann: BoundMemory, clock: Ticks) -> None:
        (turn,) = add(ann, "one")
        add(ann, replace(_made("in short", "summarizes", turn), expires_at=clock.now + timedelta(days=1)))
        run_sync(ann.update, turn.id, Patch(state="compacted"))
        clock.advance(days=2)
        run_sync(ann.add, "later")
        run_sync(ann.sweep)
        assert texts(everything(ann)) == ["one", "later"]

    @pytest.mark.parametrize("patch", [Patch(text="the code is 8874"), Patch(left=True)])
    def test_what_is_left_because_of_a_source_goes_when_that_expires(
        self, ann: BoundMemory, clock: Ticks, patch: Patch
    ) -> None:
        expires = clock.now + timedelta(days=1)
        brief, other = add(ann, Draft("the code is 2231", expires_at=expires), "I drink tea")
        add(ann, _made("code 2231, tea", "derived_from", brief, other))
        run_sync(ann.update, brief.id, patch)
        clock.advance(days=2)
        run_sync(ann.sweep)
        run_sync(ann.update, other.id, Patch(left=True))
        run_sync(ann.update, other.id, Patch(left=False))
        assert _stored(ann) == {"I drink tea"}

    def test_links_of_what_was_made_of_an_expired_source_can_change(self, ann: BoundMemory, clock: Ticks) -> None:
        expires = clock.now + timedelta(days=1)
        (source,) = add(ann, Draft("I am in Oslo", expires_at=expires))
        (fact,) = add(ann, _made("Ann was in Oslo", "derived_from", source))
        clock.advance(days=2)
        (again,) = add(ann, "I was in Oslo")
        links = [*fact.links, Link("confirmed_by", again.id)]
        assert run_sync(ann.update, fact.id, Patch(links=links)).links == tuple(links)
        with pytest.raises(ConflictError, match="elsewhere"):
            run_sync(ann.update, fact.id, Patch(links=[*links, Link("derived_from", "elsewhere")]))

    def test_erasing_a_session_reaches_what_was_made_of_it(self, ann: BoundMemory, clock: Ticks) -> None:
        expires = clock.now + timedelta(days=1)
        brief, lasting = add(
            ann,
            Draft("the code is 2231", session="monday", expires_at=expires),
            Draft("I live in Oslo", session="monday"),
        )
        (other,) = add(ann, Draft("I drink tea", session="friday"))
        (fact,) = add(ann, _made("Ann's code is 2231", "derived_from", brief))
        add(ann, _made("in short: 2231", "summarizes", fact), _made("Ann: Oslo", "derived_from", lasting))
        add(ann, _made("Ann drinks tea", "derived_from", other))
        clock.advance(days=2)
        run_sync(ann.add, "later")
        receipt = run_sync(ann.bind(session="monday").erase)
        assert receipt.derived == 3
        assert texts(everything(ann)) == ["I drink tea", "Ann drinks tea", "later"]

    def test_erasing_an_agent_reaches_what_was_made_of_it(self, ann: BoundMemory, clock: Ticks) -> None:
        expires = clock.now + timedelta(days=1)
        one = Draft("the code is 2231", agent="one", session="monday", expires_at=expires)
        two = Draft("I drink tea", agent="two", session="monday", expires_at=expires)
        code, tea = add(ann, one, two)
        add(ann, _made("Ann's code is 2231", "derived_from", code), _made("Ann drinks tea", "derived_from", tea))
        clock.advance(days=2)
        run_sync(ann.add, "later")
        assert run_sync(ann.bind(agent="one", session="friday").erase).derived == 0
        assert run_sync(ann.bind(agent="one").erase).derived == 1
        assert texts(everything(ann)) == ["Ann drinks tea", "later"]

    def test_what_tidies_up_may_keep_it(self, ann: BoundMemory) -> None:
        (source,) = add(ann, "I drink tea")
        add(ann, _made("Ann drinks tea", "derived_from", source))
        run_sync(ann.delete_exactly, {source.id: source.version}, keeps_derived=True)
        assert texts(everything(ann)) == ["Ann drinks tea"]

    def test_what_a_note_has_made_is_read_again_when_it_goes_with_a_source(self, ann: BoundMemory) -> None:
        """Its other sources; and nothing else that was read of them."""
        one, two, three = add(ann, "one", "two", "three")
        read = [Link("read", each.id, each.rev) for each in (one, two, three)]
        (made,) = add(ann, _made("of one and two", "summarizes", one, two))
        (other,) = add(ann, Draft(kind="extraction", data={"by": "a model"}, links=read))
        (note,) = add(ann, Draft(kind="extraction", data={"by": "another"}, links=[*read, Link("made", made.id)]))
        run_sync(ann.delete, one.id)
        assert _links(ann, note) == (Link("read", three.id),)
        assert _links(ann, other) == (Link("read", two.id), Link("read", three.id))

    @pytest.mark.parametrize("patch", [Patch(text="three"), Patch(left=True)])
    def test_what_a_note_has_made_is_read_again_when_it_is_left(self, ann: BoundMemory, patch: Patch) -> None:
        one, two = add(ann, "one", "two")
        read = [Link("read", each.id, each.rev) for each in (one, two)]
        (made,) = add(ann, _made("of both", "summarizes", one, two))
        (note,) = add(ann, Draft(kind="extraction", data={"by": "a model"}, links=[*read, Link("made", made.id)]))
        run_sync(ann.update, one.id, patch)
        assert _links(ann, note) == (Link("read", one.id), Link("made", made.id))
        if patch.left is True:
            run_sync(ann.update, one.id, Patch(left=False))
            assert set(_links(ann, note)) == {*read, Link("made", made.id)}

    def test_what_a_person_deletes_stays_read(self, ann: BoundMemory) -> None:
        one, two = add(ann, "one", "two")
        read = [Link("read", each.id, each.rev) for each in (one, two)]
        (made,) = add(ann, _made("of both", "summarizes", one, two))
        (note,) = add(ann, Draft(kind="extraction", data={"by": "a model"}, links=[*read, Link("made", made.id)]))
        run_sync(ann.delete, made.id)
        run_sync(ann.delete, one.id)
        assert _links(ann, note) == (Link("read", two.id),)

    def test_what_an_erased_session_takes_with_it_is_read_again(self, ann: BoundMemory, clock: Ticks) -> None:
        """Also when the record of that session has expired."""
        expires = clock.now + timedelta(days=1)
        one, two = add(ann, Draft("one", session="monday", expires_at=expires), Draft("two", session="friday"))
        read = [Link("read", each.id, each.rev) for each in (one, two)]
        (made,) = add(ann, _made("of both", "summarizes", one, two))
        (note,) = add(ann, Draft(kind="extraction", data={"by": "a model"}, links=[*read, Link("made", made.id)]))
        clock.advance(days=2)
        run_sync(ann.add, "later")
        run_sync(ann.bind(session="monday").erase)
        assert run_sync(ann.get, note.id) is None  # of what it had read and made, nothing is left to note
        assert texts(everything(ann)) == ["two", "later"]

    @pytest.mark.parametrize("how", ["delete", "erase", "expire"])
    def test_a_note_goes_with_the_last_record_that_it_has_read(self, ann: BoundMemory, clock: Ticks, how: str) -> None:
        """And with what it has made of them."""
        expires = clock.now + timedelta(days=1) if how == "expire" else None
        one, two = add(ann, *(Draft(text, session="monday", expires_at=expires) for text in ("one", "two")))
        read = [Link("read", each.id, each.rev) for each in (one, two)]
        (note,) = add(ann, Draft(kind="extraction", data={"by": "a model"}, links=read))
        (made,) = add(ann, _made("of both", "summarizes", one, two))
        (of_it,) = add(ann, Draft(kind="extraction", data={"by": "another"}, links=[Link("made", made.id)]))
        (own,) = add(ann, Draft("I have read one", links=read))
        if how == "delete":
            run_sync(ann.delete, one.id)
            assert run_sync(ann.get, note.id) is not None
            run_sync(ann.delete, two.id)
        elif how == "erase":
            run_sync(ann.bind(session="monday").erase)
        else:
            clock.advance(days=2)
            run_sync(ann.sweep)
            assert run_sync(ann.get, of_it.id) is not None
            run_sync(ann.delete, made.id)
        assert (run_sync(ann.get, note.id), run_sync(ann.get, of_it.id)) == (None, None)
        assert _links(ann, own) == ()

    @pytest.mark.parametrize("how", ["delete", "leave", "edit"])
    def test_a_turn_that_confirms_what_has_gone_with_a_source_is_read_again(self, ann: BoundMemory, how: str) -> None:
        """By whom confirmed it. What nobody misses, because it was replaced, is not said again."""
        one, two, three = add(ann, "I drink tea", "Tea is what I drink", "I live in Oslo")
        again = [Link("confirmed_by", two.id)]
        tea, oslo = add(
            ann,
            _made("Ann drinks tea", "derived_from", one, links=again),
            _made("Ann lives in Oslo", "derived_from", one, links=again),
        )
        run_sync(ann.supersede, oslo.id, "Ann lives in Rome")
        read = [Link("read", each.id, each.rev) for each in (two, three)]
        note, other = add(
            ann,
            Draft(kind="extraction", data={"by": "a model"}, links=[*read, Link("made", tea.id)]),
            Draft(kind="extraction", data={"by": "another"}, links=[*read, Link("made", oslo.id)]),
        )
        change = {"leave": Patch(left=True), "edit": Patch(text="I drink coffee")}
        if how == "delete":
            run_sync(ann.delete, one.id)
        else:
            run_sync(ann.update, one.id, change[how])
        assert [link.id for link in _links(ann, note) if link.relation == "read"] == [three.id]
        assert {link.id for link in _links(ann, other) if link.relation == "read"} == {two.id, three.id}

    def test_a_turn_that_confirms_what_a_person_has_deleted_stays_read(self, ann: BoundMemory) -> None:
        one, two = add(ann, "I drink tea", "Tea is what I drink")
        (tea,) = add(ann, _made("Ann drinks tea", "derived_from", one, links=[Link("confirmed_by", two.id)]))
        links = [Link("read", two.id, two.rev), Link("made", tea.id)]
        (note,) = add(ann, Draft(kind="extraction", data={"by": "a model"}, links=links))
        run_sync(ann.delete, tea.id)
        run_sync(ann.delete, one.id)
        assert _links(ann, note) == (Link("read", two.id),)

    @pytest.mark.parametrize("how", ["delete", "leave", "edit", "person"])
    def test_an_equal_statement_is_active_again_when_the_one_that_is_shown_goes(
        self, ann: BoundMemory, how: str
    ) -> None:
        """With its source. What a person deletes stays away, and what another record stands for stays away, too."""
        one, two = add(ann, "I drink tea", "Tea is what I drink")
        said = ("Ann drinks tea", "Ann drinks TEA", "ann drinks tea")
        (same, summed, again) = add(ann, *(_made(text, "derived_from", two) for text in said))
        merged = [Link("confirmed_by", each.id) for each in (same, summed, again)]
        (kept,) = add(ann, _made("Ann drinks tea!", "derived_from", one, links=merged))
        add(ann, _made("in short", "summarizes", summed))
        add(ann, Draft("She drinks tea", links=[Link("confirmed_by", again.id)]))
        for each in (same, summed, again):
            run_sync(ann.update, each.id, Patch(state="compacted"))
        change = {"leave": Patch(left=True), "edit": Patch(text="I drink coffee")}
        if how in change:
            run_sync(ann.update, one.id, change[how])
        else:
            run_sync(ann.delete, one.id if how == "delete" else kept.id)
        assert ("Ann drinks tea" in texts(everything(ann))) is (how != "person")
        assert not {"Ann drinks TEA", "ann drinks tea", "Ann drinks tea!"} & set(texts(everything(ann)))

    def test_a_known_key_that_is_added_again_has_the_sources_of_its_new_words(self, ann: BoundMemory) -> None:
        code, tea = add(ann, "the code is 2231", "I drink tea")
        (fact,) = add(ann, replace(_made("Ann's code is 2231", "derived_from", code), source_key="fact"))
        (again,) = add(ann, replace(_made("Ann drinks tea", "derived_from", tea), source_key="fact"))
        assert (again.id, again.rev, [link.id for link in again.links]) == (fact.id, 2, [tea.id])
        run_sync(ann.delete, code.id)
        assert _stored(ann) == {"I drink tea", "Ann drinks tea"}
        run_sync(ann.delete, tea.id)
        assert _stored(ann) == set()

    @pytest.mark.parametrize("how", ["add", "update", "own words"])
    def test_earlier_texts_are_of_its_sources(self, ann: BoundMemory, how: str) -> None:
        """Else the words of a deleted source would stay in the history of what was made of it before."""
        code, tea = add(ann, "the code is 2231", "I drink tea")
        (fact,) = add(ann, replace(_made("Ann's code is 2231", "derived_from", code), source_key="fact"))
        run_sync(ann.update, fact.id, Patch(text="The code of Ann is 2231"))
        assert len(run_sync(ann.history, fact.id)) == 2
        of_tea = replace(_made("Ann drinks tea", "derived_from", tea), source_key="fact")
        if how == "update":
            run_sync(ann.update, fact.id, Patch(links=of_tea.links))
            run_sync(ann.update, fact.id, Patch(text=of_tea.text))
        else:
            add(ann, of_tea if how == "add" else replace(of_tea, links=()))
        assert "Ann's code is 2231" not in {each.text for each in run_sync(ann.history, fact.id)}
        if how != "update":
            assert [each.text for each in run_sync(ann.history, fact.id)] == ["Ann drinks tea"]

    def test_words_of_ones_own_under_a_known_key_are_not_derived(self, ann: BoundMemory) -> None:
        """And are shown, though the record was left because of a source."""
        (code,) = add(ann, "the code is 2231")
        made = replace(_made("Ann's code is 2231", "derived_from", code), source_key="fact")
        add(ann, made)
        (same,) = add(ann, replace(made, links=()))
        assert [link.id for link in same.links] == [code.id]
        run_sync(ann.update, code.id, Patch(left=True))
        (own,) = add(ann, Draft("Ann likes codes", kind="fact", source_key="fact"))
        assert (own.links, own.left) == ((), False)
        run_sync(ann.delete, code.id)
        assert texts(everything(ann)) == ["Ann likes codes"]

    @pytest.mark.parametrize("text", ["Ann's code is 2231", "Ann has the code 2231"])
    def test_a_known_key_whose_new_source_is_not_as_it_was_read_is_refused(self, ann: BoundMemory, text: str) -> None:
        old, gone, left, changed = add(ann, "old", "gone", "left", "changed")
        add(ann, replace(_made("Ann's code is 2231", "derived_from", old), source_key="fact"))
        run_sync(ann.delete, gone.id)
        run_sync(ann.update, left.id, Patch(left=True))
        run_sync(ann.update, changed.id, Patch(text="changed since"))
        for source in (gone, left, changed):
            with pytest.raises(ConflictError, match=source.id):
                add(ann, replace(_made(text, "derived_from", source), source_key="fact"))
        assert texts(everything(ann)) == ["old", "changed since", "Ann's code is 2231"]

    def test_a_known_key_is_shown_again_when_it_was_made_of_what_its_source_says_now(self, ann: BoundMemory) -> None:
        (code,) = add(ann, "the code is 2231")
        add(ann, replace(_made("Ann has a code", "derived_from", code), source_key="fact"))
        edited = run_sync(ann.update, code.id, Patch(text="the code is 8874"))
        assert texts(everything(ann)) == ["the code is 8874"]
        (again,) = add(ann, replace(_made("Ann has a code", "derived_from", edited), source_key="fact"))
        assert (again.left, [link.rev for link in again.links]) == (False, [edited.rev])
        run_sync(ann.update, code.id, Patch(left=True))
        assert everything(ann) == []

    def test_turns_that_a_summary_does_not_cover_any_more_are_active_again(self, ann: BoundMemory) -> None:
        one, two = add(ann, "one", "two")
        (summary,) = add(ann, replace(_made("both", "summarizes", one, two), source_key="summary"))
        for turn in (one, two):
            run_sync(ann.update, turn.id, Patch(state="compacted"))
        add(ann, replace(_made("only two", "summarizes", two), source_key="summary"))
        assert texts(everything(ann)) == ["one", "only two"]
        run_sync(ann.update, summary.id, Patch(left=True))
        assert texts(everything(ann)) == ["one", "two"]

    def test_links_that_name_another_reading_are_checked_and_kept(self, ann: BoundMemory) -> None:
        (code,) = add(ann, "the code is 2231")
        (fact,) = add(ann, _made("Ann has a code", "derived_from", code))
        edited = run_sync(ann.update, code.id, Patch(text="the code is 8874"))
        with pytest.raises(ConflictError, match=code.id):
            run_sync(ann.update, fact.id, Patch(links=[Link("derived_from", code.id, edited.rev + 1)]))
        shown = run_sync(ann.update, fact.id, Patch(links=[Link("derived_from", code.id, edited.rev)]))
        assert (shown.left, [link.rev for link in shown.links]) == (False, [edited.rev])
        run_sync(ann.update, code.id, Patch(text="there is no code"))
        assert texts(everything(ann)) == ["there is no code"]

    @pytest.mark.parametrize("patch", [Patch(left=True), Patch(text="otherwise")])
    def test_it_cannot_be_resumed_without_its_source(self, ann: BoundMemory, patch: Patch) -> None:
        (source,) = add(ann, "the code is 2231")
        (fact,) = add(ann, _made("Ann's code is 2231", "derived_from", source))
        (of_it,) = add(ann, _made("in short: 2231", "summarizes", fact))
        run_sync(ann.update, source.id, patch)
        for record, named in ((fact, source), (of_it, fact)):
            with pytest.raises(ConflictError, match=named.id):
                run_sync(ann.update, record.id, Patch(left=False))
        assert not {"Ann's code is 2231", "in short: 2231"} & set(texts(everything(ann)))
        run_sync(ann.update, of_it.id, Patch(importance=0.9))

    def test_an_item_that_is_put_again_has_the_sources_of_its_new_words(self, ann: BoundMemory) -> None:
        code, tea = add(ann, "the code is 2231", "I drink tea")
        run_sync(ann.put_many, [replace(_made("code 2231", "derived_from", code), source_key="fact")])
        run_sync(ann.update, code.id, Patch(text="the code is 8874"))
        with pytest.raises(ConflictError, match=code.id):
            run_sync(ann.put_many, [replace(_made("a code of 2231", "derived_from", code), source_key="fact")])
        run_sync(ann.put_many, [replace(_made("code 2231", "derived_from", code), source_key="fact")])
        assert texts(everything(ann)) == ["the code is 8874", "I drink tea"]
        run_sync(ann.put_many, [replace(_made("Ann drinks tea", "derived_from", tea), source_key="fact")])
        assert texts(everything(ann)) == ["the code is 8874", "I drink tea", "Ann drinks tea"]
        run_sync(ann.delete, tea.id)
        assert texts(everything(ann)) == ["the code is 8874"]

    def test_turns_that_a_summary_does_not_cover_when_it_is_put_again_are_active_again(self, ann: BoundMemory) -> None:
        one, two = add(ann, "one", "two")
        run_sync(ann.put_many, [replace(_made("both", "summarizes", one, two), source_key="summary")])
        for turn in (one, two):
            run_sync(ann.update, turn.id, Patch(state="compacted"))
        run_sync(ann.put_many, [replace(_made("only two", "summarizes", two), source_key="summary")])
        assert texts(everything(ann)) == ["one", "only two"]

    def test_a_replaced_item_leaves_what_was_made_of_it(self, ann: BoundMemory) -> None:
        (item,) = run_sync(ann.put_many, [Draft("dark", source_key="theme")])
        add(ann, _made("Ann likes it dark", "derived_from", item))
        run_sync(ann.put_many, [Draft("light", source_key="theme")])
        assert texts(everything(ann)) == ["light"]
        assert run_sync(ann.list, where=replace(Where(), left=True)).records[0].text == "Ann likes it dark"
        run_sync(ann.put_many, [], remove=["theme"])
        assert _stored(ann) == set()
