"""A local directory of any BERT sentence model; the models are tables of a few vectors, written on the spot."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_core.concurrency import cores as of_process
from memory_core.concurrency.cores import cores, leave_a_core
from memory_core.embedding.local import LocalEmbedder, OnnxEmbedder
from memory_core.embedding.local_model import Asked
from memory_core.errors import EmbeddingError, InvalidInputError
from memory_core.models import Fingerprint

onnx = pytest.importorskip("onnx")

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "tea", "cat", "query", "passage", ":"]
TABLE = np.eye(len(VOCABULARY), dtype=np.float32)
FINGERPRINT = Fingerprint("table", "1", len(VOCABULARY))
BERT_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_model(
    directory: Path,
    *,
    file: str = "model.onnx",
    inputs: Sequence[str] = BERT_INPUTS,
    table: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = TABLE,
    sentence: bool = False,
) -> None:
    """A model that gives each token its row of `table`; with `sentence`, also three times the row of the last one."""
    helper, proto = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    outputs = [helper.make_tensor_value_info("last_hidden_state", proto.FLOAT, [1, "tokens", table.shape[1]])]
    constants = [onnx.numpy_helper.from_array(table, "table")]
    if sentence:
        constants.append(onnx.numpy_helper.from_array(np.array(3, np.int64), "tea"))
        nodes.append(helper.make_node("Gather", ["last_hidden_state", "tea"], ["sentence_embedding"], axis=1))
        outputs.append(helper.make_tensor_value_info("sentence_embedding", proto.FLOAT, [1, table.shape[1]]))
    values = [helper.make_tensor_value_info(name, proto.INT64, [1, "tokens"]) for name in inputs]
    graph = helper.make_graph(nodes, "table", values, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (directory / file).parent.mkdir(exist_ok=True)
    (directory / file).write_bytes(model.SerializeToString())
    (directory / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")


def unit(*tokens: str) -> list[float]:
    """The mean of the tokens' rows of `TABLE`, at unit length."""
    total = TABLE[[VOCABULARY.index(token) for token in tokens]].sum(axis=0)
    return [float(value) for value in total / np.linalg.norm(total)]


async def embed(embedder: OnnxEmbedder, text: str) -> list[float]:
    vector = await embedder.embed_query(text)
    await embedder.close()
    return [float(value) for value in vector]


async def test_a_token_that_is_a_separator_moves_no_other_token(tmp_path: Path) -> None:
    write_model(tmp_path)
    tokens = ["a\u2028b" if token == "tea" else token for token in VOCABULARY]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    assert await embed(OnnxEmbedder(tmp_path, FINGERPRINT), "cat") == pytest.approx(unit("[CLS]", "cat", "[SEP]"))


@pytest.mark.parametrize("file", ["model.onnx", "onnx/model.onnx"])
async def test_vectors_of_tokens_are_averaged(tmp_path: Path, file: str) -> None:
    write_model(tmp_path, file=file)
    vector = await embed(OnnxEmbedder(tmp_path, FINGERPRINT), "Tea tea cat")
    assert vector == pytest.approx(unit("[CLS]", "tea", "tea", "cat", "[SEP]"))


async def test_a_model_may_keep_its_weights_in_a_file_beside_it(tmp_path: Path) -> None:
    write_model(tmp_path)
    path = tmp_path / "model.onnx"
    onnx.save_model(onnx.load(path), path, save_as_external_data=True, location="model.onnx_data", size_threshold=0)
    assert (tmp_path / "model.onnx_data").stat().st_size >= TABLE.nbytes
    vector = await embed(OnnxEmbedder(tmp_path, FINGERPRINT), "tea")
    assert vector == pytest.approx(unit("[CLS]", "tea", "[SEP]"))


async def test_the_first_token_speaks_for_the_text_if_asked_to(tmp_path: Path) -> None:
    write_model(tmp_path, inputs=("input_ids", "attention_mask"))
    assert await embed(OnnxEmbedder(tmp_path, FINGERPRINT, pooling="cls"), "tea cat") == pytest.approx(unit("[CLS]"))


async def test_a_model_that_pools_by_itself_is_taken_at_its_word(tmp_path: Path) -> None:
    write_model(tmp_path, sentence=True)
    assert await embed(OnnxEmbedder(tmp_path, FINGERPRINT), "tea cat tea") == pytest.approx(unit("tea"))


async def test_questions_and_documents_get_their_prefixes(tmp_path: Path) -> None:
    write_model(tmp_path)
    embedder = OnnxEmbedder(tmp_path, FINGERPRINT, query_prefix="query: ", document_prefix="passage: ")
    (row,) = await embedder.embed_documents(["tea"])
    assert row.tolist() == pytest.approx(unit("[CLS]", "passage", ":", "tea", "[SEP]"))
    assert await embed(embedder, "tea") == pytest.approx(unit("[CLS]", "query", ":", "tea", "[SEP]"))


async def test_a_missing_model_is_named_and_may_come_later(tmp_path: Path) -> None:
    embedder = OnnxEmbedder(tmp_path, FINGERPRINT)
    with pytest.raises(EmbeddingError, match=r"vocab\.txt cannot be read: No such file"):
        await embedder.embed_query("tea")
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY))
    with pytest.raises(EmbeddingError, match=r"model\.onnx cannot be read: No such file"):
        await embedder.embed_documents(["tea"] * 100)
    write_model(tmp_path)
    assert await embed(embedder, "tea") == pytest.approx(unit("[CLS]", "tea", "[SEP]"))


@pytest.mark.parametrize("keep", [0, 10, 200])
async def test_a_damaged_model_is_named(tmp_path: Path, keep: int) -> None:
    write_model(tmp_path)
    path = tmp_path / "model.onnx"
    path.write_bytes(path.read_bytes()[:keep])
    embedder = OnnxEmbedder(tmp_path, FINGERPRINT)
    with pytest.raises(EmbeddingError, match=r"model\.onnx is not an ONNX model that onnxruntime can run"):
        await embedder.embed_query("tea")
    await embedder.close()


async def test_other_dimensions_than_the_fingerprint_says_are_refused(tmp_path: Path) -> None:
    write_model(tmp_path)
    embedder = OnnxEmbedder(tmp_path, Fingerprint("table", "1", 384))
    with pytest.raises(
        EmbeddingError, match=r"returns vectors of shape \(10,\), but its fingerprint has 384 dimensions"
    ):
        await embedder.embed_query("tea")
    await embedder.close()


async def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path, inputs=("input_ids", "pixel_values"))
    embedder = OnnxEmbedder(tmp_path, FINGERPRINT)
    with pytest.raises(EmbeddingError, match="needs pixel_values; only BERT models work"):
        await embedder.embed_query("tea")
    await embedder.close()


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
async def test_a_vector_without_a_direction_is_refused(tmp_path: Path, value: float) -> None:
    write_model(tmp_path, table=np.full_like(TABLE, value))
    embedder = OnnxEmbedder(tmp_path, FINGERPRINT)
    with pytest.raises(EmbeddingError, match="made a vector of length"):
        await embedder.embed_documents(["tea"])
    await embedder.close()


async def test_a_model_that_fails_on_a_text_is_named(tmp_path: Path) -> None:
    write_model(tmp_path, table=TABLE[:3])  # the other words have no row
    embedder = OnnxEmbedder(tmp_path, FINGERPRINT)
    with pytest.raises(EmbeddingError, match="failed on a text of 3 tokens"):
        await embedder.embed_query("tea")
    await embedder.close()


class Jobs(LocalEmbedder):
    """Notes how much each job has."""

    def __init__(self) -> None:
        super().__init__(Fingerprint("jobs", "1", 2))
        self.jobs: list[list[str]] = []

    def load(self) -> Jobs:
        return self

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        self.jobs.append(texts)
        return np.array([[len(text), 1] for text in texts], np.float32)

    def ask(self, query: str) -> Asked:
        raise AssertionError(query)


async def test_a_job_of_a_thread_is_short_whatever_is_embedded() -> None:
    embedder = Jobs()
    texts = ["x" * length for length in (1, 900, 5_000, 900, 900, 900, 20, *[3] * 50)]
    made = await embedder.embed_documents(texts)
    assert [int(length) for length, _ in made] == [len(text) for text in texts]
    assert sorted(text for job in embedder.jobs for text in job) == sorted(texts)
    assert len(embedder.jobs) > 8
    assert all(len(job) <= 8 and (len(job) == 1 or sum(map(len, job)) <= 1_000) for job in embedder.jobs)
    await embedder.close()


class HeldJobs(Jobs):
    """Embeds nothing until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        assert self.may.wait(300)
        return super().embed(texts)


async def test_a_short_text_waits_for_one_job_of_a_thread_of_each_that_came_before() -> None:
    embedder, callers = HeldJobs(), 4
    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(embedder.embed_documents(["x" * 900] * 50))
        for _ in range(100):
            await asyncio.sleep(0)  # all of them have handed over their first jobs by now
        short = group.create_task(embedder.embed_documents(["short"]))
        for _ in range(100):
            await asyncio.sleep(0)
        embedder.may.set()
        await short
    assert len(embedder.jobs) == 50 * callers + 1
    assert embedder.jobs.index(["short"]) <= (callers + 1) * cores()  # two threads note their jobs in any order
    await embedder.close()


def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(of_process, "_left", 0)  # and back at the end


class Held(LocalEmbedder):
    """Begins each job, and ends it when it is told to."""

    def __init__(self) -> None:
        super().__init__(Fingerprint("held", "1", 2))
        self.begun: queue.Queue[str] = queue.Queue()
        self.may_end = {"long": threading.Semaphore(0), "short": threading.Semaphore(0)}

    def load(self) -> Held:
        return self

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        kind = texts[0].split()[0]
        self.begun.put(kind)
        assert self.may_end[kind].acquire(timeout=60)
        return np.ones((len(texts), 2), np.float32)

    def ask(self, query: str) -> Asked:
        raise AssertionError(query)

    async def next_begun(self) -> str:
        return await asyncio.to_thread(self.begun.get, timeout=60)


async def test_a_short_text_begins_beside_a_long_one_which_has_fewer_jobs_at_once_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    two_cores(monkeypatch)
    embedder = Held()
    async with asyncio.TaskGroup() as group:
        group.create_task(embedder.embed_documents(["long " * 200] * 6))
        assert [await embedder.next_begun() for _ in range(2)] == ["long", "long"]
        short = group.create_task(embedder.embed_documents(["short"]))
        assert await embedder.next_begun() == "short"  # no job of the long text has ended
        embedder.may_end["long"].release(2)
        assert await embedder.next_begun() == "long"
        assert embedder.begun.empty()  # one at a time now
        embedder.may_end["short"].release()
        await short
        embedder.may_end["long"].release()
        assert [await embedder.next_begun() for _ in range(2)] == ["long", "long"]  # two again
        embedder.may_end["long"].release(3)
    await embedder.close()


async def test_a_server_embeds_on_one_core_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    two_cores(monkeypatch)
    leave_a_core()
    embedder = Held()
    async with asyncio.TaskGroup() as group:
        group.create_task(embedder.embed_documents(["long " * 200] * 4))
        assert await embedder.next_begun() == "long"
        short = group.create_task(embedder.embed_documents(["short"]))
        assert await embedder.next_begun() == "short"  # and no second job of the long text before it
        embedder.may_end["short"].release()
        await short
        embedder.may_end["long"].release(4)
    await embedder.close()


async def test_one_text_in_place_of_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"a list of texts, not one text: \['tea'\]"):
        await OnnxEmbedder(tmp_path, FINGERPRINT).embed_documents("tea")


def test_a_limit_that_leaves_no_token_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="max_tokens must be at least 3"):
        OnnxEmbedder(tmp_path, FINGERPRINT, max_tokens=2)
