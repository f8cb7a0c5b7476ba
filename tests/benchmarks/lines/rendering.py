"""Results as Markdown, in the places of the page that markers name: pure functions.

A figure with a goal has a row in the table at a glance, any other one in the table of its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from lines.every import LINES
from lines.figure import Figure
from lines.result import Result

_PLACE: Final = re.compile(r"(<!-- bench (?P<name>\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def rendered(page: str, results: Mapping[str, Result]) -> str:
    """The page with these results between its markers; those of lines without a result stay as they are.

    Raises:
        ValueError: The page has no place for a result.
    """
    parts = {
        "about": about(results),
        "glance": glance(results),
        **{name: section(each) for name, each in results.items()},
    }
    places = {found["name"] for found in _PLACE.finditer(page)}
    if absent := {name for name, text in parts.items() if text} - places:
        raise ValueError(f"the page has no marker for {', '.join(sorted(absent))}")

    def place(found: re.Match[str]) -> str:
        return f"{found[1]}{parts[found['name']]}\n{found[4]}" if found["name"] in parts else found[0]

    return _PLACE.sub(place, page)


def about(results: Mapping[str, Result]) -> str:
    """The time and the place at which the results were measured."""
    whole = [*results.values()]

    def every(of: Callable[[Result], object]) -> str:
        return ", ".join(sorted({str(of(each)) for each in whole}))

    return (
        f"Measured on {every(lambda each: each.date)}, commit {every(lambda each: each.commit)}, Python "
        f"{every(lambda each: each.python)}, {every(lambda each: each.cpus)} cores, in "
        f"{sum(each.seconds for each in whole) / 60:.0f} minutes."
    )


def glance(results: Mapping[str, Result]) -> str:
    """A row for each figure that has a goal, and for each line that was skipped."""
    rows = [["what", "goal", "measured", "beside it", "met"]]
    for name, line in LINES.items():
        result, missed = results.get(name), False
        if line.limit is None:
            continue
        if result is None or result.skipped is not None:
            reason = "not measured" if result is None else f"skipped: {result.skipped}"
            rows.append([line.what, "", reason, "", ""])
            continue
        for figure in result.figures:
            if figure.met is None:
                continue
            met = "yes" if figure.met else "no" if missed else f"no: {line.limit}"
            missed = missed or not figure.met
            rows.append([f"{line.what}: {figure.name}", goal(figure), measured(figure), beside(figure), met])
    return table(rows)


def section(result: Result) -> str:
    """The section of what is not in the table at a glance; empty if everything is."""
    if result.skipped is not None:
        return "" if LINES[result.line].limit is not None else f"Skipped: {result.skipped}."
    rest = [each for each in result.figures if each.met is None]
    shown = "" if not rest else stores(rest) if result.line == "peers" else figures(rest)
    return "\n\n".join(filter(None, [shown, _notes(result.notes)]))


def figures(measured: Sequence[Figure]) -> str:
    """A row for each figure."""
    rows = [["", "ours", "beside it", "ratio", "all rounds"]]
    rows += [
        [each.name, _with_unit(each.ours, each.unit), beside(each), _times(each), _spread(each)] for each in measured
    ]
    return table(rows)


def stores(measured: Sequence[Figure]) -> str:
    """A row for each store, a column for each measure with all sizes, ours first."""
    sizes: dict[str, dict[str, str]] = {}
    values: dict[tuple[str, str], float] = {}
    for each in measured:
        what, size = each.name.split(", ", 1)
        sizes.setdefault(f"{what}, {each.unit}", {})[size] = size
        values["memory-core", each.name] = each.ours
        if each.other is not None:
            values[each.beside, each.name] = each.other
    rows = [["store", *sizes]]
    for store in dict.fromkeys(store for store, _ in values):
        found = [
            [values.get((store, f"{column.rsplit(', ', 1)[0]}, {size}")) for size in of_column]
            for column, of_column in sizes.items()
        ]
        rows.append([store, *(" / ".join("-" if one is None else number(one) for one in some) for some in found)])
    return table(rows)


def goal(figure: Figure) -> str:
    """The goal that is to be reached."""
    unit = "x" if figure.judged == "ratio" else figure.unit
    if figure.most is not None:
        return f"≤ {figure.most:g} {unit}"
    return "" if figure.least is None else f"≥ {figure.least:g} {unit}"


def measured(figure: Figure) -> str:
    """The number that is judged, with its spread."""
    unit = "x" if figure.judged == "ratio" else figure.unit
    return f"{_with_unit(figure.value, unit)} ({_spread(figure)})"


def beside(figure: Figure) -> str:
    """The peer or the limit."""
    return "" if figure.other is None else f"{figure.beside}: {_with_unit(figure.other, figure.unit)}"


def number(value: float) -> str:
    """Three digits, or all of a large number."""
    size = abs(value)
    decimals = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 3
    return f"{value:,.{decimals}f}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the head."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def compared(before: Mapping[str, Result], now: Mapping[str, Result]) -> Iterator[str]:
    """A sentence for each figure that both have; what lies outside of the rounds of before has moved."""
    for name, result in now.items():
        known = {(old.name, old.beside): old for old in before[name].figures} if name in before else {}
        for figure in result.figures:
            old = known.get((figure.name, figure.beside))
            if old is None or not old.value:
                continue
            moved = figure.low > old.high or figure.high < old.low
            change = f"{figure.value / old.value:.2f} x"
            of = f" beside {figure.beside}" if name == "peers" else ""
            yield (
                f"{'moved ' if moved else '      '}{name}, {figure.name}{of}: "
                f"{number(old.value)} -> {number(figure.value)} ({change})"
            )


def _notes(notes: Sequence[str]) -> str:
    return f"Not measured: {'; '.join(notes)}." if notes else ""


def _with_unit(value: float, unit: str) -> str:
    return f"{number(value)} {unit}"


def _times(figure: Figure) -> str:
    return "" if figure.ratio is None else number(figure.ratio)


def _spread(figure: Figure) -> str:
    return f"{number(figure.low)} to {number(figure.high)}"
