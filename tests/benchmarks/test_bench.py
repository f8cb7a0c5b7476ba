"""The page of benchmarks is what its results say, and every line of it still runs."""

from __future__ import annotations

import importlib
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lines.every import LINES
from lines.figure import Figure, absolute, relative
from lines.installed import missing
from lines.plots import plots
from lines.rendering import compared, number, rendered
from lines.result import Result, SkippedError, dumped, loaded

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
PAGE = "# Page\n<!-- bench about -->\n<!-- end -->\n<!-- bench glance -->\nold\n<!-- end -->\n" + "".join(
    f"Text of {name}.\n<!-- bench {name} -->\n<!-- end -->\n" for name in LINES
)

values = st.floats(1e-3, 1e6).map(lambda value: float(f"{value:.4g}"))
rounds = st.lists(values, min_size=1, max_size=4)
names = st.text("abcdefgh 0123456789,", min_size=1, max_size=20).map(str.strip).filter(bool)


@st.composite
def figures(draw: st.DrawFn) -> Figure:
    ours, name, bound = draw(rounds), draw(names), draw(st.none() | values)
    other = draw(st.lists(values, min_size=len(ours), max_size=len(ours)))
    if draw(st.booleans()):
        return absolute(name, "ms", ours, beside="a peer", other=other, most=bound)
    return relative(name, "/s", ours, beside="a peer", other=other, least=bound)


def result(name: str, *some: Figure, skipped: str | None = None) -> Result:
    return Result(
        line=name, figures=some, skipped=skipped, date="2026-01-02", commit="abc", python="3.11.7", cpus=2, seconds=3.5
    )


results = st.fixed_dictionaries(
    {},
    optional={
        name: st.builds(result, st.just(name), figures()) | st.just(result(name, skipped="not installed: x"))
        for name in LINES
        if name != "peers"
    },
)


def rows(text: str, place: str) -> list[list[str]]:
    """The cells of a table on the page, without its head."""
    found = re.search(rf"<!-- bench {place} -->\n(.*?)<!-- end -->", text, re.DOTALL)
    assert found is not None
    return [line.strip("| ").split(" | ") for line in found[1].splitlines() if line.startswith("|")][2:]


@given(results)
def test_the_page_says_what_the_results_say(found: dict[str, Result]) -> None:
    page = rendered(PAGE, found)
    glance = {cells[0] for cells in rows(page, "glance")}
    for name, line in LINES.items():
        if line.limit is not None and name not in found:
            assert line.what in glance
    for name, each in found.items():
        if each.skipped is not None:
            assert each.skipped in page
            continue
        rest = [figure for figure in each.figures if figure.met is None]
        table = rows(page, name)
        assert [cells[0] for cells in table] == [figure.name for figure in rest]
        for cells, figure in zip(table, rest, strict=True):
            assert cells[1] == f"{number(figure.ours)} {figure.unit}"
        for figure in each.figures:
            if figure.met is not None and LINES[name].limit is not None:
                assert f"{LINES[name].what}: {figure.name}" in glance


@given(results)
def test_writing_again_changes_nothing_and_the_text_around_stays(found: dict[str, Result]) -> None:
    page = rendered(PAGE, found)
    assert rendered(page, found) == page
    for name in LINES:
        assert f"Text of {name}.\n<!-- bench {name} -->" in page


@given(results)
def test_kept_results_are_read_as_they_were(found: dict[str, Result]) -> None:
    assert loaded(dumped(found)) == found


@given(figures())
def test_a_goal_is_met_by_what_reaches_it(figure: Figure) -> None:
    bound = figure.most if figure.most is not None else figure.least
    if bound is None:
        assert figure.met is None
    else:
        assert figure.met is ((figure.value <= bound) if figure.most is not None else (figure.value >= bound))
    assert figure.low <= figure.value * 1.001
    assert figure.value <= figure.high * 1.001


def test_a_result_without_a_place_is_refused() -> None:
    found = {"search": result("search", absolute("p50", "ms", [1.0]))}
    with pytest.raises(ValueError, match="no marker for search"):
        rendered(PAGE.replace("bench search", "bench elsewhere"), found)


def test_what_lies_outside_of_the_rounds_of_before_has_moved() -> None:
    before = {"insert": result("insert", *(relative(n, "/s", [9, 10], beside="raw", other=[10, 10]) for n in "ab"))}
    now = {
        "insert": result(
            "insert",
            relative("a", "/s", [5, 6], beside="raw", other=[10, 10]),
            relative("b", "/s", [9, 9], beside="raw", other=[10, 10]),
            relative("new", "/s", [9, 9], beside="raw", other=[10, 10]),
        )
    }
    one, two = compared(before, now)
    assert one == "moved insert, a: 0.95 -> 0.55 (0.58 x)"
    assert two.startswith("      insert, b: ")


def test_stores_have_a_row_each_and_a_picture_for_each_measure() -> None:
    some = [
        absolute(f"{what}, {size:,}", unit, [ours], beside=store, other=[its])
        for store, its in (("Chroma", 20.0), ("mem0", 30.0))
        for size, ours in ((1_000, 1.0), (10_000, 2.0))
        for what, unit in (("search", "ms"), ("disk", "MB"))
        if (store, size, what) != ("mem0", 10_000, "disk")
    ]
    found = {"peers": result("peers", *some)}
    assert rows(rendered(PAGE, found), "peers") == [
        ["memory-core", "1.00 / 2.00", "1.00 / 2.00"],
        ["Chroma", "20.0 / 20.0", "20.0 / 20.0"],
        ["mem0", "30.0 / 30.0", "30.0 / -"],
    ]
    assert {name: ">mem0<" in picture for name, picture in plots(found).items()} == {
        "growth-search.svg": True,
        "growth-disk.svg": True,
    }


def test_the_page_has_a_place_for_every_line_and_shows_the_kept_results() -> None:
    page, kept = (DOCS / "measured.md").read_text("utf-8"), loaded((DOCS / "benchmarks.json").read_text("utf-8"))
    assert kept
    assert set(kept) <= set(LINES)
    assert rendered(page, kept) == page, "write it: python tests/benchmarks/bench.py LINE"
    for name, picture in plots(kept).items():
        assert (DOCS / "plots" / name).read_text("utf-8") == picture


IN_PROCESSES = {"start", "memory", "two_models", "peers"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of other people's packages
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.process] if name in IN_PROCESSES else []) for name in LINES]
)
def test_every_line_runs(name: str) -> None:
    if absent := missing(LINES[name].needs):
        pytest.skip(f"not installed: {', '.join(absent)}")
    try:
        found = importlib.import_module(f"lines.{name}").measure(short=True)
    except SkippedError as error:
        pytest.skip(str(error))
    assert found.figures
    for figure in found.figures:
        assert all(map(math.isfinite, (figure.ours, figure.low, figure.high))), figure
    assert loaded(dumped({name: result(name, *found.figures)}))


@pytest.mark.process
def test_a_line_prints_one_json_object() -> None:
    command = [sys.executable, str(HERE / "line.py"), "scan", "--short"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert loaded(f'{{"scan": {done.stdout}}}')["scan"].figures
    assert json.loads(done.stdout)["line"] == "scan"
