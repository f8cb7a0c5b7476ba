"""The common form of the data exports of ChatGPT and Claude.ai: conversations in a .zip, a folder or a JSON file.

ChatGPT splits a large export into `conversations-000.json`, `conversations-001.json`, ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from memory_core.errors import InvalidInputError
from memory_core.transfer.foreign_files import beginning_in_zip, file_at, json_in_zip, json_of, names_in_zip
from memory_core.transfer.foreign_values import fields_of, items_of

_NAME: Final = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
_LOOKED_AT: Final = 1 << 20
"""Bytes of a file that say whose export it is."""


def conversations_in(source: str, whose: str) -> Iterator[tuple[str, Any]]:
    """The conversations of an export, in order, each with its place.

    Args:
        source: The .zip, the folder or a file.
        whose: The program, for errors.

    Raises:
        InvalidInputError: No file has conversations, or a file is not a list of them.
    """
    number = 0
    for name, found in _files(Path(source).expanduser(), source):
        conversations = items_of(found)
        if found != conversations:
            raise InvalidInputError(f"{source!r} is not {whose} export: {name} is not a list of conversations")
        for conversation in conversations:
            number += 1
            yield f"conversation {number}", conversation


def _files(path: Path, source: str) -> Iterator[tuple[str, Any]]:
    if path.is_dir():
        paths = _in_folder(path)
        if not paths:
            raise InvalidInputError(f"there is no conversations.json in {source!r}")
        yield from ((each.name, json_of(each)) for each in paths)
    elif path.suffix.lower() == ".zip":
        names = [name for name in names_in_zip(file_at(source)) if _NAME.fullmatch(name)] or ["conversations.json"]
        yield from ((name, json_in_zip(path, name)) for name in names)
    else:
        yield path.name, json_of(file_at(source))


def _in_folder(path: Path) -> list[Path]:
    return sorted(each for each in path.glob("conversations*.json") if _NAME.fullmatch(each.name))


def is_export(path: Path, field: str) -> bool:
    """True if a path may be an export whose conversations have this field.

    Raises:
        InvalidInputError: It is an archive that cannot be read, so that nobody can tell.
    """
    return f'"{field}"'.encode() in _beginning(path)


def _beginning(path: Path) -> bytes:
    """The beginning of the first file of an export; empty if it is something else."""
    try:
        if path.is_dir():
            return b"".join(map(_read, _in_folder(path)[:1]))
        if path.suffix.lower() == ".zip" and path.is_file():
            names = [name for name in names_in_zip(path) if _NAME.fullmatch(name)]
            return b"".join(beginning_in_zip(path, name, _LOOKED_AT) for name in names[:1])
        return _read(path) if path.suffix.lower() == ".json" else b""
    except OSError:
        return b""


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LOOKED_AT)


def spoken_parts(content: object, key: str) -> str:
    """The texts of a message: strings, and the texts of objects such as a transcription of what was said aloud.

    Args:
        content: The content of a message.
        key: The field of it that has the parts.
    """
    if isinstance(content, str):
        return content.strip()
    parts = items_of(content) or items_of(fields_of(content).get(key))
    texts = (part if isinstance(part, str) else fields_of(part).get("text") for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str)).strip()
