"""Documents, text, Markdown, HTML and PDF, in parts that keep their place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from io import BytesIO
from pathlib import PurePath
from typing import Final, NamedTuple

from memory_core.errors import InvalidInputError

PART_CHARS: Final = 8_000
"""Characters of a part; the core splits it further for its vectors."""
KIND: Final = "document"
"""The kind of the records of parts."""
_INLINE: Final = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "dfn", "em", "i", "kbd", "mark", "q"}
    | {"s", "samp", "small", "span", "strong", "sub", "sup", "time", "u", "var", "wbr", "font"}
)
"""Tags inside a line; all others end it."""
_SILENT: Final = frozenset({"script", "style", "template", "noscript"})
_TAG: Final = re.compile(r"<[^<>]*>")


class Part(NamedTuple):
    """A part of a document, and where it is."""

    label: str
    """What the document is divided into: `page` or `part`."""
    number: int
    start: int
    """The place of its first character in the page or the part."""
    text: str


def parts_of(name: str, content: bytes) -> Iterator[Part]:
    """The parts of a document, in order.

    Args:
        name: Its suffix says what it is.
        content: The bytes of the file.

    Raises:
        InvalidInputError: It cannot be read; a PDF needs memory-core[documents].
    """
    for label, number, text in _sections(name, content):
        for start, part in _parts(text):
            yield Part(label, number, start, part)


def _sections(name: str, content: bytes) -> Iterator[tuple[str, int, str]]:
    """The pages of a PDF, or a whole text."""
    suffix = PurePath(name).suffix.lower()
    if suffix == ".pdf":
        yield from (("page", number, text) for number, text in enumerate(_pages(name, content), 1))
        return
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{name} is not text in UTF-8 ({error})") from error
    if "\0" in text:
        raise InvalidInputError(f"{name} is not text: it contains NUL characters")
    yield "part", 1, _text_of(text) if suffix in {".html", ".htm"} else text


def _pages(name: str, content: bytes) -> Iterator[str]:
    try:
        from pypdf import PdfReader  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise InvalidInputError("reading a PDF needs pypdf: pip install 'memory-core[documents]'") from error
    try:
        for page in PdfReader(BytesIO(content)).pages:
            yield page.extract_text()
    except Exception as error:  # pypdf raises whatever a damaged or encrypted file leads it to
        raise InvalidInputError(f"{name} is not a PDF that can be read: {error}") from error


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


def _text_of(html: str) -> str:
    reader = _Html()
    reader.feed(html)
    reader.end()
    lines = (" ".join(line.split()) for line in "".join(reader.found).split("\n"))
    return "\n".join(line for line in lines if line)


class _Html(HTMLParser):
    """The visible text of a page, one line for each block."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002  (the parser's)
        self._silent += tag in _SILENT
        self.found += ["\n"] if tag not in _INLINE else []

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(0, self._silent - (tag in _SILENT))
        self.found += ["\n"] if tag not in _INLINE else []

    def handle_data(self, data: str) -> None:
        self.found += [] if self._silent else [data.replace("\n", " ")]

    def end(self) -> None:
        """Read what follows a tag or a comment that has no end. `close` would look for its end again from each `<`,
        which takes hours for a megabyte."""
        rest, self.rawdata = self.rawdata, ""
        self.handle_data(unescape(_TAG.sub(" ", rest)))

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Skip `<![...>`, as browsers do; the parser of the standard library fails at an unknown one."""
        return self.parse_bogus_comment(i, bool(report))
