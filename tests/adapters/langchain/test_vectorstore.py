"""`MemoryVectorStore`, and LangChain's embeddings as the embedder of a memory."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.example_selectors import MaxMarginalRelevanceExampleSelector, SemanticSimilarityExampleSelector
from langchain_core.indexing import InMemoryRecordManager, index

from memory_core import BoundMemory, Embedder, EmbeddingError, InvalidInputError, Memory, Scope, ScopeError, run_sync
from memory_core.adapting import Mode
from memory_core.testing.embedder import EmbedderContract
from memory_langchain import LangChainEmbedder, MemoryRetriever, MemoryVectorStore

FAKE = DeterministicFakeEmbedding(size=6)


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[BoundMemory]:
    """A handle whose memory embeds with LangChain's own test embeddings."""
    with Memory(tmp_path / "memory.db", embedder=LangChainEmbedder(FAKE, name="fake", dimensions=6)) as memory:
        yield memory.bind(app="demo", user="ann")


class TestEmbedder(EmbedderContract):
    @pytest.fixture
    def make_embedder(self) -> Callable[[], Embedder]:
        return lambda: LangChainEmbedder(FAKE, name="fake", dimensions=6)


def test_embeddings_that_fail_are_an_embedding_error() -> None:
    class Broken(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise RuntimeError("overloaded")

        def embed_query(self, text: str) -> list[float]:
            raise RuntimeError("overloaded")

    with pytest.raises(EmbeddingError, match="overloaded"):
        asyncio.run(LangChainEmbedder(Broken(), name="broken", dimensions=6).embed_query("tea"))


def test_a_document_comes_back_as_it_was_added(vectors: BoundMemory) -> None:
    store = MemoryVectorStore(vectors)
    metadata = {"page": 4, "tags": ["a", "b"], "score": 0.5, "of": {"x": None}}
    ids = store.add_texts(["Press both buttons", "Pull the plug"], [metadata, {}], ids=["reset", None])
    assert ids[0] == "reset"
    assert sorted(store.get_by_ids([*ids, "unknown"]), key=lambda document: document.page_content) == [
        Document("Press both buttons", metadata=metadata, id="reset"),
        Document("Pull the plug", id=ids[1]),
    ]


def test_scores_are_cosines_and_a_threshold_applies_to_them(vectors: BoundMemory) -> None:
    store = MemoryVectorStore(vectors)
    store.add_texts(["tea", "milk"])
    (best, score), (_, second) = store.similarity_search_with_score("tea", k=2)
    assert best.page_content == "tea"
    assert score == pytest.approx(1.0, abs=1e-3)
    assert 0 <= second < score
    retriever = store.as_retriever(search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.99})
    assert [document.page_content for document in retriever.invoke("tea")] == ["tea"]


async def test_a_filter_on_metadata_applies_before_the_limit(vectors: BoundMemory) -> None:
    store = MemoryVectorStore(vectors)
    await store.aadd_texts([f"tea {n}" for n in range(20)], [{"page": n} for n in range(20)])
    found = await store.as_retriever(search_kwargs={"k": 3, "filter": {"page": {"$gte": 18}}}).ainvoke("tea 0")
    assert sorted(document.metadata["page"] for document in found) == [18, 19]


async def test_a_vector_of_the_callers_own_finds_what_its_text_finds(vectors: BoundMemory) -> None:
    store, vector = MemoryVectorStore(vectors), FAKE.embed_query("tea 3")
    await store.aadd_texts([f"tea {n}" for n in range(9)], [{"page": n} for n in range(9)])
    assert store.similarity_search_by_vector(vector, k=4) == store.similarity_search("tea 3", k=4)
    assert await store.asimilarity_search_by_vector(vector, k=4) == await store.asimilarity_search("tea 3", k=4)
    (last,) = store.similarity_search_by_vector(vector, k=3, filter={"page": {"$gt": 7}})
    assert last.metadata == {"page": 8}
    with pytest.raises(InvalidInputError, match="6 numbers"):
        store.similarity_search_by_vector(vector[:5])
    with pytest.raises(TypeError, match="fitler"):
        await store.asimilarity_search_by_vector(vector, fitler={"page": 1})


async def test_maximal_marginal_relevance_finds_what_was_not_said_yet(vectors: BoundMemory) -> None:
    store, question = MemoryVectorStore(vectors), "Ann drinks tea"
    texts = [question, f"{question}!", f"{question}.", "The train leaves at nine", "Berth fourteen"]
    await store.aadd_texts(texts, [{"page": n} for n in range(5)])
    only = {"page": {"$lt": 4}}
    found = [
        store.max_marginal_relevance_search(question, k=2, lambda_mult=0, filter=only),
        await store.amax_marginal_relevance_search(question, k=2, lambda_mult=0, filter=only),
        await store.as_retriever(
            search_type="mmr", search_kwargs={"k": 2, "fetch_k": 9, "lambda_mult": 0, "filter": only}
        ).ainvoke(question),
    ]
    assert [[document.page_content for document in one] for one in found] == [[question, texts[3]]] * 3
    by_relevance = store.max_marginal_relevance_search(question, k=3, lambda_mult=1)
    assert by_relevance == store.similarity_search(question, k=3)
    assert len(store.max_marginal_relevance_search(question, k=3, fetch_k=2)) == 2
    with pytest.raises(InvalidInputError, match="lambda_mult"):
        store.max_marginal_relevance_search(question, lambda_mult=1.5)


@pytest.mark.parametrize("mode", ["vector", "hybrid", "lexical"])
async def test_a_blank_query_lists_what_satisfies_the_filter(mode: Mode, vectors: BoundMemory) -> None:
    store, only = MemoryVectorStore(vectors, mode=mode), {"page": {"$gt": 6}}
    await store.aadd_texts([f"tea {n}" for n in range(9)], [{"page": n} for n in range(9)])
    newest = [Document("tea 8", metadata={"page": 8}), Document("tea 7", metadata={"page": 7})]
    for query in ("", " \n"):
        found = store.similarity_search(query, k=4, filter=only)
        assert [(one.page_content, one.metadata) for one in found] == [(n.page_content, n.metadata) for n in newest]
        assert len(await store.asimilarity_search(query, k=4)) == 4
        assert await store.amax_marginal_relevance_search(query, k=4, filter=only) == found
        assert store.similarity_search_with_score(query, k=4, filter=only) == [(one, 0.0) for one in found]


def test_a_misspelt_argument_is_refused_rather_than_ignored(vectors: BoundMemory) -> None:
    store, misspelt = MemoryVectorStore(vectors), dict[str, Any](fitler={"page": 1})
    store.add_texts(["tea"], ids=["1"])
    for call in (
        lambda: store.similarity_search("tea", **misspelt),
        lambda: store.similarity_search_with_score("tea", **misspelt),
        lambda: store.max_marginal_relevance_search("tea", **misspelt),
        lambda: store.similarity_search_by_vector(FAKE.embed_query("tea"), **misspelt),
        lambda: store.delete(**misspelt),
        lambda: store.add_texts(["milk"], **misspelt),
    ):
        with pytest.raises(TypeError, match="fitler"):
            call()
    assert [document.id for document in store.similarity_search("tea", k=9)] == ["1"]


def test_a_call_adds_all_or_nothing(vectors: BoundMemory) -> None:
    store = MemoryVectorStore(vectors)
    with pytest.raises(InvalidInputError):
        store.add_texts(["tea", "milk"], [{}, {"no json": {1, 2}}])
    with pytest.raises(InvalidInputError, match="2 texts have 1 metadatas"):
        store.add_texts(["tea", "milk"], [{}])
    assert store.similarity_search("tea") == []


def test_a_vector_store_belongs_to_one_handle_and_returns_only_its_own_documents(vectors: BoundMemory) -> None:
    manuals, letters = (MemoryVectorStore(vectors.bind(collection=name)) for name in ("manuals", "letters"))
    bob = MemoryVectorStore(BoundMemory(vectors.memory, Scope("demo", "bob")))
    for store, text in ((manuals, "manual"), (letters, "letter"), (bob, "of bob")):
        store.add_texts([text], ids=["same"])
    assert [document.page_content for document in letters.similarity_search("manual", k=9)] == ["letter"]
    manuals.delete()
    assert manuals.get_by_ids(["same"]) == []
    assert [document.page_content for document in bob.get_by_ids(["same"])] == ["of bob"]
    assert [document.page_content for document in letters.get_by_ids(["same"])] == ["letter"]


def test_it_shows_documents_only_and_they_are_memories_like_others(vectors: BoundMemory) -> None:
    run_sync(vectors.add, "Ann drinks tea")
    store = MemoryVectorStore(vectors)
    store.add_texts(["How to brew tea"])
    assert [document.page_content for document in store.similarity_search("tea")] == ["How to brew tea"]
    assert {document.page_content for document in MemoryRetriever(memory=vectors).invoke("tea")} == {
        "Ann drinks tea",
        "How to brew tea",
    }
    store.delete()
    assert run_sync(vectors.stats).records == 1


def test_langchains_indexing_keeps_it_in_step_with_a_source(vectors: BoundMemory) -> None:
    store, manager = MemoryVectorStore(vectors), InMemoryRecordManager("demo")
    manager.create_schema()

    def sync(*texts: str) -> dict[str, int]:
        documents = [Document(text, metadata={"source": text}) for text in texts]
        done: Any = index(documents, manager, store, cleanup="full", source_id_key="source", key_encoder="sha256")
        return {name: count for name, count in done.items() if count}

    assert sync("tea", "milk") == {"num_added": 2}
    assert sync("tea", "coffee") == {"num_added": 1, "num_skipped": 1, "num_deleted": 1}
    assert {document.page_content for document in store.similarity_search("tea", k=9)} == {"tea", "coffee"}


async def test_it_can_be_made_from_documents_and_embeddings_alone() -> None:
    documents = [Document("tea", id="1"), Document("milk", id="2")]
    store = MemoryVectorStore.from_documents(documents, FAKE)
    other = await MemoryVectorStore.afrom_documents(documents, FAKE)
    for each in (store, other):
        assert [document.id for document in each.similarity_search("milk", k=1)] == ["2"]
    assert store.get_by_ids(["1"]) == [Document("tea", id="1")]


def test_metadata_of_loaders_are_stored_as_json(ann: BoundMemory) -> None:
    metadata = {
        "creationdate": datetime(2026, 1, 31, 12, tzinfo=UTC),
        "day": date(2026, 1, 31),
        "box": (1, 2.5),
        "score": np.float32(0.5),
        "row": {"number": np.int64(7), "values": np.arange(2)},
        "title": None,
    }
    store = MemoryVectorStore(ann, mode="lexical")
    store.add_documents([Document("tea", metadata=metadata, id="1")])
    (document,) = store.get_by_ids(["1"])
    assert document.metadata == {
        "creationdate": "2026-01-31T12:00:00+00:00",
        "day": "2026-01-31",
        "box": [1, 2.5],
        "score": 0.5,
        "row": {"number": 7, "values": [0, 1]},
        "title": None,
    }
    with pytest.raises(InvalidInputError, match="object"):
        store.add_texts(["milk"], [{"loader": object()}])


def test_what_satisfies_a_filter_is_deleted(ann: BoundMemory) -> None:
    store = MemoryVectorStore(ann, mode="lexical")
    store.add_texts(["tea", "milk", "salt"], [{"page": 1}, {"page": 2}, {"page": 3}], ids=["1", "2", "3"])
    assert store.delete(filter={"page": {"$gt": 1}})
    assert [document.id for document in store.get_by_ids(["1", "2", "3"])] == ["1"]
    with pytest.raises(InvalidInputError, match="not both"):
        store.delete(["1"], filter={"page": 1})
    store.add_texts(["milk"], ids=["2"])
    assert store.delete()
    assert store.get_by_ids(["1", "2"]) == []


def test_examples_for_a_prompt_are_selected_from_it(vectors: BoundMemory) -> None:
    examples = [{"in": "happy", "out": "sad"}, {"in": "tall", "out": "short"}]
    nearest = SemanticSimilarityExampleSelector.from_examples(examples, FAKE, MemoryVectorStore, k=1, input_keys=["in"])
    assert nearest.select_examples({"in": "happy"})
    durable = MaxMarginalRelevanceExampleSelector(vectorstore=MemoryVectorStore(vectors), k=1, input_keys=["in"])
    durable.add_example(examples[0])
    assert durable.select_examples({"in": "tall"}) == examples[:1]


def test_no_documents_are_found_if_none_are_wanted(vectors: BoundMemory) -> None:
    store = MemoryVectorStore(vectors)
    store.add_texts(["tea"])
    assert store.similarity_search("tea", k=0) == []
    assert store.similarity_search_with_score("tea", k=0) == []
    assert store.max_marginal_relevance_search("tea", k=0) == []
    assert store.similarity_search_by_vector([1.0], k=0) == []


def test_a_store_without_an_owner_is_refused(memory: Memory) -> None:
    for nobody in (memory.bind(), memory, None):
        with pytest.raises(ScopeError):
            MemoryVectorStore(nobody)  # type: ignore[arg-type]  # what a caller may get wrong


def test_scores_of_words_are_the_share_of_the_question_that_a_document_has(ann: BoundMemory) -> None:
    store = MemoryVectorStore(ann, mode="lexical")
    store.add_texts(["The reset button is red", "The reset takes a minute", "Roses in May"])
    scored = [(each.page_content, score) for each, score in store.similarity_search_with_score("red reset button")]
    (best, whole), (second, part) = scored[:2]
    assert (best, second) == ("The reset button is red", "The reset takes a minute")
    assert 1 >= whole > 0.8 > part > 0
    assert store.similarity_search_with_relevance_scores("red reset button", score_threshold=0.8)[0][1] == whole


def test_a_copy_is_the_same_store(ann: BoundMemory) -> None:
    store = MemoryVectorStore(ann, mode="lexical")
    assert copy.deepcopy(store) is store
    store.add_texts(["Ann drinks tea"])
    assert [document.page_content for document in store.similarity_search("tea")] == ["Ann drinks tea"]
