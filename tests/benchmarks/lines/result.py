"""The result that a run of a line leaves, as a JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from lines.figure import Figure


class SkippedError(Exception):
    """A line cannot be measured here, and why."""


class Measured(NamedTuple):
    """The figures that a line found."""

    figures: Sequence[Figure]
    notes: Sequence[str] = ()
    """The notes on what was left out, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The figures of one line, or the reason why there are none."""

    line: str
    figures: Sequence[Figure] = ()
    skipped: str | None = None
    notes: Sequence[str] = ()
    """The notes on what was left out, and why."""
    date: str
    commit: str
    python: str
    cpus: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)


def from_json(kept: Mapping[str, Any]) -> Result:
    """As it was before `Result.as_json`."""
    return Result(
        **{**kept, "figures": tuple(Figure(**each) for each in kept["figures"]), "notes": tuple(kept["notes"])}
    )


def dumped(results: Mapping[str, Result]) -> str:
    """The kept file: a figure on a line."""
    blocks: list[str] = []
    for name, each in results.items():
        kept = each.as_json()
        figures = ",\n  ".join(json.dumps(figure) for figure in kept.pop("figures"))
        blocks.append(f'{json.dumps(name)}: {json.dumps(kept)[:-1]}, "figures": [\n  {figures}\n]}}')
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def loaded(text: str) -> dict[str, Result]:
    """The results that `dumped` wrote."""
    return {name: from_json(each) for name, each in json.loads(text).items()}
