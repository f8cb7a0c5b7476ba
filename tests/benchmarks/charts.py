"""Line charts with two logarithmic axes, as SVG that needs nothing to be looked at but a browser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

Series = tuple[str, Sequence[tuple[float, float]]]
"""A name and its points, by x; all numbers positive."""

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 60, 190, 36, 44
COLOURS = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")
APART = 15
"""Pixels between two names."""


def chart(title: str, x_title: str, series: Sequence[Series]) -> str:
    """The first series is drawn with a thicker line."""
    points = [point for _, some in series for point in some]
    (x_from, x_to), (y_from, y_to) = (_decades([point[axis] for point in points]) for axis in (0, 1))

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - x_from) / (x_to - x_from)
        up = (math.log10(y) - y_from) / (y_to - y_from)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    )
    parts = [
        head,
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_title)}</text>',
    ]
    for power in range(x_from, x_to + 1):
        x, bottom = place(10.0**power, 10.0**y_from)
        parts.append(f'<path d="M{x:.0f} {bottom:.0f}V{TOP}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.0f}" y="{bottom + 18:.0f}" text-anchor="middle">{10**power:,}</text>')
    for power in range(y_from, y_to + 1):
        left, y = place(10.0**x_from, 10.0**power)
        parts.append(f'<path d="M{left:.0f} {y:.0f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6:.0f}" y="{y + 4:.0f}" text-anchor="end">{10.0**power:,g}</text>')
    named: list[float] = []
    for number, (name, some) in sorted(enumerate(series), key=lambda item: place(*item[1][1][-1])[1]):
        colour, width = COLOURS[number % len(COLOURS)], 3 if number == 0 else 1.5
        placed = [place(*point) for point in some]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        named.append(max(placed[-1][1], named[-1] + APART) if named else placed[-1][1])
        end = f"{WIDTH - RIGHT + 8}"
        parts.append(f'<text x="{end}" y="{named[-1] + 4:.0f}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around the values, at least one apart."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)
