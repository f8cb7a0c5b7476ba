"""The promises of memories beyond the document: k different ones, nothing stale, nothing shared, pages."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from foreign_parts import Deleting, Digests, Growing, Pieces, Unreachable, Vector
from xaibo.primitives.modules.memory.memory_provider import MemoryToolProvider
from xaibo.primitives.modules.memory.numpy_vector_index import NumpyVectorIndex

from memory_core import BoundMemory, Draft, Memory, NotAStoreError, Scope, ScopeError
from memory_core.adapting import equal_form
from memory_xaibo import (
    CoreMemory,
    EmbeddingProtocol,
    SentenceTransformerEmbedder,
    TokenChunker,
    UnsupportedModalityError,
    VectorIndex,
    VectorIndexProtocol,
    VectorMemory,
)

Ours = CoreMemory | VectorMemory


def indexes(folder: Path) -> dict[str, VectorIndexProtocol]:
    theirs = NumpyVectorIndex({"storage_dir": str(folder / "theirs")})
    return {"growing": Growing(), "xaibo's": theirs, "ours": VectorIndex({"storage_dir": str(folder / "ours")})}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["growing", "xaibo's", "ours"])
async def test_k_different_memories_come_back_after_deletes_and_updates(
    name: str, ann: BoundMemory, tmp_path: Path
) -> None:
    """Each memory has many chunks, most are changed again and again, and half are deleted."""
    memory = VectorMemory(Pieces(8), Digests(), indexes(tmp_path)[name], memory=ann)
    ids = [await memory.store_memory(f"Ann saw bird {n} on the pier") for n in range(12)]
    texts = {}
    for n, memory_id in enumerate(ids):
        for change in range(3):
            texts[memory_id] = f"Ann saw fish {n} in the {change}. net"
            assert await memory.update_memory(memory_id, texts[memory_id])
    for memory_id in ids[::2]:
        assert await memory.delete_memory(memory_id)
        del texts[memory_id]
    for k in (1, 3, 6):
        for memory_id, text in texts.items():
            results = await memory.search_memory(text[:8], k)
            assert len({result.memory_id for result in results}) == len(results) == k
            assert all(texts[result.memory_id] == result.content for result in results)
            assert all(0 <= result.similarity_score <= 1 for result in results), memory_id
    assert len(await memory.search_memory("anything", 50)) == 6
    stale = await memory.search_memory("Ann saw bird 1 on the pier"[:8], 6)
    assert all("fish" in result.content for result in stale)


@pytest.mark.parametrize("seed", range(5))
async def test_a_memory_over_an_index_that_only_grows_answers_as_one_over_a_fresh_index(seed: int) -> None:
    dice = random.Random(seed)
    words = ["tea", "key", "boat", "pier", "mill"]
    old = VectorMemory(Pieces(4), Digests(), Growing())
    known: dict[str, str] = {}
    for _ in range(60):
        text = " ".join(dice.choices(words, k=dice.randint(1, 4)))
        chosen = dice.choice([*known, None])
        if chosen is None:
            known[await old.store_memory(text)] = text
        elif dice.random() < 0.3:
            assert await old.delete_memory(chosen)
            del known[chosen]
        else:
            assert await old.update_memory(chosen, text)
            known[chosen] = text
    fresh = VectorMemory(Pieces(4), Digests(), Growing(), memory=old.handle)
    assert await fresh.reindex() == len(known)
    for query in (word + " "[: 4 - len(word)] for word in words):
        answers = [await memory.search_memory(query, 10) for memory in (old, fresh)]
        scores = [sorted((one.similarity_score, one.memory_id) for one in results) for results in answers]
        assert len(answers[0]) == min(10, len({equal_form(text) for text in known.values()}))
        assert [score for score, _ in scores[0]] == pytest.approx([score for score, _ in scores[1]])
        assert all(known[one.memory_id] == one.content for one in answers[0])


@pytest.mark.parametrize("kind", ["by attributes", "by ids"])
async def test_an_index_that_can_delete_holds_nothing_of_what_is_gone(
    kind: str, ann: BoundMemory, tmp_path: Path
) -> None:
    index = VectorIndex({"storage_dir": str(tmp_path)}) if kind == "by attributes" else Deleting()
    memory = VectorMemory(Pieces(5), Digests(), index, memory=ann)
    one, two = [await memory.store_memory(text) for text in ("Ann rows", "Ann swims")]
    await memory.update_memory(one, "Ann runs")
    await memory.delete_memory(two)
    held = await index.search(await Digests().text_to_embedding("x"), 100)
    assert sorted(str((vector.attributes or {})["chunk_text"]) for vector in held) == ["Ann r", "uns"]


async def test_ids_are_found_among_many_memories_with_the_same_text(ann: BoundMemory) -> None:
    index = Deleting()
    memory = VectorMemory(Pieces(), Digests(), index, memory=ann)
    ids = [await memory.store_memory("Ann rows", {"day": number}) for number in range(40)]
    assert await memory.delete_memory(ids[-1])
    assert not await memory.delete_memory(ids[-1])
    assert [attributes["memory_id"] for attributes in index.attributes] == ids[:-1]


async def test_a_memory_is_not_half_deleted_if_its_vectors_cannot_be_found(ann: BoundMemory) -> None:
    index = Deleting()
    memory_id = await VectorMemory(Pieces(), Digests(), index, memory=ann).store_memory("Ann rows")
    with pytest.raises(ConnectionError):
        await VectorMemory(Pieces(), Unreachable(), index, memory=ann).delete_memory(memory_id)
    assert await ann.get(memory_id) is not None
    assert len(index.vectors) == 1


async def test_nothing_is_stored_or_changed_if_the_embedder_fails(ann: BoundMemory) -> None:
    index = Growing()
    memory_id = await VectorMemory(Pieces(), Digests(), index, memory=ann).store_memory("Ann rows")
    failing = VectorMemory(Pieces(), Unreachable(), index, memory=ann)
    for work in (
        failing.store_memory("Ann swims"),
        failing.update_memory(memory_id, "Ann swims"),
        failing.search_memory("Ann"),
    ):
        with pytest.raises(ConnectionError):
            await work
    assert [memory["content"] for memory in await failing.list_memories()] == ["Ann rows"]


@pytest.mark.parametrize("name", ["growing", "ours"])
@pytest.mark.parametrize("seed", range(4))
async def test_changes_at_once_leave_one_text_that_is_found(
    name: str, seed: int, ann: BoundMemory, tmp_path: Path
) -> None:
    """Also if they change it to the same text, or back to what it was."""
    dice = random.Random(seed)
    memory = VectorMemory(Pieces(), Digests(), indexes(tmp_path)[name], memory=ann)
    memory_id = await memory.store_memory("a")
    texts = dice.choices("abc", k=8)
    assert all(await asyncio.gather(*(memory.update_memory(memory_id, text, {"n": 1}) for text in texts)))
    got = await memory.get_memory(memory_id)
    assert got is not None
    (result,) = await memory.search_memory(got["content"])
    assert result.content == got["content"] in texts
    assert result.similarity_score == pytest.approx(1, abs=0.01)


async def test_a_change_beside_a_deletion_is_not_found(ann: BoundMemory, tmp_path: Path) -> None:
    memory = VectorMemory(Pieces(), Digests(), Growing(), memory=ann)
    for _ in range(5):
        memory_id = await memory.store_memory("first")
        await asyncio.gather(memory.update_memory(memory_id, "second"), memory.delete_memory(memory_id))
        assert await memory.search_memory("second") == []
        assert not await memory.update_memory(memory_id, "third")


async def test_a_memory_with_an_image_or_a_sound_is_found_by_it_and_by_its_text(ann: BoundMemory) -> None:
    memory = VectorMemory(Pieces(), Digests(), Growing(), memory=ann)
    photo, song = b"\x89PNG of the pier", b"RIFF of a shanty that is longer"
    pier = await memory.store_memory("A photo of the pier", {"file": "pier.png"}, image=photo)
    shanty = await memory.store_memory("A shanty", image=b"cover", audio=song)
    await memory.store_memory("Ann rows")
    for results, memory_id in (
        (await memory.search_by_image(photo, 1), pier),
        (await memory.search_memory("A photo of the pier", 1), pier),
        (await memory.search_by_audio(song, 1), shanty),
        (await memory.search_by_image(b"cover", 1), shanty),
        (await memory.search_memory("A shanty", 1), shanty),
    ):
        (best,) = results
        assert best.memory_id == memory_id
        assert best.similarity_score == pytest.approx(1)
    await memory.update_memory(pier, "The old pier")
    (best,) = await memory.search_by_image(photo, 1)
    assert (best.content, best.attributes) == ("The old pier", {"file": "pier.png"})
    await memory.delete_memory(pier)
    assert (await memory.search_by_image(photo, 1))[0].memory_id != pier


class TextOnly:
    """An embedder that has not even the methods."""

    async def text_to_embedding(self, text: str) -> Vector:
        return await Digests().text_to_embedding(text)


@pytest.mark.parametrize("embedder", [SentenceTransformerEmbedder(), TextOnly()])
async def test_an_embedder_of_texts_refuses_images_and_sounds_with_a_sentence(embedder: EmbeddingProtocol) -> None:
    memory = VectorMemory(Pieces(), embedder, VectorIndex())
    for work in (
        memory.store_memory("A photo", image=b"x"),
        memory.store_memory("A song", audio=b"x"),
        memory.search_by_image(b"x"),
        memory.search_by_audio(b"x"),
    ):
        with pytest.raises(UnsupportedModalityError, match=r"(Image|Audio|image|audio)"):
            await work
    assert await memory.list_memories() == []


@pytest.mark.parametrize("kind", ["core", "vector"])
async def test_a_list_has_all_memories_or_is_a_page_with_a_cursor(kind: str, ann: BoundMemory) -> None:
    await ann.add_many([Draft(f"memory {n:04}") for n in range(1_050)], embed="later")
    parts = Pieces(), Digests(), Growing()
    memory: Ours = CoreMemory(memory=ann) if kind == "core" else VectorMemory(*parts, memory=ann)
    every = await memory.list_memories()  # as the protocol says: "List all stored memories"
    assert [one["content"] for one in every] == [f"memory {n:04}" for n in range(1_050)]
    assert every.cursor is None
    listed = await MemoryToolProvider(memory).execute_tool("list_memories", {})
    assert listed.result == every
    first = await memory.list_memories(limit=1_000)
    assert len(first) == 1_000
    rest = await memory.list_memories(limit=1_000, cursor=first.cursor)
    assert rest.cursor is None
    assert [*first, *rest] == every
    assert await memory.list_memories(cursor=first.cursor) == rest


@pytest.mark.parametrize("kind", ["core", "vector"])
async def test_what_a_caller_does_to_an_answer_changes_no_memory(kind: str, ann: BoundMemory) -> None:
    parts = Pieces(), Digests(), Growing()
    memory: Ours = CoreMemory(memory=ann) if kind == "core" else VectorMemory(*parts, memory=ann)
    attributes: dict[str, Any] = {"tags": ["a"], "deep": {"er": 1}}
    memory_id = await memory.store_memory("Ann rows", attributes)
    attributes["tags"].append("b")
    for answer in (await memory.get_memory(memory_id), (await memory.list_memories())[0]):
        assert answer is not None
        answer["attributes"]["tags"].append("c")
        answer["attributes"]["deep"]["er"] = 2
    (found,) = await memory.search_memory("Ann rows")
    assert found.attributes == {"tags": ["a"], "deep": {"er": 1}}


RESERVED = ("memory_id", "chunk_id", "chunk_index", "chunk_text", "made_of", "rev", "modality", "id", "content")


async def test_attributes_of_any_name_neither_hide_a_memory_nor_keep_an_old_text_alive(ann: BoundMemory) -> None:
    memory = VectorMemory(Pieces(), Digests(), Growing(), memory=ann)
    for value in ("image", None, 1):
        attributes = dict.fromkeys(RESERVED, value)
        memory_id = await memory.store_memory(f"old {value}", attributes)
        await memory.update_memory(memory_id, f"new {value}")
        (found,) = await memory.search_memory(f"new {value}", 1)
        assert (found.memory_id, found.attributes) == (memory_id, attributes)
        assert found.similarity_score == pytest.approx(1)
        assert all(one.similarity_score < 0.9 for one in await memory.search_memory(f"old {value}"))


HOSTILE: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**70, 1e308, "", " ", "\0", "\ud800", "💥" * 100, "x" * 1_100_000, "*", "' OR 1=1 --"),
    *([], [[]], {}, {"$ne": None}, {"user": "bob"}, {1: 2}, {"a": object()}, "bobs-secret", b"bytes", {"b": b"x"}),
)


@pytest.mark.parametrize("kind", ["core", "vector"])
async def test_hostile_arguments_are_answered_with_sentences_and_reach_nothing_of_others(
    kind: str, ann: BoundMemory, everybodys: Memory
) -> None:
    bob = everybodys.bind(user="bob")
    await bob.add(Draft("Bob's code is 4711", id="bobs-secret"))
    parts = Pieces(10_000), Digests(), Growing()
    memory: Ours = CoreMemory(memory=ann) if kind == "core" else VectorMemory(*parts, memory=ann)
    provider = MemoryToolProvider(memory)
    mine = await memory.store_memory("Ann rows")
    for tool in await provider.list_tools():
        for name in tool.parameters:
            for value in HOSTILE:
                given = {"text": "Ann rows", "query": "code", "memory_id": mine, name: value}
                result = await provider.execute_tool(tool.name, given)
                said = repr(result)
                assert "4711" not in said, (tool.name, name)
                assert result.success or result.error, (tool.name, name)
                for leak in ("has no attribute", "not subscriptable", "not a mapping", "unsupported operand"):
                    assert leak not in said, (tool.name, name, value)
        if await memory.get_memory(mine) is None:  # the honest deletion among them
            mine = await memory.store_memory("Ann rows")
    assert [record.text for record in (await bob.list()).records] == ["Bob's code is 4711"]


@pytest.mark.parametrize("kind", ["core", "vector"])
async def test_what_cannot_be_asked_or_stored_is_refused(kind: str, ann: BoundMemory) -> None:
    parts = Pieces(), Digests(), Growing()
    memory: Ours = CoreMemory(memory=ann) if kind == "core" else VectorMemory(*parts, memory=ann)
    memory_id = await memory.store_memory("Ann rows")
    for blank in ("", " \n"):
        with pytest.raises(ValueError, match="blank"):
            await memory.store_memory(blank)
        with pytest.raises(ValueError, match="blank"):
            await memory.update_memory(memory_id, blank)
        assert await memory.search_memory(blank) == []
    with pytest.raises(ValueError, match="data"):
        await memory.store_memory("Ann swims", {"photo": b"x"})
    for k in (0, -1, 10_001, True, 2.5, "5"):
        with pytest.raises(ValueError, match="k must be a whole number from 1 to 10000"):
            await memory.search_memory("Ann", k)  # type: ignore[arg-type]  # a model may send anything
    assert [one["content"] for one in await memory.list_memories()] == ["Ann rows"]


async def test_relevance_leaves_out_what_does_not_answer(ann: BoundMemory) -> None:
    for text in ("Ann drinks jasmine tea", "The spare key is with Mrs Okafor", "The passport expires in June"):
        await ann.add(text)
    near, relevant = CoreMemory(memory=ann), CoreMemory({"ranking": "relevance"}, memory=ann)
    question = "Who has the spare key?"
    assert len(await near.search_memory(question)) == 3
    hits = await ann.search(question)
    assert [one.memory_id for one in await relevant.search_memory(question)] == [hit.record.id for hit in hits]
    assert len(hits) < 3


async def test_two_modules_on_one_file_lose_nothing(tmp_path: Path) -> None:
    config = {"path": str(tmp_path / "memory.db"), "user": "ann"}
    modules = [CoreMemory(config) for _ in range(3)]
    texts = [(module, f"fact {n} of {place}") for n in range(20) for place, module in enumerate(modules)]
    await asyncio.gather(*(module.store_memory(text) for module, text in texts))
    assert len(await modules[0].list_memories()) == 60
    for module in modules:
        await module.close()


async def test_a_file_of_xaibos_own_memory_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "memories.pkl"
    file.write_bytes(b"\x80\x04}\x94.")
    memory = VectorMemory(Pieces(), Digests(), Growing(), {"memory_file_path": str(file), "user": "ann"})
    with pytest.raises(NotAStoreError):
        await memory.store_memory("Ann rows")
    assert file.read_bytes() == b"\x80\x04}\x94."


async def test_xaibos_own_configuration_makes_a_file_for_one_person(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = {"memory_file_path": str(tmp_path / "memories.db")}
    memory = VectorMemory(Pieces(), Digests(), Growing(), config)
    await memory.store_memory("Ann rows")
    assert "all memories of" in caplog.text
    again = VectorMemory(Pieces(), Digests(), Growing(), config)
    assert [one["content"] for one in await again.list_memories()] == ["Ann rows"]
    assert memory.handle.scope.user == "single-user"


async def test_both_memories_share_a_file(tmp_path: Path) -> None:
    """The one finds by its own vectors, the other by the core's, as every other framework does."""
    path = str(tmp_path / "memory.db")
    parts = VectorMemory(Pieces(), Digests(), Growing(), {"memory_file_path": path, "user": "ann"})
    core = CoreMemory({"path": path, "user": "ann"})
    key = await parts.store_memory("The spare key is with Mrs Okafor")
    boat = await core.store_memory("The boat is in the shed")
    (found,) = await core.search_memory("Who can let me in?", k=1)
    assert found.memory_id == key
    assert await parts.reindex() == 2
    (found,) = await parts.search_memory("The boat is in the shed", k=1)
    assert found.memory_id == boat
    await core.close()


def test_a_configured_memory_needs_a_path() -> None:
    with pytest.raises(ValueError, match="memory_file_path is required in config"):
        VectorMemory(Pieces(), Digests(), Growing(), {"user": "ann"})


async def test_memories_move_in_from_another_module(ann: BoundMemory, tmp_path: Path) -> None:
    old = VectorMemory(TokenChunker(), SentenceTransformerEmbedder(), VectorIndex())
    await old.store_memory("Ann rows", {"source": "x"})
    new = CoreMemory(memory=ann)
    for one in await old.list_memories():
        await new.store_memory(one["content"], one["attributes"])
    (found,) = await new.search_memory("What sport does Ann do?")
    assert (found.content, found.attributes) == ("Ann rows", {"source": "x"})


async def test_a_dropped_memory_needs_nobody_to_close_it(tmp_path: Path) -> None:
    config = {"path": str(tmp_path / "memory.db"), "user": "ann"}
    await CoreMemory(config).store_memory("Ann rows")
    async with Memory(tmp_path / "memory.db") as memory:
        assert (await memory.bind(user="ann").stats()).records == 1


async def test_a_memory_reads_what_its_handle_shares_and_nothing_else(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    owners = {user: CoreMemory({"path": path, "user": user}) for user in ("ann", "team", "company", "bob")}
    ids = {user: await memory.store_memory(f"{user} has a kettle") for user, memory in owners.items()}
    memory = Memory(path)
    spaces = {"us": memory.bind(user="team"), "handbook": memory.bind(user="company")}
    ann = CoreMemory({"user": "ann"}, memory=memory.bind().sharing(spaces, writable=["us"]))
    listed = {memory["content"]: memory["attributes"].get("space") for memory in await ann.list_memories()}
    assert listed == {"ann has a kettle": None, "team has a kettle": "us", "company has a kettle": "handbook"}
    found = {one.memory_id: one.attributes for one in await ann.search_memory("kettle")}
    assert found == {ids["ann"]: {}, ids["team"]: {"space": "us"}, ids["company"]: {"space": "handbook"}}
    assert await ann.get_memory(ids["bob"]) is None
    assert not await ann.delete_memory(ids["bob"])
    assert await ann.update_memory(ids["team"], "team has two kettles")
    with pytest.raises(ScopeError, match="reading only"):
        await ann.update_memory(ids["company"], "mine")
    with pytest.raises(ScopeError, match="reading only"):
        await ann.delete_memory(ids["company"])
    assert [memory["content"] for memory in await owners["ann"].list_memories()] == ["ann has a kettle"]  # not granted
    for each in (*owners.values(), ann):
        await each.close()


async def test_an_attribute_does_not_pose_as_the_label_of_a_space(ann: BoundMemory) -> None:
    team = BoundMemory(ann.memory, Scope("default", "team"))
    alone, sharing = CoreMemory(memory=ann), CoreMemory(memory=ann.sharing({"us": team}))
    mine = await alone.store_memory("ann has a kettle", {"space": "us", "colour": "red"})
    theirs = await CoreMemory(memory=team).store_memory("the team has a kettle", {"space": "nobody"})
    found = {one.memory_id: one.attributes for one in await sharing.search_memory("kettle")}
    assert found == {mine: {"colour": "red"}, theirs: {"space": "us"}}
    assert [memory["attributes"] for memory in await sharing.list_memories()] == [found[mine], found[theirs]]
    assert (await sharing.get_memory(mine) or {})["attributes"] == found[mine]
    assert (await alone.get_memory(mine) or {})["attributes"] == {"space": "us", "colour": "red"}
