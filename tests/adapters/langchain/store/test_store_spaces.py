"""A store has the items of one owner: those of a team are another store."""

from __future__ import annotations

import pytest

from memory_core import BoundMemory, Memory, ScopeError, run_sync
from memory_langchain import MemoryStore, MemoryVectorStore

FACTS = ("facts",)


@pytest.fixture
def team(memory: Memory) -> BoundMemory:
    return memory.bind(app="demo", user="team:red")


def test_an_item_of_the_team_is_the_same_for_all_its_members_and_in_nobodys_own_store(
    ann: BoundMemory, team: BoundMemory
) -> None:
    hers, teams = MemoryStore(ann, fields=["text"]), MemoryStore(team, fields=["text"])
    teams.put(FACTS, "tea", {"text": "The team drinks tea at four"})
    hers.put(FACTS, "tea", {"text": "Ann drinks jasmine tea"})
    assert [item.value["text"] for item in teams.search(())] == ["The team drinks tea at four"]
    assert [item.value["text"] for item in hers.search((), query="tea")] == ["Ann drinks jasmine tea"]
    assert "[team]" in run_sync(ann.sharing({"team": team}).recall, "When does the team drink tea?").text


@pytest.mark.parametrize("kind", [MemoryStore, MemoryVectorStore])
def test_a_handle_with_spaces_is_refused(kind: type, ann: BoundMemory, team: BoundMemory) -> None:
    both = ann.sharing({"team": team}, writable=["team"])
    with pytest.raises(ScopeError, match=r"reads one owner; pass handle\.own"):
        kind(both)
    kind(both.own)
