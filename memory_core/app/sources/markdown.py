"""Markdown: a file, or a folder of them, with a memory for each section under a heading.

Front matter (`---` at the top, then `name: value` lines) says when, by whom and of what kind; other names are metadata.
Only texts and lists are read from it, not all of YAML.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from memory_core.errors import InvalidInputError
from memory_core.models import Draft, Json
from memory_core.transfer.foreign_files import bytes_of
from memory_core.transfer.foreign_values import TIMES, time_of
from memory_core.transfer.formats import Found, Refused
from memory_core.values.places import without_key

SUFFIXES: Final = frozenset({".md", ".markdown"})
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_HEADING: Final = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*)$")
_FIELD: Final = re.compile(r"^([A-Za-z][\w -]*):[ \t]*(.*)$")
_ITEM: Final = re.compile(r"^[ \t]*-[ \t]+(.*)$")
_BLOCK: Final = re.compile(r"^[|>][-+]?\d?$")
_LIST: Final = re.compile(r"^\[.*\]$")
_TIMES: Final = ("date", *TIMES)
_KINDS: Final = ("kind", "type")
_AUTHORS: Final = ("author", "by")
_Fields = dict[str, str | list[str]]


class _Section(NamedTuple):
    headings: tuple[str, ...]
    """From the outermost to its own."""
    text: str
    """Its heading and what is below it."""


async def markdown(source: str) -> AsyncIterator[Found | Refused]:
    """A Markdown file or a folder of them (notes, Obsidian): a memory for each section, with front matter."""
    files, hidden = _files(source)
    if hidden:
        what = f"{hidden} Markdown files in hidden folders"
        yield Refused(what, "they are deleted notes or those of a program, and are left out", is_meant=True)
    for path, name in files:
        try:
            for found in _memories(path, name):
                yield found
        except (InvalidInputError, OSError, UnicodeDecodeError) as error:
            yield Refused(name, f"it cannot be read: {error}")


def _files(source: str) -> tuple[list[tuple[Path, str]], int]:
    """The files, each with its path in the folder, and how many hidden ones there are besides."""
    root = Path(source).expanduser()
    if root.is_file():
        return [(root, root.name)], 0
    if not root.is_dir():
        raise InvalidInputError(f"there is no {without_key(source)!r}")
    all_files = sorted(path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    found = [path for path in all_files if not _is_hidden(path, root)]
    if not found:
        raise InvalidInputError(f"{source!r} has no Markdown files")
    return [(path, path.relative_to(root).as_posix()) for path in found], len(all_files) - len(found)


def _is_hidden(path: Path, root: Path) -> bool:
    """True if a file is hidden, or in a hidden folder: deleted notes, settings of an editor, versions."""
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _memories(path: Path, name: str) -> Iterator[Found | Refused]:
    text = bytes_of(path).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        raise InvalidInputError("it contains NUL characters, so it is not text")
    fields, body = _front_matter(text)
    seen: Counter[tuple[str, ...]] = Counter()
    sections = list(_sections(body))
    for section in sections:
        seen[section.headings] += 1
        place = " > ".join([name, *section.headings])
        key = f"markdown:{place}:{seen[section.headings]}"
        within = _within(path.stem, section) if len(sections) > 1 else ""
        yield Found(place, _draft(path, name, fields, section._replace(text=within + section.text), key), given=fields)
    if not sections:
        yield Refused(name, "it has no text")


def _within(note: str, section: _Section) -> str:
    """The name of the note and the headings around a section, as its first line, so that the sections of different
    notes under the same heading are told apart; empty if the section itself begins with the name."""
    outer = [note, *section.headings[:-1]] if section.headings[:1] != (note,) else list(section.headings[:-1])
    return " > ".join(outer) + "\n\n" if outer else ""


def _draft(path: Path, name: str, fields: _Fields, section: _Section, key: str) -> Draft:
    def first(names: tuple[str, ...]) -> str | None:
        found = next((fields[each] for each in names if fields.get(each)), None)
        return found if isinstance(found, str) else None

    tags = fields.get("tags", [])
    used = {*_TIMES, *_KINDS, *_AUTHORS, "tags"}
    data: dict[str, Json] = {"file": name, "headings": list(section.headings)}
    return Draft(
        section.text,
        kind=first(_KINDS) or "note",
        author=first(_AUTHORS),
        tags=tags if isinstance(tags, list) else [tag.strip() for tag in tags.split(",") if tag.strip()],
        occurred_at=time_of(first(_TIMES)) or datetime.fromtimestamp(path.stat().st_mtime, UTC),
        data=data | {each: value for each, value in fields.items() if each not in used},
        source_key=key,
    )


def _front_matter(text: str) -> tuple[_Fields, str]:
    """The fields at the top, and the rest. Text between two rules is no front matter, unless all of it is fields."""
    first, _, rest = text.partition("\n")
    head, end, body = f"\n{rest}".partition("\n---")
    if first.strip() != "---" or not end or body.partition("\n")[0].strip("- \t"):
        return {}, text
    fields = _fields(head.strip("\n").split("\n"))
    return ({}, text) if fields is None else (fields, body.partition("\n")[2])


def _fields(lines: list[str]) -> _Fields | None:
    """The fields of front matter, with lists and texts of several lines; `None` if a line is something else."""
    fields: _Fields = {}
    name, block = "", False
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if block and line[0] in " \t":
            fields[name] = f"{fields[name]}\n{line.strip()}".strip()
        elif (item := _ITEM.match(line)) and name:
            before = fields[name]
            fields[name] = [*(before if isinstance(before, list) else []), _unquoted(item[1])]
        elif found := _FIELD.match(line):
            name, value = found[1].strip(), found[2].strip()
            block = bool(_BLOCK.match(value))
            fields[name] = "" if block else _listed(value) if _LIST.match(value) else _unquoted(value)
        elif line[0] not in " \t" or not name:
            return None
        elif isinstance(before := fields[name], str):  # a text that goes on, or something deeper
            fields[name] = f"{before} {line.strip()}".strip()
    return fields


def _listed(value: str) -> list[str]:
    return [_unquoted(one) for one in value[1:-1].split(",") if one.strip()]


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def _title(heading: str) -> str:
    """A heading without the marks that may close it; a pattern would try each of a line's spaces as their beginning."""
    return heading.rstrip("#").rstrip(" \t")


def _sections(body: str) -> Iterator[_Section]:
    """The text before the first heading, then each heading with what is below it, if anything is."""
    headings: list[tuple[int, str]] = []
    lines: list[str] = []
    fence = ""
    for line in [*body.split("\n"), None]:
        heading = None if line is None or fence else _HEADING.match(line)
        if line is None or heading is not None:
            text = "\n".join(lines).strip()
            if text and (not headings or "\n" in text or not _HEADING.match(text)):
                yield _Section(tuple(title for _, title in headings), text)
            lines = []
        if line is None:
            return
        if heading is not None:
            depth = len(heading[1])
            headings = [*(outer for outer in headings if outer[0] < depth), (depth, _title(heading[2]))]
        elif mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        lines.append(line)
