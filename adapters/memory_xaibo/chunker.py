"""A Xaibo chunker that cuts texts into windows of tokens with the core's chunker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import memory_core
from memory_core import InvalidInputError
from memory_xaibo.modules import Config, injects, options
from memory_xaibo.protocols import ChunkingProtocol

WINDOW_SIZE: Final = 512
WINDOW_OVERLAP: Final = 50
"""In tokens; Xaibo's own defaults."""

Spans = Sequence[tuple[int, int]]


class TokenChunker(ChunkingProtocol):
    """Cuts a text into overlapping windows of tokens: each one begins with the last tokens of the previous one.

    No window is contained in another one, and no character is split.

    Args:
        config: `window_size`, `window_overlap` and `encoding_name`, as for Xaibo's own chunker; keyword arguments
            override them.
        window_size: Tokens in a window (512).
        window_overlap: Tokens shared with the previous window (50), fewer than `window_size`.
        encoding_name: A tiktoken encoding, which tiktoken downloads on first use. Without it, the tokens are words,
            punctuation marks and the single characters of scripts without spaces.

    Raises:
        InvalidInputError: The overlap is not smaller than the window, or the configuration has an unknown option.
    """

    @injects()
    def __init__(
        self,
        config: Config | None = None,
        *,
        window_size: int | None = None,
        window_overlap: int | None = None,
        encoding_name: str | None = None,
    ) -> None:
        given = options(config, "TokenChunker", ("window_size", "window_overlap", "encoding_name"))
        self.window_size: int = given.get("window_size", WINDOW_SIZE) if window_size is None else window_size
        self.window_overlap: int = (
            given.get("window_overlap", WINDOW_OVERLAP) if window_overlap is None else window_overlap
        )
        self.encoding_name: str | None = given.get("encoding_name") if encoding_name is None else encoding_name
        tokens = None if self.encoding_name is None else self._tokens
        self._chunker = memory_core.TokenChunker(self.window_size, self.window_overlap, tokens=tokens)

    async def chunk(self, text: str) -> list[str]:
        """Return the windows of a text in order: none for a blank text, the text itself if it fits into one window."""
        if not text.strip():
            return []
        return [text[start:stop] for start, stop in await asyncio.to_thread(self._chunker.split, text)]

    def _tokens(self, text: str) -> Spans:
        try:
            import tiktoken  # noqa: PLC0415  (needed only with an encoding)
        except ImportError as error:
            raise ImportError("`encoding_name` needs tiktoken: pip install tiktoken") from error
        try:
            encoding = tiktoken.get_encoding(str(self.encoding_name))
        except ValueError as cause:
            raise InvalidInputError(
                f"tiktoken has no encoding {self.encoding_name!r}; tiktoken.list_encoding_names() lists them"
            ) from cause
        # Text that looks like a special token is ordinary text.
        _, starts = encoding.decode_with_offsets(encoding.encode(text, disallowed_special=()))
        return list(zip(starts, [*starts[1:], len(text)], strict=True))
