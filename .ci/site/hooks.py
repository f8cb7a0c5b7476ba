"""What the site needs besides the pages: files that they link to outside `docs/`, and scripts.

Pages link to examples and tests by their place in the repository, where such a link opens the file. A site has no place
above its root, so the file is copied to `source/` and the link leads there. A link to a folder becomes links to its
files.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>\.\./[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")
FENCE = re.compile(r"^( *```python) no-run [^\n]*$", re.MULTILINE)
SHIM = re.compile(r"https://unpkg\.com/iframe-worker/shim")
CONSOLE = "assets/console.css"
MERMAID, WORKER = "assets/mermaid.js", "assets/iframe-worker.js"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the menu: a folder stands for its pages."""
    config.nav = _filled(config.nav, Path(config.docs_dir))
    return config


def _filled(menu: Any, docs: Path) -> Any:  # as YAML has it
    if isinstance(menu, list):
        return [_filled(each, docs) for each in menu]
    if isinstance(menu, dict):
        return {title: _filled(each, docs) for title, each in menu.items()}
    if not menu.endswith("/"):
        return menu
    pages = sorted(path.name for path in (docs / menu).glob("*.md"))
    return [f"{menu}{name}" for name in sorted(pages, key=lambda name: name != "README.md")]


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the style of consoles, and scripts that pages would load from other hosts; `build` names their folder."""
    files.append(File.generated(config, CONSOLE, abs_src_path=str(Path(__file__).with_name("console.css"))))
    config.extra_css.append(CONSOLE)
    folder = os.environ.get("SITE_SCRIPTS")
    if folder:
        for name in (MERMAID, WORKER):
            files.append(File.generated(config, name, abs_src_path=str(Path(folder, Path(name).name))))
        config.extra_javascript.append(MERMAID)
    return files


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001  (mkdocs names them)
    """Load from the site what the theme loads from another host: what lets pages search that are opened as files."""
    return SHIM.sub(os.path.relpath(WORKER, PurePosixPath(page.file.dest_uri).parent), output)


def on_post_template(output: str, *, template_name: str, config: MkDocsConfig) -> str:  # noqa: ARG001
    """The same for the page of what is not found."""
    return SHIM.sub(f"/{WORKER}", output)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page that lead out of the documentation, and drop what only the tests read of a fence."""
    here = PurePosixPath(page.file.src_uri).parent
    repository = Path(config.docs_dir).parent

    def rewritten(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(Path(config.docs_dir, here, link["target"])))
        if target.is_relative_to(config.docs_dir) or not target.exists():
            return link[0]  # a page of the documentation, or a mistake that mkdocs names
        if target.is_dir():
            inside = sorted(path for path in target.iterdir() if path.is_file())
            return f"{link['text']} ({', '.join(f'[{path.name}]({copied(path)})' for path in inside)})"
        return f"[{link['text']}]({copied(target)})"

    def copied(target: Path) -> str:
        place = target.relative_to(repository).as_posix()
        copy = f"source/{place}" + ".txt" * place.endswith(".md")  # mkdocs takes a Markdown file for a page
        if files.get_file_from_path(copy) is None:
            files.append(File.generated(config, copy, abs_src_path=str(target)))
        return os.path.relpath(copy, here)

    return LINK.sub(rewritten, FENCE.sub(r"\1", markdown))
