"""Windows of tokens for Xaibo, cut by the core."""

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
    """Cuts a text into windows of tokens, each of which begins with the last ones of the window before.

    No window lies within another one, and no character is cut in two.

    Args:
        config: `window_size`, `window_overlap` and `encoding_name`, as for Xaibo's own; each counts unless it is given
            by keyword.
        window_size: Tokens of a window (512).
        window_overlap: Tokens shared with the window before (50), fewer than `window_size`.
        encoding_name: An encoding of tiktoken, which downloads it at the first use. Without one, words, punctuation
            marks and single characters of scripts without spaces are the tokens.

    Raises:
        InvalidInputError: The overlap leaves nothing of the window, or the configuration has another option.
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
        """The windows of a text, in order; none of a blank one, and one of a short one, which is the text."""
        if not text.strip():
            return []
        return [text[start:stop] for start, stop in await asyncio.to_thread(self._chunker.split, text)]

    def _tokens(self, text: str) -> Spans:
        try:
            import tiktoken  # noqa: PLC0415  (only who names an encoding needs it)
        except ImportError as error:
            raise ImportError("`encoding_name` needs tiktoken: pip install tiktoken") from error
        try:
            encoding = tiktoken.get_encoding(str(self.encoding_name))
        except ValueError as cause:
            raise InvalidInputError(f"tiktoken has no encoding {self.encoding_name!r}") from cause
        # What looks like a special token is text like any other.
        _, starts = encoding.decode_with_offsets(encoding.encode(text, disallowed_special=()))
        return list(zip(starts, [*starts[1:], len(text)], strict=True))
