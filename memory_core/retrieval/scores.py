"""The scores of rows while a search adds them up, and their explanation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from memory_core.models import Component
from memory_core.retrieval.arrays import Floats, Rows


class Scores:
    """The sum of each row's components under construction, with the components if they are to be explained."""

    def __init__(self, size: int, *, explain: bool) -> None:
        self.total: Floats = np.zeros(size, np.float32)
        self._parts: dict[str, tuple[Floats, Floats]] | None = {} if explain else None

    def add(self, name: str, raw: Floats, weight: float) -> None:
        """Add `weight * raw` under `name`."""
        self.add_weighted(name, raw, np.float32(weight) * raw)

    def add_weighted(self, name: str, raw: Floats, weighted: Floats) -> None:
        """Add `weighted`; explanations show it beside the raw value it came from."""
        self.total += weighted
        if self._parts is not None:
            self._parts[name] = raw, weighted

    def explained(self, rows: Rows) -> list[Mapping[str, Component]] | None:
        """The nonzero components of each row."""
        if self._parts is None:
            return None
        return [
            {
                name: Component(float(raw[row]), float(weighted[row]))
                for name, (raw, weighted) in self._parts.items()
                if weighted[row]
            }
            for row in rows
        ]
