"""Texts that 32 writers add, embedded by MiniLM, beside the embedder alone; and the embedder beside onnxruntime alone.

An add is durable when it returns. onnxruntime gets finished tokens of the same model, with all cores, in the batches
that suit it best; ours also tokenizes, and runs each text by itself.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from common import drafts
from lines.figure import relative
from lines.result import Measured
from memory_core import Draft, Memory, MiniLmEmbedder
from memory_core.embedding import minilm
from memory_core.embedding.wordpiece import WordPiece

COUNT, ROUNDS, WRITERS, MAX_TOKENS = 400, 5, 32, 256
BATCHES = (1, 4, 8, 16, 32, 64)
MODEL = Path(minilm.__file__).parent

Feed = Mapping[str, NDArray[np.int64]]


async def added(texts: Sequence[Draft]) -> float:
    """Texts a second, by 32 writers."""
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "embed.db", embedder=MiniLmEmbedder()) as memory:
            handle = memory.bind(app="bench", user="ann")
            await handle.add("warm up")

            async def write(mine: Sequence[Draft]) -> None:
                for draft in mine:
                    await handle.add(draft)

            start = time.perf_counter()
            await asyncio.gather(*(write(texts[first::WRITERS]) for first in range(WRITERS)))
            return len(texts) / (time.perf_counter() - start)


async def embedded(embedder: MiniLmEmbedder, texts: Sequence[str]) -> float:
    """Texts a second, by the embedder alone."""
    start = time.perf_counter()
    await embedder.embed_documents(texts)
    return len(texts) / (time.perf_counter() - start)


def feeds(texts: Sequence[str], batch: int) -> list[Feed]:
    """Batches of texts of about the same length, so that little is padded."""
    words = WordPiece((MODEL / "vocab.txt").read_text(encoding="utf-8").splitlines())
    tokens = sorted((words.encode(text, max_tokens=MAX_TOKENS) for text in texts), key=len)
    found: list[Feed] = []
    for start in range(0, len(tokens), batch):
        some = tokens[start : start + batch]
        ids = np.zeros((len(some), max(map(len, some))), np.int64)
        mask = np.zeros_like(ids)
        for row, known in enumerate(some):
            ids[row, : len(known)], mask[row, : len(known)] = known, 1
        found.append({"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
    return found


def alone(session: Any, batches: Sequence[Feed]) -> float:
    """Texts a second, by onnxruntime."""
    names = {each.name for each in session.get_inputs()}
    start = time.perf_counter()
    for feed in batches:
        session.run(None, {name: feed[name] for name in names})
    return sum(len(feed["input_ids"]) for feed in batches) / (time.perf_counter() - start)


async def in_rounds(count: int, rounds: int) -> Measured:
    texts = [Draft(draft.text, author=draft.author) for draft in drafts(count, 3)]
    plain = [draft.text for draft in texts]
    runtime: Any = onnxruntime  # it is not annotated
    session = runtime.InferenceSession(str(MODEL / "model.onnx"), providers=["CPUExecutionProvider"])
    embedder = MiniLmEmbedder()
    await embedded(embedder, plain[:8])
    batch = max(BATCHES, key=lambda size: alone(session, feeds(plain[: max(BATCHES)], size)))
    batches = feeds(plain, batch)
    with_store, without, bare = [], [], []
    for _ in range(rounds):
        with_store.append(await added(texts))
        without.append(await embedded(embedder, plain))
        bare.append(alone(session, batches))
    await embedder.close()
    best = f"onnxruntime, {batch} texts at a time"
    return Measured(
        [
            relative("added by 32 writers", "/s", with_store, beside="the embedder alone", other=without, least=0.95),
            relative("the embedder, two cores", "/s", without, beside=best, other=bare, least=0.9),
        ]
    )


def measure(*, short: bool) -> Measured:
    return asyncio.run(in_rounds(4, 1) if short else in_rounds(COUNT, ROUNDS))
