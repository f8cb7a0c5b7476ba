"""Facts about the repository that no linter checks."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import memory_core
from tests.repository import architecture
from tests.repository.architecture import ROOT

CORE_MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "memory_core").rglob("*.py")
}
SOURCES = sorted(path for folder in ("memory_core", "adapters", "examples") for path in (ROOT / folder).rglob("*.py"))
ADAPTERS = [ROOT / "adapters" / name for name in architecture.ADAPTERS]
TOP_LEVEL = {
    *("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile"),
    *("memory_core", "adapters", "tests", "examples", "docs"),
}


def tracked_files() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone, so nothing says which files belong to the project")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in names.split("\0") if name and (path := ROOT / name).is_file()]


def imported_modules(path: Path) -> Iterator[str]:
    """Modules, whatever the form of import: `from package import module` imports `package.module`, too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (module for alias in node.names if (module := f"{node.module}.{alias.name}") in CORE_MODULES)


def test_top_level_holds_only_what_the_layout_names() -> None:
    names = {path.relative_to(ROOT).parts[0] for path in tracked_files()}
    assert {name for name in names if not name.startswith(".")} <= TOP_LEVEL


def test_adapters_folder_is_not_a_package() -> None:
    """`adapters` is another project's package on PyPI; ours is only a folder."""
    assert not (ROOT / "adapters" / "__init__.py").exists()


def test_importing_the_core_loads_nothing_that_takes_time() -> None:
    """Not even a module of its own: whoever needs one name pays for one module."""
    code = "import sys, memory_core; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name.partition(".")[0] == "memory_core"] == ["memory_core"]
    standard = {
        "asyncio",
        "ctypes",
        "dataclasses",
        "datetime",
        "inspect",
        "json",
        "logging",
        "sqlite3",
        "ssl",
        "threading",
    }
    frameworks = {"google", "langchain", "langchain_classic", "langchain_core", "langgraph", "mcp", "spade", "xaibo"}
    heavy = {"fastembed", "numkong", "numpy", "onnxruntime", "openai", "pydantic", "qdrant_client", "rich", "typer"}
    assert not (standard | frameworks | heavy | {"spade_llm"}) & {name.partition(".")[0] for name in loaded}


def test_a_name_is_loaded_from_where_type_checkers_see_it() -> None:
    """Names outside `__all__` need extras, which may be missing."""
    seen = {
        alias.name: node.module
        for node in ast.walk(ast.parse(Path(memory_core.__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("memory_core.")
        for alias in node.names
    }
    for name in memory_core.__all__:
        assert getattr(memory_core, name) is getattr(import_module(seen[name]), name)
    assert seen.keys() - {"Server"} <= set(dir(memory_core))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_stay_readable(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 50, node.name


@pytest.mark.parametrize("folder", ["chats", "drivers", "turns", "frameworks.py", "../repository/conversations.py"])
def test_each_list_of_frameworks_has_every_adapter(folder: str) -> None:
    place = ROOT / "tests" / "adapters" / folder
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(place.glob("*.py")) or [place])
    assert [path.name for path in ADAPTERS if path.name.removeprefix("memory_") not in text] == []


def test_the_core_knows_no_adapter() -> None:
    roots = {name.partition(".")[0] for path in (ROOT / "memory_core").rglob("*.py") for name in imported_modules(path)}
    assert not roots & {path.name for path in ADAPTERS}


@pytest.mark.parametrize("folder", ADAPTERS, ids=lambda path: path.name)
def test_adapters_use_only_the_public_core_and_not_each_other(folder: Path) -> None:
    """Globbed, so that a new adapter is covered the moment its folder exists."""
    others = {other.name for other in ADAPTERS} - {folder.name}
    for path in folder.rglob("*.py"):
        for name in imported_modules(path):
            assert name.partition(".")[0] not in others, f"{path.name} imports {name}"
            is_door = name in {"memory_core", "memory_core.adapting", "memory_core.formats"}
            assert is_door or not name.startswith("memory_core."), f"{path.name} imports {name}, which is not a door"


@pytest.mark.parametrize(
    "path", [*ADAPTERS, ROOT / "memory_core" / "tools/memory_tools.py"], ids=lambda path: path.name
)
def test_adapters_and_tools_never_see_all_owners(path: Path) -> None:
    for source in sorted(path.rglob("*.py")) or [path]:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names = {getattr(node, "attr", None), getattr(node, "id", None), getattr(node, "name", None)}
            assert not names & {"operator", "Operator"}, f"{source.name}:{getattr(node, 'lineno', 0)} is for operators"


def test_only_the_outer_part_of_the_spade_adapter_knows_spade() -> None:
    """The two documented memories, the places they live in, the flags that name those places and the one record of each
    message do without SPADE, and nothing but the files of spade_llm holds SQL."""
    adapter = ROOT / "adapters" / "memory_spade"
    for path in (adapter / "memory").rglob("*.py"):
        roots = {name.partition(".")[0] for name in imported_modules(path)}
        assert not roots & {"spade", "spade_llm", "slixmpp"}, path.name
    for path in set(adapter.rglob("*.py")) - set((adapter / "files").glob("*.py")):
        assert not {"sqlite3", "aiosqlite"} & set(imported_modules(path)), path.name
        assert not re.search(r"\b(SELECT|INSERT|UPDATE|DELETE|PRAGMA)\b", path.read_text(encoding="utf-8")), path.name


def test_no_file_names_a_path_of_one_machine_or_outside_the_repository() -> None:
    absolute = re.compile(r"(?<![\w./:])/(?:home|root|work|Users)/\w")
    upward = re.compile(r"(?<![\w./])(?:\.\./)+(?=\w)")
    for path in tracked_files():
        if path.suffix in {".gz", ".npy", ".onnx", ".png", ".zip"}:
            continue
        # what is kept for fuzzing is any bytes
        text, name = path.read_text(encoding="utf-8", errors="replace"), path.relative_to(ROOT)
        assert not absolute.search(text), f"{name} names {absolute.findall(text)}"
        climbed = max((found.count("../") for found in upward.findall(text)), default=0)
        assert climbed < len(name.parts), f"{name} names a file outside the repository"


REPOSITORY_FILE = re.compile(r"\b(?:docs|examples|tests|adapters)/[\w/-]+\.\w+")


def texts_of(path: Path) -> Iterator[str]:
    """The texts that a program may show: all but those that stand alone, as docstrings do."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


@pytest.mark.parametrize("folder", ["memory_core", "adapters"])
def test_no_message_names_a_file_that_only_a_clone_has(folder: str) -> None:
    """A message names a page by its title: who has installed the package has no folder `docs`."""
    shown = [text for path in (ROOT / folder).rglob("*.py") for text in texts_of(path)]
    assert [text for text in shown if REPOSITORY_FILE.search(text)] == []
    titles = {page.read_text(encoding="utf-8").partition("\n")[0] for page in (ROOT / "docs").rglob("*.md")}
    named = {title for text in shown for title in re.findall(r'the page "([^"]+)"', text)}
    assert {f"# {title}" for title in named} <= titles


def test_every_public_name_is_exported_once_and_explained() -> None:
    assert len(set(memory_core.__all__)) == len(memory_core.__all__)
    for name in memory_core.__all__:
        value = getattr(memory_core, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            doc = value.__doc__ or ""
            assert doc.strip(), name
            assert not doc.startswith(f"{name}("), f"{name} has only the docstring that dataclasses make"
        else:
            assert is_explained_constant(name), f"{name} has neither a docstring nor a comment"


def is_explained_constant(name: str) -> bool:
    """True if a string or a comment follows or precedes the assignment, or the value says what it is for by itself."""
    value = getattr(memory_core, name)
    if isinstance(getattr(value, "description", None), str):
        return True
    for path in (ROOT / "memory_core").rglob("*.py"):
        found = re.search(rf"(?m)^(.*\n)?{name}\b[^=\n]*= (?:.*\n)(.*\n)?", path.read_text(encoding="utf-8"))
        if found:
            before, after = found.group(1) or "", found.group(2) or ""
            return before.startswith("#") or after.startswith('"""') or "  # " in found.group()
    return False
