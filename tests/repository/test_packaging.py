"""The wheel holds all of the project and nothing else, and installs without it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
ADAPTERS = sorted(path.name for path in (ROOT / "adapters").glob("memory_*/"))
MODEL = Path("memory_core/embedding/minilm")


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
def test_the_licence_travels_with_the_wheel(wheel: Path) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in zipfile.ZipFile(wheel).namelist())


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
