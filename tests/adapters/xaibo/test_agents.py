"""Real Xaibo agents, made of YAML, with a scripted model."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign_parts import told
from xaibo import AgentConfig, ConfigOverrides, Xaibo

from memory_core import BoundMemory, Memory
from memory_xaibo import CoreMemory, VectorMemory

CORE = """\
  - module: memory_xaibo.CoreMemory
    id: memory
    config: {{path: {folder}/memory.db, user: ann}}
"""
OUR_PARTS = """\
  - module: memory_xaibo.VectorMemory
    id: memory
    config: {{memory_file_path: {folder}/memory.db, user: ann}}
  - {{module: memory_xaibo.TokenChunker, id: chunker, config: {{window_size: 64, window_overlap: 8}}}}
  - {{module: memory_xaibo.SentenceTransformerEmbedder, id: embedder}}
  - {{module: memory_xaibo.VectorIndex, id: index, config: {{storage_dir: {folder}/index}}}}
"""
THEIR_PARTS = """\
  - module: memory_xaibo.VectorMemory
    id: memory
    config: {{memory_file_path: {folder}/memory.db, user: ann}}
  - {{module: foreign_parts.Pieces, id: chunker}}
  - {{module: foreign_parts.Digests, id: embedder}}
  - {{module: xaibo.primitives.modules.memory.NumpyVectorIndex, id: index, config: {{storage_dir: {folder}/index}}}}
"""
AGENTS = {"core": CORE, "our parts": OUR_PARTS, "their parts": THEIR_PARTS}
KEY = "The spare key is with Mrs Okafor"


@pytest.mark.parametrize("modules", AGENTS.values(), ids=AGENTS)
async def test_an_agent_stores_and_recalls_in_another_life(modules: str, tmp_path: Path) -> None:
    yaml = modules.format(folder=tmp_path)
    attributes = {"source": "Ann", "tags": ["key", 1, None], "memory_id": "mine"}
    (stored,) = await told(yaml, ("store_memory", {"text": KEY, "attributes": attributes}))
    memory_id = stored.result["memory_id"]
    found, got, listed = await told(
        yaml,
        ("search_memory", {"query": KEY, "k": 3}),
        ("get_memory", {"memory_id": memory_id}),
        ("list_memories", {}),
    )
    memory = {"id": memory_id, "content": KEY, "attributes": attributes}
    assert got.result == memory
    assert listed.result == [memory]
    (result,) = found.result
    assert result.pop("similarity_score") == pytest.approx(1, abs=0.01)
    assert result == {"memory_id": memory_id, "content": KEY, "attributes": attributes}


@pytest.mark.parametrize("modules", AGENTS.values(), ids=AGENTS)
async def test_an_agent_changes_and_deletes_and_hears_what_is_not_there(modules: str, tmp_path: Path) -> None:
    yaml, xaibo = modules.format(folder=tmp_path), Xaibo()
    one, two = await told(
        yaml, ("store_memory", {"text": KEY}), ("store_memory", {"text": "Ann rows on Sundays"}), xaibo=xaibo
    )
    key, rows = one.result["memory_id"], two.result["memory_id"]
    mill = "The spare key hangs behind the mill"
    updated, deleted, found, gone, neither, nor, unknown, blank = await told(
        yaml,
        ("update_memory", {"memory_id": key, "text": mill, "attributes": {"checked": True}}),
        ("delete_memory", {"memory_id": rows}),
        ("search_memory", {"query": mill, "k": 5}),
        ("get_memory", {"memory_id": rows}),
        ("delete_memory", {"memory_id": rows}),
        ("update_memory", {"memory_id": rows, "text": "x"}),
        ("forget_everything", {}),
        ("store_memory", {"text": "  "}),
        xaibo=xaibo,
    )
    assert updated.result == {"updated": key}
    assert deleted.result == {"deleted": rows}
    assert [(one["memory_id"], one["content"], one["attributes"]) for one in found.result] == [
        (key, mill, {"checked": True})
    ]
    for refused in (gone, neither, nor):
        assert not refused.success
        assert "not found" in refused.error
    assert "Unknown tool" in unknown.error
    assert "must not be blank" in blank.error


async def test_what_an_agent_writes_is_of_its_owner_and_found_by_every_other_framework(tmp_path: Path) -> None:
    await told(CORE.format(folder=tmp_path), ("store_memory", {"text": KEY, "attributes": {"a": [1, {"b": None}]}}))
    async with Memory(tmp_path / "memory.db") as memory:
        (hit,) = await memory.bind(user="ann").search("Who has the spare key?")
        assert hit.record.text == KEY
        assert hit.record.data == {"a": [1, {"b": None}]}
        assert not await memory.bind(user="bob").search("Who has the spare key?")


@pytest.mark.parametrize(
    ("modules", "complaint"),
    [
        ("{module: memory_xaibo.CoreMemory, id: m}", "the memory has no path"),
        ("{module: memory_xaibo.CoreMemory, id: m, config: {path: a.db}}", "the memory has no user"),
        ("{module: memory_xaibo.CoreMemory, id: m, config: {user: ann}}", "the memory has no path"),
        ("{module: memory_xaibo.CoreMemory, id: m, config: {path: a.db, usr: a}}", "no config option 'usr'"),
        ("{module: memory_xaibo.CoreMemory, id: m, config: {path: a.db, user: a, ranking: best}}", "ranking is 'best'"),
        ("{module: memory_xaibo.CoreMemory, id: m, config: {path: a.db, user: ''}}", "user must not be empty"),
    ],
)
async def test_a_configuration_that_cannot_work_ends_with_a_sentence(modules: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        await told(f"  - {modules}\n", ("list_memories", {}))


def test_a_handle_takes_the_place_of_a_path_and_can_be_narrowed(ann: BoundMemory) -> None:
    notes = CoreMemory({"collection": "notes"}, memory=ann)
    assert notes.handle.scope.collection == "notes"
    for config in ({"path": "a.db"}, {"app": "other"}):
        with pytest.raises(ValueError, match="not both"):
            CoreMemory(config, memory=ann)
    with pytest.raises(ValueError, match="belongs to user 'ann'"):
        CoreMemory({"user": "bob"}, memory=ann)


def test_the_modules_are_made_with_the_keywords_that_xaibo_uses(ann: BoundMemory) -> None:
    assert VectorMemory.__init__.__annotations__.keys() == {"chunker", "embedder", "vector_index"}
    assert CoreMemory.__init__.__annotations__ == {}


async def test_xaibo_uses_a_module_of_the_agents_scope_instead_of_the_one_that_is_passed(
    everybodys: Memory, tmp_path: Path
) -> None:
    """The reason why the page says that a memory that is chosen for each call has no such scope."""
    bobs, users = CoreMemory(memory=everybodys.bind(user="bob")), list[str | None]()
    for scope in ("instance", "agent"):
        xaibo = Xaibo()
        modules = CORE.format(folder=tmp_path) + f"    scope: {scope}\n"
        xaibo.register_agent(AgentConfig.from_yaml(f"id: helper\nmodules:\n{modules}"))
        agent = xaibo.get_agent_with("helper", ConfigOverrides(instances={"memory": bobs}))
        users.append(agent.exchange.get_module("memory", "test").handle.scope.user)
    assert users == ["bob", "ann"]
