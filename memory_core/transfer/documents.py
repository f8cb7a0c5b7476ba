"""Documents, plain text or Markdown, in parts that keep their place.

Whatever is no text is the job of a loader, of which there are many; its texts are added as any others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from memory_core.errors import InvalidInputError

PART_CHARS: Final = 8_000
"""Characters of a part; the core splits it further for its vectors."""
KIND: Final = "document"
"""The kind of the records of parts."""


def parts_of(name: str, content: bytes) -> Iterator[tuple[int, str]]:
    """The parts of a document, in order, each with the place of its first character.

    Args:
        name: Of the file, for errors.
        content: The bytes of the file.

    Raises:
        InvalidInputError: It is not text in UTF-8.
    """
    return _parts(_text(name, content))


def _text(name: str, content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{name} is not text in UTF-8 ({error}); {_LOADER}") from error
    if "\0" in text:
        raise InvalidInputError(f"{name} is not text: it contains NUL characters; {_LOADER}")
    return text


_LOADER: Final = (
    'turn it into text first, for example with a document loader (the page "PDF, HTML and other documents")'
)


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Parts of a text that end at a paragraph, or else at a word, with their places."""
    start = 0
    while start < len(text):
        stop = min(start + PART_CHARS, len(text))
        if stop < len(text):
            breaks = (text.rfind(mark, start + PART_CHARS // 2, stop) for mark in ("\n\n", "\n", " "))
            stop = next((found for found in breaks if found > 0), stop)
        if part := text[start:stop].strip():
            yield text.index(part, start), part
        start = stop
