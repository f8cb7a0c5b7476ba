"""The site of the documentation: built strictly, complete, searchable, and from one host alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.chromium import CHROMIUM, page
from tests.repository.architecture import ADAPTERS, ROOT

pytestmark = pytest.mark.process

PACKAGES = ("memory_core", "memory_core.lifecycle", *ADAPTERS)
ELSEWHERE = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="(?:https?:)?//[^"]*"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site. mkdocs fails at a broken link or anchor, and at a page that no menu has."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", ".ci/site/mkdocs.yml"]
    done = subprocess.run(
        [*command, "--site-dir", str(folder)],  # not `--quiet`: strict counts the warnings that are printed
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_on_the_site(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    pages = {each for each in pages if each.parts[0] != "changes"}  # lines of the next changelog
    built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    assert {str(each).replace("README", "index") for each in pages} <= {str(each) for each in built}


def test_every_fence_of_a_page_is_a_block_of_the_site(site: Path) -> None:
    for each in site.rglob("*.html"):
        assert "```" not in each.read_text(encoding="utf-8"), each


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    for each in site.rglob("*.html"):
        assert ELSEWHERE.findall(each.read_text(encoding="utf-8")) == [], each


def _is_own(value: object) -> bool:
    """True unless it is Xaibo's, which its own documentation describes."""
    return not getattr(value, "__module__", "").startswith("xaibo.")


def test_every_public_name_has_its_place_in_the_reference(site: Path) -> None:
    places = {
        place
        for each in (site / "api").glob("*.html")
        for place in re.findall(r'id="([\w.]+)"', each.read_text("utf-8"))
    }
    for package in PACKAGES:
        home = import_module(package)
        names = {f"{package}.{name}" for name in home.__all__ if _is_own(getattr(home, name))}
        assert names <= places, package


def test_linked_sources_are_copied(site: Path) -> None:
    assert (site / "source" / "examples" / "spade_team.py").read_bytes() == (
        ROOT / "examples/spade_team.py"
    ).read_bytes()
    assert 'href="source/examples/spade_team.py"' in (site / "spade.html").read_text(encoding="utf-8")
    assert (site / "source/examples/deploy/compose.yaml").is_file()


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(site)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            port = re.search(r"port (\d+)", server.stdout.readline())
            assert port is not None
            yield f"http://127.0.0.1:{port[1]}"
        finally:
            server.terminate()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_a_reader_searches_the_site(address: str, tmp_path: Path) -> None:
    with page(tmp_path) as tab:
        tab.look(width=1300, dark=False)
        tab.open(f"{address}/index.html")
        tab.fill("[data-md-component=search-query]", "PyStemmer")
        tab.until("document.querySelector('.md-search-result__link') !== null")
        tab.follow(".md-search-result__link")
        assert tab.shows("PyStemmer makes the stems")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_the_button_of_a_block_copies_what_is_typed(address: str, tmp_path: Path) -> None:
    block = "document.querySelector('.gp').closest('code')"
    with page(tmp_path) as tab:
        tab.look(width=1300, dark=False)
        tab.open(f"{address}/start.html")
        tab.until(f"{block}.innerText.trim().startsWith('$ pip install')")
        # What the theme does before it reads the text that goes into the clipboard.
        tab.until(f"({block}.setAttribute('data-md-copying', ''), {block}.innerText.trim().startsWith('pip install'))")
