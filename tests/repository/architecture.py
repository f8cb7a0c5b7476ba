"""Draws what imports what into `docs/architecture.md`: `python -m tests.repository.architecture`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ADAPTERS: Final = sorted(path.name for path in (ROOT / "adapters").glob("memory_*/"))
PACKAGES: Final = [ROOT / "memory_core", *(ROOT / "adapters" / name for name in ADAPTERS)]
PAGE: Final = ROOT / "docs" / "architecture.md"
BLOCK: Final = re.compile(r"(?s)```mermaid\n.*?```")

ROOMS: Final = {
    "memory and handle": (
        "memory",
        "handle",
        "operation",
        "operator",
        "spaces",
        "history",
        "settings",
    ),
    "values": ("models",),
}
"""Modules at the top of the core that are drawn together; folders are drawn as they are, other modules not at
all: `errors`, for example, is imported by each."""
NOT_DRAWN: Final = frozenset({"testing"})
STORAGE: Final = frozenset(path.parent.name for path in (ROOT / "memory_core" / "storage").glob("*/__init__.py"))


def modules() -> dict[str, Path]:
    """Every module of every package by its dotted name."""
    found: dict[str, Path] = {}
    for package in PACKAGES:
        for path in package.rglob("*.py"):
            name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def imports(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Modules of ours that a file imports anywhere: at its top, in a function, or for type checkers alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield from [name for name in (submodule, node.module) if name in known][:1]


def drawing() -> str:
    """The picture: an arrow from a room to each room it imports, without those that other arrows imply."""
    known = modules()
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        here = _room(name)
        if here is not None:
            there = {room for each in imports(path, known) if (room := _room(each)) not in {None, here}}
            graph.setdefault(here, set()).update(room for room in there if room is not None)
    lines = [f"    {_id(one)} --> {_id(other)}" for one in sorted(graph) for other in sorted(_needed(graph, one))]
    names = [f'    {_id(room)}["{room}"]' for room in sorted(graph)]
    return "\n".join(["```mermaid", "flowchart TD", *names, *lines, "```"])


def _room(module: str) -> str | None:
    package, *inside = module.split(".")
    if package != "memory_core":
        return "adapters"
    if not inside or inside[0] in {"adapting", "formats", "storing"}:
        return "doors"
    if inside[0] in NOT_DRAWN:
        return None
    if inside[0] == "storage":
        return f"storage/{inside[1]}" if len(inside) > 1 and inside[1] in STORAGE else None
    if (ROOT / "memory_core" / inside[0]).is_dir():
        return inside[0]
    return next((room for room, names in ROOMS.items() if inside[0] in names), None)


def _needed(graph: Mapping[str, set[str]], one: str) -> set[str]:
    """The rooms that a room imports and does not reach through another one anyway."""
    direct = graph[one]
    return {other for other in direct if not any(other in _reached(graph, via, {one}) for via in direct - {other})}


def _reached(graph: Mapping[str, set[str]], start: str, seen: set[str]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for room in graph.get(waiting.pop(), set()) - found - seen:
            found.add(room)
            waiting.append(room)
    return found


def _id(room: str) -> str:
    return re.sub(r"\W", "_", room)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda _: drawing(), text, count=1), encoding="utf-8")
