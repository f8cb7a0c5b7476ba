"""The files of a message, named in its text, so that search finds the message by them; what is in them is not stored.

`"Please remember this contract"` with a PDF becomes

```text
Please remember this contract
Attached: contract.pdf
```

The names are those that a person or a program has given, so they get the limits of a name, and become one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

MAX_FILE_NAME_CHARS: Final = 200
"""Characters of the name of a file; of a longer one, the beginning and the end, where its type is."""
MAX_NAMED: Final = 20
"""Files of one message that are named; of the others, only the number is given."""
_END_CHARS: Final = 40
_LABEL: Final = "Attached: "
"""Of nine labels that were compared, questions about files rank their messages best under this one, and it is pushed
into the fewest prompts about something else: "sent", "file" and "uploaded" are words of many other questions."""
_JOINERS: Final = "\u200c\u200d"
"""Characters that are not printable but that some scripts and emoji need."""
_VERSION: Final = re.compile(r"(?:/versions)?/\d+/?$|/$")
"""The end of the address of a version of a file in stores of artifacts."""
_WITH_SUFFIX: Final = re.compile(r".*[^.\s]\.\w{1,10}", re.DOTALL)
_KINDS: Final = {"image": "image", "audio": "audio recording", "video": "video", "text": "text file"}
"""The word for a file without a name, by the first half of its media type."""
_MEDIA: Final = ("image", "audio recording", "video")
"""The words that stand before the name of a file as well, because names such as IMG_2034.jpg do not say it."""
_SUFFIXES: Final = {
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp", "heic", "bmp", "svg", "tif", "tiff"), "image"),
    **dict.fromkeys(("mp3", "wav", "m4a", "ogg", "opus", "flac", "aac"), "audio recording"),
    **dict.fromkeys(("mp4", "mov", "webm", "mkv", "avi"), "video"),
}


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a message."""

    name: str | None = None
    """As it was given."""
    media_type: str | None = None
    """Such as `application/pdf`, or only `image`."""


def with_files(text: str, files: Iterable[SentFile], most: int) -> str:
    """A text with the names of the files sent with it, each once, in a last line of its own.

    Args:
        text: The words that were said.
        files: In order.
        most: Characters of the whole; the text is cut to leave room for the names.
    """
    named: dict[str, str] = {}
    for file in files:
        name, kind = clean_name(file.name), _kind(file)
        if kind in _MEDIA or name not in named:
            named[name or kind] = f"{kind} {name}" if name and kind in _MEDIA else name or kind
    if not named:
        return text[:most]
    labels = [*named.values()][:MAX_NAMED]
    more = f" and {len(named) - MAX_NAMED} more" if len(named) > MAX_NAMED else ""
    line = _LABEL + ", ".join(labels) + more
    return "\n".join(filter(None, (text[: max(most - len(line) - 1, 0)], line)))


def without_files(text: str) -> str:
    """A text without the line that names its files: what was said, by which a message is recognised."""
    said, _, last = text.rpartition("\n")
    return said if last.startswith(_LABEL) else text


def clean_name(name: str | None) -> str:
    """The name of a file without its folder, in one line of visible characters; empty if it has no name."""
    if not name or name[:5].casefold() == "data:":
        return ""
    name = name.replace("\\", "/").rpartition("/")[2]
    if len(name) > MAX_FILE_NAME_CHARS:
        name = name[: MAX_FILE_NAME_CHARS - _END_CHARS - 1] + "…" + name[-_END_CHARS:]
    return " ".join("".join(c if c.isprintable() or c in _JOINERS else " " for c in name).split())


def name_in_uri(uri: str | None) -> str | None:
    """The name of a file in its address, if it has one with a suffix. Nothing else of an address is a name: it may hold
    a key in its query, an id without a meaning, or the content itself."""
    try:
        parts = urlsplit(uri or "")
    except ValueError:
        return None
    name = unquote(_VERSION.sub("", parts.path)).rpartition("/")[2]
    return name if parts.scheme != "data" and _WITH_SUFFIX.fullmatch(name) else None


def _kind(file: SentFile) -> str:
    """The word for a file by its media type, or else by its suffix."""
    major, _, minor = (file.media_type or "").casefold().partition("/")
    by_suffix = _SUFFIXES.get((file.name or "").rpartition(".")[2].casefold(), "file")
    return "PDF" if minor.startswith("pdf") else _KINDS.get(major, by_suffix)
