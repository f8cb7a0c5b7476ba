"""Loading and running a sentence model from disk; synchronous, for a thread that may block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from memory_core.embedding import onnx_telemetry
from memory_core.embedding.local_model import Asked
from memory_core.embedding.tokenizer_file import TokenizerFile
from memory_core.embedding.wordpiece import WordPiece
from memory_core.errors import EmbeddingError
from memory_core.values.text_lines import lines_in

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Pooling = Literal["mean", "cls"]
"""The way in which token vectors become one vector: their mean, or the vector of the first token."""


class Tokenizer(Protocol):
    """Turns text into the token ids of a model; several threads can use it at once."""

    def encode(self, text: str, *, max_tokens: int) -> list[int]:
        """The ids of a text and of the tokens around it, `max_tokens` in all at most."""
        ...

    def familiarity(self, text: str) -> float:
        """The familiarity of the model with the words of a text, from 0 to 1."""
        ...


class _Value(Protocol):
    @property
    def name(self) -> str: ...


class Session(Protocol):
    """The used part of `onnxruntime.InferenceSession`, which is not annotated."""

    def get_inputs(self) -> list[_Value]: ...

    def get_outputs(self) -> list[_Value]: ...

    def run(
        self, output_names: list[str], input_feed: Mapping[str, NDArray[np.integer[Any]]], /
    ) -> list[NDArray[np.float32]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceModel:
    """A loaded model. Several threads can use it at once; each call runs on the calling thread."""

    directory: Path
    dimensions: int
    max_tokens: int
    pooling: Pooling
    tokenizer: Tokenizer
    session: Session
    inputs: frozenset[str]
    output: str
    query_prefix: str
    document_prefix: str

    def ask(self, query: str) -> Asked:
        """See `LocalModel.ask`; for the familiarity see `WordPiece.familiarity`."""
        return Asked(self._vector(self.query_prefix + query), self.tokenizer.familiarity(query))

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """One unit row per text, each from a separate run.

        A quantised model scales activations by the extremes of the whole run, so in a batch the vector of a text would
        depend on the other texts (a cosine of 0.98 to itself, with the default model). In separate runs, a query and a
        document of the same words have the same vector. This costs 5 to 10 % more processor time for 70 tokens (two
        turns of a conversation) and 25 % for 30 tokens, but a batch would need padding.

        Raises:
            EmbeddingError: The model cannot be run, or returns other dimensions than its fingerprint.
        """
        import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

        rows = np.empty((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = self._vector(self.document_prefix + text)
        return rows

    def _vector(self, text: str) -> NDArray[np.float32]:
        import numpy as np  # noqa: PLC0415

        ids = np.array([self.tokenizer.encode(text, max_tokens=self.max_tokens)], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        try:
            (made,) = self.session.run([self.output], {name: feed[name] for name in self.inputs})
        except Exception as error:  # onnxruntime's errors have no base class of their own
            raise EmbeddingError(f"the model in {self.directory} failed on a text of {ids.size} tokens") from error
        vector: NDArray[np.float32] = made[0]
        if vector.ndim == 2:  # one row per token
            vector = vector.mean(axis=0) if self.pooling == "mean" else vector[0]
        if vector.shape != (self.dimensions,):
            raise EmbeddingError(
                f"the model in {self.directory} returns vectors of shape {vector.shape}, but its fingerprint has "
                f"{self.dimensions} dimensions; correct the fingerprint"
            )
        length = np.linalg.norm(vector)
        if not 0 < length < float("inf"):
            raise EmbeddingError(f"the model in {self.directory} made a vector of length {length}")
        return np.divide(vector, length, dtype=np.float32)


def load(
    directory: Path,
    *,
    dimensions: int,
    max_tokens: int,
    pooling: Pooling,
    query_prefix: str = "",
    document_prefix: str = "",
) -> SentenceModel:
    """Read `model.onnx` (or `onnx/model.onnx`), and `vocab.txt` or else `tokenizer.json`.

    Raises:
        EmbeddingError: A file is missing or cannot be read, or the model needs inputs that a BERT model does not have.
    """
    tokenizer = _tokenizer(directory)
    path = directory / "model.onnx"
    session = open_session(path if path.exists() else directory / "onnx" / "model.onnx")
    inputs = frozenset(value.name for value in session.get_inputs())
    if unknown := inputs - {"input_ids", "attention_mask", "token_type_ids"}:
        raise EmbeddingError(f"the model in {directory} needs {', '.join(sorted(unknown))}; only BERT models work")
    outputs = [value.name for value in session.get_outputs()]
    return SentenceModel(
        directory=directory,
        dimensions=dimensions,
        max_tokens=max_tokens,
        pooling=pooling,
        tokenizer=tokenizer,
        session=session,
        inputs=inputs,
        output="sentence_embedding" if "sentence_embedding" in outputs else outputs[0],
        query_prefix=query_prefix,
        document_prefix=document_prefix,
    )


def _tokenizer(directory: Path) -> Tokenizer:
    vocabulary, described = directory / "vocab.txt", directory / "tokenizer.json"
    if described.exists() and not vocabulary.exists():
        return TokenizerFile(described)
    return WordPiece(lines_in(_read(vocabulary).decode("utf-8", "replace")))


def open_session(path: Path) -> Session:
    """A network, which each call runs on its own thread; raises `EmbeddingError`."""
    onnx_telemetry.turn_off()
    try:
        import onnxruntime  # noqa: PLC0415  (only needed for embedding)
    except ImportError as error:
        raise EmbeddingError(
            "a local model needs onnxruntime, which is not installed: pip install onnxruntime; embedder=None finds "
            "memories by their words"
        ) from error
    runtime: Any = onnxruntime  # it is not annotated
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # texts run in parallel instead: no thread waits for another
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; they are raised as well
    _read(path, 1)  # the sentence for a missing file; onnxruntime reads it without a copy, and finds files beside it
    try:
        session: Session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no base class of their own
        raise EmbeddingError(f"{path} is not an ONNX model that onnxruntime can run") from error
    return session


def _read(path: Path, most: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise EmbeddingError(f"{path} cannot be read: {error.strerror}") from error
