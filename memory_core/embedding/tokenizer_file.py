"""The tokenizer of any model, from its `tokenizer.json`, by the `tokenizers` library (`memory-core[tokenizers]`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_core.errors import EmbeddingError


class TokenizerFile:
    """Turns text into token ids as a model's own `tokenizer.json` says.

    Raises:
        EmbeddingError: The library is not installed, or cannot read the file.
    """

    def __init__(self, path: Path) -> None:
        try:
            import tokenizers  # noqa: PLC0415  (an extra)
        except ImportError as error:
            raise EmbeddingError(f"{path} needs the tokenizers library: pip install memory-core[tokenizers]") from error
        library: Any = tokenizers  # it is not annotated throughout
        try:
            self._tokenizer = library.Tokenizer.from_file(str(path))
        except Exception as error:  # the library's errors have no base class of their own
            raise EmbeddingError(f"{path} is not a tokenizer that the tokenizers library can read") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        around: list[int] = self._tokenizer.encode("a").special_tokens_mask
        self._closing = around[::-1].index(0) if 0 in around else 0
        """Number of tokens that the model puts behind a text."""

    def encode(self, text: str, *, max_tokens: int) -> list[int]:
        """The ids of the text, with those that the model puts around it, truncated to `max_tokens` in all."""
        # A lone surrogate is no character; a model has never seen one.
        ids: list[int] = self._tokenizer.encode(text.encode("utf-8", "replace").decode()).ids
        if (over := len(ids) - max_tokens) > 0:  # not by the library, whose setting all threads share
            end = len(ids) - self._closing
            del ids[end - over : end]
        return ids

    def familiarity(self, text: str) -> float:  # noqa: ARG002  (the same for every text)
        """1: such a model is chosen for the languages that it knows."""
        return 1.0
