"""Loading and running a sentence model from disk; synchronous, for a thread that may block."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from memory_core.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Pooling = Literal["mean", "cls"]
"""How token vectors become one vector: their mean, or the vector of the first token."""


class _Value(Protocol):
    @property
    def name(self) -> str: ...


class _Session(Protocol):
    """The used part of `onnxruntime.InferenceSession`, which is not annotated."""

    def get_inputs(self) -> list[_Value]: ...

    def get_outputs(self) -> list[_Value]: ...

    def run(
        self, output_names: list[str], input_feed: dict[str, NDArray[np.int64]], /
    ) -> list[NDArray[np.float32]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceModel:
    """A loaded model. Several threads can use it at once; each call runs on the calling thread."""

    directory: Path
    dimensions: int
    max_tokens: int
    pooling: Pooling
    tokenizer: WordPiece
    session: _Session
    inputs: frozenset[str]
    output: str

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
            row[:] = self._vector(text)
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


def load(directory: Path, *, dimensions: int, max_tokens: int, pooling: Pooling) -> SentenceModel:
    """Read `vocab.txt` and `model.onnx` (or `onnx/model.onnx`).

    Raises:
        EmbeddingError: A file is missing or damaged, or the model needs inputs that a BERT model does not have.
    """
    tokenizer = WordPiece(_read(directory / "vocab.txt").decode("utf-8", "replace").splitlines())
    path = directory / "model.onnx"
    session = _open_session(path if path.exists() else directory / "onnx" / "model.onnx")
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
    )


def _open_session(path: Path) -> _Session:
    import onnxruntime  # noqa: PLC0415  (only needed for embedding)

    runtime: Any = onnxruntime  # it is not annotated
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # texts run in parallel instead: no thread waits for another
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; they are raised as well
    content = _read(path)
    try:
        session: _Session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no base class of their own
        raise EmbeddingError(f"{path} is damaged, or not an ONNX model that onnxruntime can run") from error
    return session


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EmbeddingError(f"{path} cannot be read: {error.strerror}") from error


_SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_SPECIAL_LITERAL: Final = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")

_LONGEST_WORD: Final = 100
"""Characters; a longer word is unknown, as in BERT's own tokenizer."""

_CACHED_WORDS: Final = 32_768
"""Number of words whose pieces are cached: about 6 MB when full."""

_CHINESE: Final = (
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2B740),
    range(0x2B740, 0x2B820),
    range(0x2B920, 0x2CEB0),
    range(0x2F800, 0x2FA20),
)


class _Characters(dict[int, str]):
    """A table for `str.translate` that is filled as characters occur."""


class _Cleaned(_Characters):
    """First pass: drop control characters, turn white space into blanks, put blanks around Chinese characters."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char in "\t\n\r" or unicodedata.category(char)[0] == "Z":
            char = " "
        elif code == 0xFFFD or unicodedata.category(char) in {"Cc", "Cf", "Co", "Cs"}:
            char = ""
        elif any(code in block for block in _CHINESE):
            char = f" {char} "
        self[code] = char
        return char


class _Folded(_Characters):
    """Second pass, after canonical decomposition: drop accents, lower-case, put blanks around punctuation."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if unicodedata.category(char) == "Mn":
            folded = ""
        elif _is_punctuation(char):
            folded = f" {char} "
        else:
            folded = char.lower()
        self[code] = folded
        return folded


def _is_punctuation(char: str) -> bool:
    """Like BERT, counts every ASCII character that is not a letter, digit or blank, also `$`, `+` and `|`."""
    if char.isascii():
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char)[0] == "P"


class WordPiece:
    """Turns text into token ids as uncased BERT models do, with the standard library only.

    The rules are those of `BertTokenizer` in google-research/bert (`tokenization.py`), in the variant of the
    `tokenizers` package, which the tests compare with: clean, space out Chinese characters, strip accents, lower-case,
    split at punctuation, then take the longest known piece from the left of each word.

    Args:
        vocabulary: The pieces in the order of their ids, one per line of a `vocab.txt`. `##` marks a piece that
            continues a word.

    Raises:
        EmbeddingError: One of `[PAD] [UNK] [CLS] [SEP] [MASK]` is missing.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        if missing := [piece for piece in _SPECIAL if piece not in self._ids]:
            raise EmbeddingError(f"the vocabulary of {len(vocabulary)} pieces lacks {', '.join(missing)}")
        self._unknown, self._first, self._last = (self._ids[piece] for piece in ("[UNK]", "[CLS]", "[SEP]"))
        self._cleaned, self._folded = _Cleaned(), _Folded()
        self._pieces = lru_cache(_CACHED_WORDS)(self._split)

    def encode(self, text: str, *, max_tokens: int) -> list[int]:
        """The ids of `[CLS]`, the pieces of the text, and `[SEP]`, truncated to `max_tokens` in all.

        The names of special tokens in the text (`[MASK]`) become those tokens. An empty text gives two ids.
        """
        ids = [self._first]
        for part in _SPECIAL_LITERAL.split(text) if "[" in text else (text,):
            if part in _SPECIAL:
                ids.append(self._ids[part])
                continue
            for word in self._words(part):
                ids += self._pieces(word)
                if len(ids) >= max_tokens:
                    break
        del ids[max_tokens - 1 :]
        ids.append(self._last)
        return ids

    def familiarity(self, text: str) -> float:
        """How well the vocabulary knows the words of a text, from 0 to 1.

        It rises from 0 to 1 as the share of letters in words of a single piece rises from a quarter to a half. The
        share is about nine tenths for English queries and rarely less than half, a quarter to a third for German and
        Spanish ones, and zero for Russian and Chinese ones.
        """
        whole = letters = 0
        for word in self._words(text):
            if any(map(str.isalpha, word)):
                letters += len(word)
                pieces = self._pieces(word)
                if len(word) > 1 and len(pieces) == 1 and pieces[0] != self._unknown:
                    whole += len(word)
        return min(max(4 * whole / letters - 1, 0.0), 1.0) if letters else 1.0

    def _words(self, text: str) -> list[str]:
        cleaned = text.translate(self._cleaned)
        if not cleaned.isascii():
            cleaned = unicodedata.normalize("NFD", cleaned)
        return cleaned.translate(self._folded).split()

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONGEST_WORD:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._ids.get(prefix + word[start:end])
                if piece is not None:
                    pieces.append(piece)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(pieces)
