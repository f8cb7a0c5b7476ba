"""The decisions of a handle with spaces, whatever its store."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from memory_core import Draft, InvalidInputError, Link, Memory, RecallOptions, ScopeError, Where, run_sync
from memory_core.adapting import STATES
from memory_core.testing.base import Ticks, add
from memory_core.testing.sharing import SAID, Owners, all_of


@pytest.fixture
def clock() -> Ticks:
    return Ticks()


@pytest.fixture
def memory(clock: Ticks) -> Iterator[Memory]:
    with Memory(":memory:", embedder=None, clock=clock) as opened:
        yield opened


@pytest.fixture
def owners(memory: Memory) -> Owners:
    return Owners(*(memory.bind(app="contract", user=user) for user in ("ann", "team", "wiki", "bob")))


def test_reads_are_counted_for_the_owner_alone(owners: Owners, clock: Ticks) -> None:
    owners.filled(clock)
    (own,) = add(owners.ann, "my kettle")
    page = run_sync(owners.sharing().list, touch=True)
    assert len(page.records) == 5  # the talks and the kettles of board and wiki, and one's own
    counts = {record.id: record.access_count for record in run_sync(owners.sharing().list).records}
    assert {id_ for id_, count in counts.items() if count} == {own.id}


def test_an_id_of_several_owners_is_that_of_the_own_memory_first(owners: Owners) -> None:
    both = owners.sharing()
    for handle in (owners.bob, owners.wiki, owners.ann):
        add(handle, Draft(f"of {handle.scope.user}", id="one id"))
    for user in ("ann", "wiki"):
        record = run_sync(both.get, "one id")
        assert record is not None
        assert record.user == user
        run_sync(both.delete, "one id")
    assert run_sync(both.get, "one id") is None
    assert run_sync(owners.bob.get, "one id") is not None


def test_a_conversation_is_remembered_whatever_a_space_has_remembered(owners: Owners, clock: Ticks) -> None:
    owners.filled(clock)
    remembered = run_sync(owners.sharing().remember, [SAID, ("user", "and on")], session="talk")
    assert [record.user for record in remembered] == ["ann", "ann"]
    assert all_of(owners.ann) == remembered


def test_a_cursor_belongs_to_its_spaces(owners: Owners) -> None:
    for handle in (owners.ann, owners.team, owners.wiki, owners.bob):
        add(handle, *(f"note {n}" for n in range(3)))
    one = owners.ann.sharing({"other": owners.wiki})
    cursor = run_sync(one.list, limit=2).cursor
    assert len(run_sync(one.list, limit=9, cursor=cursor).records) == 4
    for other in (
        owners.ann.sharing({"other": owners.bob}),
        owners.wiki.sharing({"other": owners.ann}),
        owners.ann,
    ):
        with pytest.raises(InvalidInputError, match="cursor"):
            run_sync(other.list, limit=2, cursor=cursor)
    with pytest.raises(InvalidInputError, match="cursor"):
        run_sync(one.list, cursor=run_sync(owners.ann.list, limit=1).cursor)


def test_spaces_stay_when_a_handle_is_narrowed_or_copied(memory: Memory, owners: Owners) -> None:
    (shared,) = add(owners.wiki, "the wiki kettle")
    (elsewhere,) = add(owners.ann, Draft("my kettle", session="monday"))
    open_handle = memory.bind(app="contract").sharing({"wiki": owners.wiki}, writable=["wiki"])
    with pytest.raises(ScopeError, match="user open"):
        run_sync(open_handle.get, shared.id)
    with pytest.raises(ScopeError, match="user open"):
        run_sync(open_handle.list)
    with pytest.raises(ScopeError, match="user open"):
        run_sync(open_handle.add, "x", space="wiki")
    with pytest.raises(ScopeError, match="has the owner of another space"):
        open_handle.bind(user="wiki")
    bound = copy.deepcopy(open_handle.bind(user="ann", session="friday"))
    assert bound.spaces == {"wiki": "write"}
    assert run_sync(bound.get, shared.id) == shared
    assert run_sync(bound.get, elsewhere.id) is None
    assert run_sync(bound.own.get, shared.id) is None
    assert bound.own.spaces == bound.sharing({}).spaces == {}


def test_the_spaces_of_a_space_are_not_shared(owners: Owners) -> None:
    (secret,) = add(owners.bob, "the bob kettle")
    through = owners.ann.sharing({"team": owners.team.sharing({"bob": owners.bob})})
    assert run_sync(through.get, secret.id) is None
    assert run_sync(through.list).records == ()


def test_as_of_and_links_reach_no_further(owners: Owners, clock: Ticks) -> None:
    both = owners.sharing()
    (secret,) = add(owners.bob, "the bob kettle was red")
    then = clock.now
    clock.advance(days=1)
    run_sync(owners.bob.supersede, secret.id, "the bob kettle is blue")
    add(owners.wiki, Draft("the wiki kettle follows", links=[Link("follows", secret.id)]))
    mine = run_sync(both.add, Draft("my kettle", links=[Link("supersedes", secret.id), Link("follows", secret.id)]))
    page = run_sync(both.list, where=Where(as_of=then, states=STATES))
    assert page.records == ()
    assert [version.text for version in run_sync(both.history, mine.id)] == ["my kettle"]
    block = run_sync(both.recall, "kettle", RecallOptions(floor=False, links=("follows", "supersedes")))
    assert "bob" not in block.text
