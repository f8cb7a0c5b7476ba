"""The contract of embedders."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ClassVar, TypeVar

import pytest

from memory_core.supplied import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

TEXTS = (
    "Ann drinks green tea every morning",
    "The train to Lyon leaves at noon",
    "My sister adopted a grey cat",
    "We replaced the pump in the basement",
    "He plays the cello in an orchestra",
    "Taxes are due at the end of April",
    "The new server runs out of memory",
    "Snow fell on the mountains last night",
)

STRANGE_TEXTS = (
    "",
    " \n\t ",
    "\0\x1b\u202e\ufeff\ufffd",
    "...!?",
    "\ud800",
    "お茶を飲みます",
    "שלום עולם",
    "👩‍👩‍👧‍👦🇫🇷",
    "x" * 5_000,
    "one word after the other " * 1_000,
)


class EmbedderContract:
    """Subclass it, define the fixture `make_embedder`, and run pytest.

    `make_embedder` is a function that returns a new embedder at every call; the contract closes it.
    """

    tolerance: ClassVar[float] = 1e-3
    """Tolerance of the cosine between two vectors of one text; vectors can depend on the other texts of a batch."""

    @pytest.fixture
    def make_embedder(self) -> Callable[[], Embedder]:
        raise NotImplementedError("a subclass of the contract has to define the fixture `make_embedder`")

    def test_the_fingerprint_is_known_before_anything_is_embedded(self, make_embedder: Callable[[], Embedder]) -> None:
        fingerprint = make_embedder().fingerprint
        assert fingerprint.name
        assert fingerprint.revision
        assert fingerprint.dimensions > 0
        assert fingerprint.normalised
        assert make_embedder().fingerprint == fingerprint

    def test_documents_are_unit_rows_of_float32(self, make_embedder: Callable[[], Embedder]) -> None:
        embedder = make_embedder()
        rows = run(embedder, lambda: embedder.embed_documents(TEXTS))
        assert rows.shape == (len(TEXTS), embedder.fingerprint.dimensions)
        assert_unit(rows)

    def test_a_query_is_one_unit_vector_of_float32(self, make_embedder: Callable[[], Embedder]) -> None:
        embedder = make_embedder()
        vector = run(embedder, lambda: embedder.embed_query(TEXTS[0]))
        assert vector.shape == (embedder.fingerprint.dimensions,)
        assert_unit(vector[None])

    def test_no_documents_give_no_rows(self, make_embedder: Callable[[], Embedder]) -> None:
        embedder = make_embedder()
        rows = run(embedder, lambda: embedder.embed_documents([]))
        assert rows.shape == (0, embedder.fingerprint.dimensions)
        assert rows.dtype == "float32"

    def test_any_text_has_a_vector(self, make_embedder: Callable[[], Embedder]) -> None:
        embedder = make_embedder()

        async def both() -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
            return await embedder.embed_documents(STRANGE_TEXTS), [await embedder.embed_query(t) for t in STRANGE_TEXTS]

        rows, vectors = run(embedder, both)
        assert_unit(rows)
        for vector in vectors:
            assert_unit(vector[None])

    def test_rows_come_in_the_order_of_the_texts(self, make_embedder: Callable[[], Embedder]) -> None:
        # lengths go up and down, so an embedder that sorts by length has to sort back
        texts = [f"{text} {'again and ' * (number * 7 % 5)}" for number, text in enumerate(TEXTS * 40)]
        texts = [f"{number} {text}" for number, text in enumerate(texts)]
        embedder = make_embedder()

        async def both() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            return await embedder.embed_documents(texts), await embedder.embed_documents(texts[::-1])

        forward, backward = run(embedder, both)
        self.assert_same(forward, backward[::-1])

    def test_the_same_text_has_the_same_vector_in_another_embedder(self, make_embedder: Callable[[], Embedder]) -> None:
        first, second = make_embedder(), make_embedder()
        rows = run(first, lambda: first.embed_documents(TEXTS))
        self.assert_same(rows, run(second, lambda: second.embed_documents(TEXTS)))
        vector = run(first, lambda: first.embed_query(TEXTS[0]))
        self.assert_same(vector[None], run(second, lambda: second.embed_query(TEXTS[0]))[None])

    def test_a_query_is_nearest_to_the_document_that_says_the_same(self, make_embedder: Callable[[], Embedder]) -> None:
        embedder = make_embedder()

        async def nearest() -> list[int]:
            rows = await embedder.embed_documents(TEXTS)
            return [int((rows @ await embedder.embed_query(text)).argmax()) for text in TEXTS]

        assert run(embedder, nearest) == list(range(len(TEXTS)))

    def test_changing_a_returned_vector_changes_no_other(self, make_embedder: Callable[[], Embedder]) -> None:
        embedder = make_embedder()

        async def twice() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            vector = await embedder.embed_query(TEXTS[0])
            before = vector.copy()
            if vector.flags.writeable:
                vector[:] = 0
            return before, await embedder.embed_query(TEXTS[0])

        before, after = run(embedder, twice)
        self.assert_same(before[None], after[None])

    def test_two_event_loops_may_use_it_at_once(self, make_embedder: Callable[[], Embedder]) -> None:
        embedder = make_embedder()

        async def embed() -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
            queries = asyncio.gather(*map(embedder.embed_query, TEXTS))
            return await embedder.embed_documents(TEXTS * 4), await queries

        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(asyncio.run, embed()) for _ in range(2)]
        (rows, vectors), (others, _) = (future.result() for future in futures)
        asyncio.run(embedder.close())
        self.assert_same(rows, others)
        assert [int((rows[: len(TEXTS)] @ vector).argmax()) for vector in vectors] == list(range(len(TEXTS)))

    def test_it_works_after_a_call_was_cancelled(self, make_embedder: Callable[[], Embedder]) -> None:
        embedder = make_embedder()

        async def cancel_and_go_on() -> NDArray[np.float32]:
            task = asyncio.create_task(_documents(embedder, TEXTS * 40))
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait([task])
            return await embedder.embed_documents(TEXTS)

        assert_unit(run(embedder, cancel_and_go_on))

    def test_it_may_be_closed_twice_and_unused(self, make_embedder: Callable[[], Embedder]) -> None:
        used, unused = make_embedder(), make_embedder()

        async def close() -> None:
            await used.embed_query(TEXTS[0])
            for embedder in (used, used, unused, unused):
                await embedder.close()

        asyncio.run(close())

    def assert_same(self, rows: NDArray[np.float32], others: NDArray[np.float32]) -> None:
        """Fail unless each row has the direction of its counterpart."""
        assert rows.shape == others.shape
        cosines = (rows * others).sum(axis=1)
        assert float(cosines.min()) >= 1 - self.tolerance


def run(embedder: Embedder, work: Callable[[], Awaitable[T]]) -> T:
    """Run the work on a new event loop and close the embedder there."""

    async def worked() -> T:
        try:
            return await work()
        finally:
            await embedder.close()

    return asyncio.run(worked())


def assert_unit(rows: NDArray[np.float32]) -> None:
    """Fail unless all rows are float32 and of length 1 (rows with NaN are not)."""
    assert rows.dtype == "float32"
    assert (rows**2).sum(axis=1).tolist() == pytest.approx([1.0] * len(rows), abs=1e-4)


async def _documents(embedder: Embedder, texts: tuple[str, ...]) -> NDArray[np.float32]:
    return await embedder.embed_documents(texts)
