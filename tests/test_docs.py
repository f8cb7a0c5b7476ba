"""Every Python block of the README and of docs/ runs, in order, one namespace a page; and every block of a docstring.

A block is only compiled where its fence says so, with a reason: `python no-run needs a Qdrant server`. The files
and programs of the tutorials are run by `test_tutorials.py`.
"""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import CodeType, ModuleType

import pytest

import memory_core
from memory_core.embedding.multilingual.weights import cache
from memory_core.values.frame import FRAME_START, QUOTES, WISHES

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_BLOCKS = [page for page in PAGES if page.parent.name != "tutorials"]
FENCE = re.compile(
    r"^(?P<indent> *)```(?:python|pycon|py)\b(?P<info>[^\n]*)\n(?P<code>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL
)
ANCHOR = re.compile(r"\]\((?!\w+:)([^)#\s]*\.md)#([^)\s]+)\)")
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    info: str
    code: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def compile(self) -> CodeType:
        """Compile the block, its lines numbered as on the page, with `await` allowed outside of functions."""
        source = "\n" * self.line + self.code
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code: CodeType = compile(source, str(self.page), "exec", flags, dont_inherit=True)
        return code


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found["info"].strip(), textwrap.dedent(found["code"]))


def run(block: Block, page: ModuleType, runner: asyncio.Runner) -> None:
    if re.search(r"^>>> ", block.code, re.MULTILINE):
        test = doctest.DocTestParser().get_doctest(block.code, vars(page), block.place, str(block.page), block.line)
        outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False)
        assert outcome.failed == 0, f"{block.place}: the printed values differ, see above"
        vars(page).update(test.globs)
        return
    code = block.compile()
    if code.co_flags & inspect.CO_COROUTINE:
        runner.run(eval(code, vars(page)))
    else:  # not inside a loop, so that a block may call `asyncio.run` or a framework's synchronous door
        exec(code, vars(page))


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=page_id)
def test_every_block_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache().parent))  # what the default embedder unpacks at its first use
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    with asyncio.Runner() as runner:
        for block in blocks(page):
            if block.info.startswith("no-run"):
                assert len(block.info.split()) > 2, f"{block.place}: `no-run` needs a reason after it"
                block.compile()
            else:
                run(block, module, runner)


def with_examples() -> Iterator[tuple[str, str]]:
    """The docstrings of `memory_core`'s public names with a block: where it stands, and the block."""
    for name in sorted(memory_core.__all__):
        thing = getattr(memory_core, name)
        members = inspect.getmembers(thing, inspect.isroutine) if inspect.isclass(thing) else []
        for place, one in [(name, thing), *((f"{name}.{each}", member) for each, member in members)]:
            own = one if name != "SyncMemory" else None  # it repeats those of the handle
            for found in FENCE.finditer(inspect.cleandoc(getattr(own, "__doc__", None) or "")):
                yield place, found["code"]


@pytest.mark.parametrize(("place", "code"), list(with_examples()))
def test_every_block_of_a_docstring_runs(place: str, code: str) -> None:
    """The names that a block may use: those of `memory_core`, a `memory`, Ann's handle `ann`, and `datetime`."""
    names = {each: getattr(memory_core, each) for each in memory_core.__all__}
    module = ModuleType("__main__")
    vars(module).update(names, datetime=datetime, timedelta=timedelta, UTC=UTC)
    with asyncio.Runner() as runner, memory_core.Memory(":memory:", embedder=None) as memory:
        vars(module).update(memory=memory, ann=memory.bind(user="ann"))
        run(Block(ROOT / place, 0, "", code), module, runner)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_link_of_the_page_leads_somewhere(page: Path) -> None:
    broken = [
        target for target in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / target).exists()
    ]
    assert not broken


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_every_link_to_a_section_leads_to_its_heading(name: str) -> None:
    """Links between pages of `docs/` are checked where the site is built."""
    links = ANCHOR.findall((ROOT / name).read_text(encoding="utf-8"))
    broken = [(page, anchor) for page, anchor in links if anchor not in anchors(ROOT / page)]
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_blocks_for_prompts_that_a_page_shows_begin_as_they_do(page: Path) -> None:
    shown = re.findall(rf"^{FRAME_START}\n(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert {*shown} <= {QUOTES, WISHES}


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them of words and code."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading).lower().replace(" ", "-") for heading in headings}
