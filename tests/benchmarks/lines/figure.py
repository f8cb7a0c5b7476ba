"""The figure that a line of the table measures: one number beside another one, its spread and its goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

Judged = Literal["ours", "ratio"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Medians of rounds in which both sides took turns."""

    name: str
    unit: str
    ours: float
    beside: str = ""
    """The peer or the limit that was measured in the same rounds."""
    other: float | None = None
    ratio: float | None = None
    """Ours beside it: the median of the rounds."""
    judged: Judged = "ours"
    """The one of the two numbers that the goal and the spread are about."""
    low: float
    high: float
    """The smallest and the largest of all rounds."""
    most: float | None = None
    least: float | None = None

    @property
    def value(self) -> float:
        """The number that is judged."""
        return self.ours if self.judged == "ours" or self.ratio is None else self.ratio

    @property
    def met(self) -> bool | None:
        """True if the goal is reached; `None` without a goal."""
        if self.most is not None:
            return self.value <= self.most
        return None if self.least is None else self.value >= self.least


def absolute(
    name: str,
    unit: str,
    ours: Sequence[float],
    *,
    beside: str = "",
    other: Sequence[float] = (),
    most: float | None = None,
) -> Figure:
    """A figure whose own value is judged."""
    return Figure(
        name=name,
        unit=unit,
        ours=_short(median(ours)),
        beside=beside,
        other=_short(median(other)) if other else None,
        ratio=_short(median(ours) / median(other)) if other and median(other) > 0 else None,
        judged="ours",
        low=_short(min(ours)),
        high=_short(max(ours)),
        most=most,
    )


def relative(
    name: str,
    unit: str,
    ours: Sequence[float],
    *,
    beside: str,
    other: Sequence[float],
    most: float | None = None,
    least: float | None = None,
) -> Figure:
    """A figure that is judged by its ratio to another one."""
    ratios = [mine / its for mine, its in zip(ours, other, strict=True)]
    return Figure(
        name=name,
        unit=unit,
        ours=_short(median(ours)),
        beside=beside,
        other=_short(median(other)),
        ratio=_short(median(ratios)),
        judged="ratio",
        low=_short(min(ratios)),
        high=_short(max(ratios)),
        most=most,
        least=least,
    )


def _short(value: float) -> float:
    """Four significant digits: what is kept does not change for less."""
    return float(f"{value:.4g}")
