"""The wheel holds all of the project and nothing else, and installs without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

from tests.repository.architecture import ADAPTERS, ROOT

MODEL = Path("memory_core/embedding/minilm")
PUBLIC = "urls" in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds our wheel and no other package."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    return python


def source_files() -> set[str]:
    """The files of the packages, by the path they have once installed."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone, so nothing says which files belong to the project")
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "memory_core", "adapters")
    names = [name for name in run(*command).split("\0") if name and (ROOT / name).is_file()]
    packaged = [name for name in names if not re.fullmatch(r"adapters/[^/]*", name)]
    return {name.removeprefix("adapters/") for name in packaged}


@pytest.mark.process
def test_the_wheel_holds_every_source_file_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    metadata = {name for name in names if re.match(r"memory_core-[^/]*\.dist-info/", name)}
    assert names - metadata == source_files()


@pytest.mark.process
@pytest.mark.parametrize("package", ["memory_core", *ADAPTERS])
def test_every_package_says_that_it_is_typed(wheel: Path, package: str) -> None:
    assert {f"{package}/__init__.py", f"{package}/py.typed"} <= set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.process
@pytest.mark.parametrize("name", ["model.onnx", "vocab.txt", "NOTICE"])
def test_the_wheel_carries_the_default_model(wheel: Path, name: str) -> None:
    assert zipfile.ZipFile(wheel).getinfo(str(MODEL / name)).file_size > 0


@pytest.mark.process
def test_the_licence_and_the_notices_travel_with_the_wheel(wheel: Path) -> None:
    notices = {str(path.relative_to(ROOT)) for path in (ROOT / "memory_core").rglob("NOTICE")}
    assert len(notices) >= 3
    names = [name.partition(".dist-info/licenses/")[2] for name in zipfile.ZipFile(wheel).namelist()]
    assert set(names) - {""} == {"LICENSE", *notices}


@pytest.mark.process
@pytest.mark.parametrize("package", ["memory_core", *ADAPTERS])
def test_every_package_is_found_in_an_environment_of_its_own(installed: Path, tmp_path: Path, package: str) -> None:
    code = f"import importlib.util as util; print(util.find_spec({package!r}).origin)"
    origin = Path(run(installed, "-I", "-c", code, cwd=tmp_path).strip())
    assert origin.is_relative_to(installed.parents[1])
    assert origin.parent.name == package


def test_the_extra_all_is_every_extra_but_the_one_with_torch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]

    def reached(extra: str) -> set[str]:
        own = [found for need in extras[extra] if (found := re.match(r"memory-core\[(.*)\]", need))]
        return {extra}.union(*(reached(name) for found in own for name in found[1].split(",")))

    assert reached("all") == set(extras) - {"dev", "sentence-transformers"}


def test_every_extra_has_its_size_on_the_page() -> None:
    """The release check measures them, and compares each with its row."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"]) - {"all", "dev", "sentence-transformers"}
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*`) \| [^|]* \| \d+ \| \d+ \|$", page, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([\w-]+)`", row)} == extras


@pytest.mark.process
def test_the_core_imports_without_any_dependency_installed(installed: Path, tmp_path: Path) -> None:
    run(installed, "-I", "-c", "import memory_core", cwd=tmp_path)


@pytest.mark.process
@pytest.mark.parametrize("package", ADAPTERS)
def test_an_adapter_without_its_framework_says_what_to_install(installed: Path, tmp_path: Path, package: str) -> None:
    use_everything = f"import {package} as package; [getattr(package, name) for name in package.__all__]"
    command = [str(installed), "-I", "-c", use_everything]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    last = (done.stderr.strip().splitlines() or ["it works"])[-1]
    assert re.fullmatch(r"ImportError: `\w+` needs .*: pip install 'memory-core\[[a-z-]+\]'.*", last), last


def test_the_readme_of_the_index_links_to_the_public_address(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", ".ci/readme.py", "memory_core/__init__.py", "LICENSE"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    project = tmp_path / "pyproject.toml"
    urls = '[project.urls]\nSource = "https://forge.example/memory-core/"\n\n'
    project.write_text(
        project.read_text().replace("[project.optional-dependencies]", f"{urls}[project.optional-dependencies]")
    )
    text = ProjectMetadata(str(tmp_path), PluginManager()).core.readme
    assert (
        "![a search on the page, with the parts of each score](https://forge.example/memory-core/raw/HEAD/docs/" in text
    )
    assert "[Five minutes](https://forge.example/memory-core/blob/HEAD/docs/start.md)" in text
    assert not re.findall(r"\]\((?!https?:|#)", text)


@pytest.mark.skipif(PUBLIC, reason="the project has a public address")
def test_the_release_check_refuses_a_project_without_a_public_address() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRIAL"}
    command = [str(ROOT / ".ci" / "release-check"), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert "the project has no public address" in done.stderr
    assert "make release-check TRIAL=yes" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["ci", "release"])
def test_the_hosted_workflows_run_what_there_is(name: str) -> None:
    """They run nowhere here, so at least what they call is there, and on the Pythons that the package names."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = "\n".join(str(step.get("run", "")) for step in steps)
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", commands)) <= targets
    for path in re.findall(r"(?:^|\s)(\.ci/[\w.-]+)", commands, re.MULTILINE):
        assert (ROOT / path).is_file()
    assert all("@" in step["uses"] for step in steps if "uses" in step)
    matrix = workflow["jobs"].get("pythons", {}).get("strategy", {}).get("matrix", {}).get("python", [])
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    named = [each.rpartition(" ")[2] for each in classifiers if re.search(r":: 3\.\d+$", each)]
    assert matrix in ([], named)
