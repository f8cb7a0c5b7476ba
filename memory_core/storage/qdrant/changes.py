"""The changes of one write, as a value that can be written to a journal and applied by any process that finds it."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Any

from memory_core.models import Scope
from memory_core.storage.qdrant.codec import Payload, Point


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A point that is replaced, if it is still in the state that was read."""

    point: Point
    was: str
    """`Stored.write` of that state."""


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Payload fields to set, if the point is still in the state that was read; its vectors stay.

    If the payload contains `_terms`, the sparse vector is updated too.
    """

    point: str
    payload: Payload
    was: str


@dataclass(frozen=True, slots=True)
class Deletion:
    """A point to delete; a point created again with the same id since then stays."""

    point: str
    born: str


@dataclass(frozen=True, slots=True)
class Unlinked:
    """A record that loses links to deleted records."""

    point: str
    links: list[str]
    """The remaining links, as in the payload."""


@dataclass(frozen=True, slots=True)
class Relinked:
    """A turn with a new predecessor."""

    point: str
    before: str | None


@dataclass(slots=True)
class Changes:
    """Everything one write does to one owner, in any number of points."""

    scope: Scope
    inserts: list[Point] = field(default_factory=list[Point])
    rewrites: list[Rewrite] = field(default_factory=list[Rewrite])
    overwrites: list[Overwrite] = field(default_factory=list[Overwrite])
    deletions: list[Deletion] = field(default_factory=list[Deletion])
    unlinked: list[Unlinked] = field(default_factory=list[Unlinked])
    tombstones: list[str] = field(default_factory=list[str])
    """Ids of points in the ledger."""
    relinked: list[Relinked] = field(default_factory=list[Relinked])

    def __len__(self) -> int:
        """How many points are concerned; a tombstone without its deletion is harmless and does not count."""
        written = len(self.inserts) + len(self.rewrites) + len(self.overwrites)
        return written + len(self.deletions) + len(self.unlinked) + len(self.relinked)

    def to_json(self) -> str:
        """As text, complete."""
        return json.dumps(
            {
                "app": self.scope.app,
                "user": self.scope.user,
                "inserts": [_from_point(point) for point in self.inserts],
                "rewrites": [[_from_point(item.point), item.was] for item in self.rewrites],
                "overwrites": [[item.point, item.payload, item.was] for item in self.overwrites],
                "deletions": [[item.point, item.born] for item in self.deletions],
                "unlinked": [[item.point, item.links] for item in self.unlinked],
                "tombstones": self.tombstones,
                "relinked": [[item.point, item.before] for item in self.relinked],
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> Changes:
        """The inverse of `to_json`."""
        raw = json.loads(text)
        return cls(
            scope=Scope(raw["app"], raw["user"]),
            inserts=[_to_point(item) for item in raw["inserts"]],
            rewrites=[Rewrite(_to_point(item), was) for item, was in raw["rewrites"]],
            overwrites=[Overwrite(*item) for item in raw["overwrites"]],
            deletions=[Deletion(*item) for item in raw["deletions"]],
            unlinked=[Unlinked(*item) for item in raw.get("unlinked", ())],
            tombstones=raw["tombstones"],
            relinked=[Relinked(*item) for item in raw["relinked"]],
        )


def _from_point(point: Point) -> list[Any]:
    return [point.id, point.payload, [b64encode(vector).decode() for vector in point.vectors]]


def _to_point(raw: list[Any]) -> Point:
    return Point(raw[0], raw[1], [b64decode(vector) for vector in raw[2]])
