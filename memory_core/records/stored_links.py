"""The stored form of links, which both stores compare and index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from memory_core.models import Link


def link_keys(links: Sequence[Link]) -> list[str]:
    """Links as strings, indexed like tags."""
    return [f"{link.relation}:{link.id}" for link in links]


def stored_links(links: Sequence[Link]) -> list[Any]:
    """Links as a store keeps them: the key of each, and after it, in a list, what else it says of the other record."""
    stored: list[Any] = []
    for link, key in zip(links, link_keys(links), strict=True):
        stored.append(key)
        said = [link.rev, link.session, link.collection, link.agent]
        if said != [None] * len(said):
            stored.append(said)
    return stored


def to_links(stored: Iterable[Any]) -> tuple[Link, ...]:
    """The inverse of `stored_links`."""
    parts: list[list[Any]] = []
    for part in stored:
        if isinstance(part, str):
            parts.append(part.split(":", 1))
        else:
            parts[-1] += part
    return tuple(Link(*part) for part in parts)
