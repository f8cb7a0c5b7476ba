"""The default embedder: where it runs, what it shares, and that it lets go."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import Executor
from typing import Any

import numpy as np
import pytest

from memory_core.embedding.local import _Recent
from memory_core.embedding.local_model import Asked
from memory_core.embedding.minilm import SHIPPED_FILE, MiniLmEmbedder
from memory_core.embedding.shipped import SHIPPED, shipped_vectors
from memory_core.errors import EmbeddingError
from memory_core.storage.shared.reference import reference_texts
from tests.embedding.texts import varied


def run_python(code: str) -> str:
    """The output of code in a process of its own; one that hangs fails after a minute."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.strip()


async def test_meaning_counts_more_than_words() -> None:
    embedder = MiniLmEmbedder()
    rows = await embedder.embed_documents(
        ["A kitten sleeps on the couch", "The tax office sent a letter", "Slept badly on the train"]
    )
    assert (rows @ await embedder.embed_query("Where is the cat taking a nap?")).argmax() == 0
    await embedder.close()


async def test_a_text_has_one_vector_alone_in_company_and_as_a_query() -> None:
    embedder = MiniLmEmbedder()
    texts = varied(60)
    rows = await embedder.embed_documents(texts)
    for row, text in zip(rows, texts, strict=True):
        assert np.array_equal(row, (await embedder.embed_documents([text]))[0])
        assert np.array_equal(row, await embedder.embed_query(text))
    await embedder.close()


async def test_an_empty_text_has_the_vector_of_no_words() -> None:
    embedder = MiniLmEmbedder()
    rows = await embedder.embed_documents(["", " \n", "\0"])
    assert np.array_equal(rows[0], rows[1])
    assert np.array_equal(rows[0], rows[2])
    await embedder.close()


async def test_what_is_beyond_256_tokens_does_not_count() -> None:
    embedder = MiniLmEmbedder()
    rows = await embedder.embed_documents(["tea " * 254, "tea " * 254 + "coffee", "tea " * 253 + "coffee"])
    assert np.array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])
    await embedder.close()


async def test_a_question_does_not_wait_for_documents() -> None:
    embedder = MiniLmEmbedder()
    await embedder.embed_query("the model is open by now")
    documents = asyncio.ensure_future(embedder.embed_documents(varied(200) * 20))
    await asyncio.sleep(0)
    await embedder.embed_query("what did Ann say?")
    assert not documents.done()
    documents.cancel()
    await embedder.close()


async def test_the_threads_of_the_event_loop_are_left_alone() -> None:
    class Refusing(Executor):
        def submit(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("the default executor was used")

    asyncio.get_running_loop().run_in_executor(None, int)  # made, so that it can be replaced and shut down
    default = asyncio.get_running_loop()._default_executor  # type: ignore[attr-defined]
    asyncio.get_running_loop()._default_executor = Refusing()  # type: ignore[attr-defined]
    try:
        embedder = MiniLmEmbedder()
        await embedder.embed_documents(varied(40))
        await embedder.embed_query("what did Ann say?")
        await embedder.close()
    finally:
        asyncio.get_running_loop()._default_executor = default  # type: ignore[attr-defined]


async def test_closing_stops_documents_that_wait_and_the_next_call_opens_again() -> None:
    embedder = MiniLmEmbedder()
    before = await embedder.embed_query("what did Ann say?")
    documents = asyncio.ensure_future(embedder.embed_documents(varied(200) * 20))
    await asyncio.sleep(0)
    await embedder.close()
    with pytest.raises(EmbeddingError, match="closed while it had texts to embed"):
        await documents
    assert np.array_equal(before, (await embedder.embed_documents(["what did Ann say?"]))[0])
    await embedder.close()


@pytest.mark.process
def test_making_one_loads_neither_numpy_nor_onnxruntime() -> None:
    code = """
import sys
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.embedding.minilm import MiniLmEmbedder
print(MiniLmEmbedder().fingerprint.dimensions, HashingEmbedder().fingerprint.dimensions)
print({"numpy", "onnxruntime", "tokenizers"} & set(sys.modules))
"""
    assert run_python(code).split("\n") == ["384 512", "set()"]


@pytest.mark.process
def test_the_interpreter_ends_while_a_bulk_is_being_embedded() -> None:
    code = """
import asyncio, threading
from memory_core.embedding.minilm import MiniLmEmbedder

embedder = MiniLmEmbedder()
started = threading.Event()

async def bulk():
    await embedder.embed_query("open")
    started.set()
    try:
        await embedder.embed_documents([f"number {i} " * 60 for i in range(1_000_000)])
    except Exception as error:
        print(type(error).__name__)

threading.Thread(target=asyncio.run, args=(bulk(),), daemon=True).start()
started.wait()
"""
    assert run_python(code) in {"EmbeddingError", ""}


@pytest.mark.process
@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="only where processes fork")
def test_a_forked_child_loads_the_model_again() -> None:
    code = """
import asyncio, os, warnings
warnings.simplefilter("ignore")
from memory_core.embedding.minilm import MiniLmEmbedder

embedder = MiniLmEmbedder()
asyncio.run(embedder.embed_query("open"))
if os.fork() == 0:
    print(asyncio.run(embedder.embed_query("tea")).shape, flush=True)
    print(asyncio.run(embedder.embed_documents(["tea", "cake"])).shape, flush=True)
    os._exit(0)
os.wait()
"""
    assert run_python(code).split("\n") == ["(384,)", "(2, 384)"]


def test_the_least_recent_question_is_forgotten_first() -> None:
    recent = _Recent(2)
    question = Asked(np.ones(3, np.float32), 1.0)
    for text in ("a", "b"):
        recent.put(text, question)
    assert recent.get("a") is question
    recent.put("c", question)
    assert [recent.get(text) is question for text in ("a", "b", "c")] == [True, False, True]


async def test_the_vocabulary_tells_which_questions_the_model_knows() -> None:
    embedder = MiniLmEmbedder()
    for text in ("Where does my sister live?", "4711", "When is the tax return due?"):
        assert await embedder.familiarity(text) == 1.0
    russian = "\u0413\u0434\u0435 \u0436\u0438\u0432\u0451\u0442 \u0441\u0435\u0441\u0442\u0440\u0430?"
    chinese = "\u6211\u59d0\u59d0\u4f4f\u5728\u54ea\u91cc?"
    for text in (russian, chinese, "Bis wann muss die Steuererkl\u00e4rung fertig sein?"):
        assert await embedder.familiarity(text) < 0.5
    named = "Where did Szczepan Brzozowski park at Sahlgrenska?"
    assert await embedder.familiarity(named) == 1.0, "names are words of no language"
    assert await embedder.familiarity("Wer war das, und wann kam der an?") < 0.5, "short words are in any vocabulary"
    await embedder.close()


async def test_the_texts_that_queries_are_compared_with_are_shipped_with_their_vectors() -> None:
    """If it fails after a change of these texts: `python -m tests.embedding.ship`."""
    texts = reference_texts()
    shipped = shipped_vectors(SHIPPED_FILE, texts)
    assert shipped is not None
    assert len(shipped) == SHIPPED
    embedder = MiniLmEmbedder()
    computed = await embedder.computed(texts)
    assert (await embedder.embed_documents(texts) == shipped).all()
    await embedder.close()
    assert ((shipped * computed).sum(axis=1) > 0.99).all()  # another processor rounds otherwise
    assert shipped_vectors(SHIPPED_FILE, [*texts[:-1], "another text"]) is None
