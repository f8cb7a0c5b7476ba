r"""A line of JSON Lines, and of every other text file, ends with `\n` or `\r\n` and with nothing else.

`str.splitlines` also ends lines at U+2028, U+0085, form feeds and separators, all of which may stand inside a text.
"""

from __future__ import annotations


def lines_in(text: str) -> list[str]:
    r"""The lines of a text, without their ends; what follows the last `\n` is a line if it is not empty."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]
