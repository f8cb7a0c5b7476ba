"""The tutorials as their readers run them: files saved under their names in a new folder, programs, commands."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from memory_core import Memory
from memory_core.embedding.multilingual.weights import cache
from tests.ports import free_port
from tests.test_docs import ROOT

pytestmark = pytest.mark.process

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"[Ss]ave\s+this\s+as\s+`([\w.]+)`")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
PORT = "8765"
HANG_SECONDS = 300
DUMP_SECONDS = 10


@dataclass(frozen=True)
class Step:
    """A block of a page, and the name of the file that the text before it says."""

    language: str
    code: str
    file: str | None


def steps(page: Path) -> Iterator[Step]:
    text, end = page.read_text(encoding="utf-8"), 0
    for found in FENCE.finditer(text):
        named = NAMED.findall(text[end : found.start()])
        yield Step(found["language"], found["code"], named[-1] if named else None)
        end = found.end()


class Reader:
    """Somebody with a folder, who does what the page says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.printed: list[str] = []
        """The lines of the latest program."""
        paths = [str(ROOT / "tests" / "patient"), str(ROOT), str(ROOT / "adapters"), os.environ.get("PYTHONPATH", "")]
        folders = {"HOME": str(folder), "XDG_CACHE_HOME": str(cache().parent)}
        self._environment = {**os.environ, **folders, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self._environment.pop("COLUMNS", None)

    def follow(self, page: Path) -> None:
        """Do all the steps of a page, and compare what it prints with what the page says."""
        for step in steps(page):
            if step.file is not None:
                (self.folder / step.file).write_text(step.code.replace(PORT, str(self.port)), encoding="utf-8")
            if step.language == "python":
                assert step.file is not None, f"{page.name}: no text says where this goes:\n{step.code}"
                self.run([sys.executable, step.file])
            elif step.language == "text":
                said = [DAY.sub("a day", line) for line in step.code.splitlines()]
                assert [DAY.sub("a day", line) for line in self.printed] == said
            elif step.language == "console":
                self._type(step.code)

    def again(self, page: Path) -> None:
        """Run the programs of a page once more, where they have left what they left."""
        for step in steps(page):
            if step.language == "python" and step.file is not None:
                self.run([sys.executable, step.file])
            elif step.language == "text":
                lines = {DAY.sub("a day", line) for line in self.printed}
                assert lines == {DAY.sub("a day", line) for line in step.code.splitlines()}

    def run(self, command: list[str]) -> None:
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as program:
            try:
                printed, said = program.communicate(timeout=HANG_SECONDS)
            except subprocess.TimeoutExpired:
                program.send_signal(signal.SIGUSR1)  # it prints its tasks, see `patient/sitecustomize.py`
                with suppress(subprocess.TimeoutExpired):
                    program.communicate(timeout=DUMP_SECONDS)
                program.kill()
                printed, said = program.communicate()
        assert program.returncode == 0, f"{command}\n{printed}{said}"
        assert "Warning" not in said, said
        self.printed = printed.splitlines()

    def _type(self, lines: str) -> None:
        for line in lines.splitlines():
            if line.startswith("$ memory-core "):
                self.run([sys.executable, "-m", "memory_core", *shlex.split(line)[2:]])
            elif not line.startswith("$ pip install "):
                assert any(line in printed for printed in self.printed), line

    @contextmanager
    def shell(self, script: str) -> Generator[None]:
        """Run what a page tells its reader to leave running: the last line of a script serves."""
        script = script.replace("python ", f"{shlex.quote(sys.executable)} ").replace("~/team", ".")
        script = script.replace("memory-core ", f"exec {shlex.quote(sys.executable)} -m memory_core ")
        with subprocess.Popen(
            ["sh", "-ec", f"{script.rstrip()} --port {self.port}"],
            cwd=self.folder,
            env=self._environment,
            stderr=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stderr is not None
            assert f"http://127.0.0.1:{self.port}/" in server.stderr.readline()
            try:
                yield
            except AssertionError as failed:
                server.send_signal(signal.SIGUSR1)
                server.terminate()
                raise AssertionError(f"{failed}\nthe server:\n{server.stderr.read()}") from failed
            finally:
                server.terminate()
            assert server.wait(300) == 0


@pytest.mark.parametrize(
    "page", [each for each in TUTORIALS if each.stem != "coding-assistant"], ids=lambda page: page.stem
)
@pytest.mark.parametrize("twice", [False, pytest.param(True, marks=pytest.mark.torture)], ids=["once", "twice"])
def test_a_reader_gets_what_the_page_prints(page: Path, tmp_path: Path, *, twice: bool) -> None:
    reader = Reader(tmp_path)
    reader.follow(page)
    if twice:
        reader.again(page)


@pytest.mark.skipif(shutil.which("sh") is None, reason="the page is for a shell")
def test_the_assistants_of_a_team_find_its_decision_and_nobody_elses_preference(tmp_path: Path) -> None:
    page = ROOT / "docs" / "tutorials" / "coding-assistant.md"
    reader = Reader(tmp_path)
    script = next(step.code for step in steps(page) if step.language == "sh")
    (hook,) = (step.code for step in steps(page) if step.code.startswith("memory-mcp hook"))
    hook = hook.replace("memory-mcp", f"{shlex.quote(sys.executable)} -m memory_mcp").replace("~/team/", "")
    with reader.shell(script):
        reader.follow(page)
        reader.again(page)
        asks = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Which linter do we use?"}
        reader.run(["sh", "-ec", f"echo {shlex.quote(json.dumps(asks))} | {hook}"])
    assert any("We use ruff" in line for line in reader.printed)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page is for a shell with curl")
def test_a_developer_sees_whether_the_server_knows_the_token(tmp_path: Path) -> None:
    page = ROOT / "docs" / "tutorials" / "coding-assistant.md"
    scripts = [step.code for step in steps(page) if step.language == "sh"]
    (asked,) = (each for each in scripts if each.startswith("curl"))
    reader = Reader(tmp_path)
    asked = asked.replace(PORT, str(reader.port))
    with reader.shell(scripts[0]):
        reader.run(["sh", "-ec", asked])
        assert reader.printed[0] == "HTTP/1.1 401 Unauthorized"
        token = json.loads((tmp_path / "tokens.json").read_text(encoding="utf-8"))["ann"]
        reader.run(["sh", "-ec", asked.replace("TOKEN-OF-ANN", token)])
        assert reader.printed[0] == "HTTP/1.1 400 Bad Request"


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page is for a shell with curl")
def test_the_operator_takes_out_a_persons_data_and_erases_it(tmp_path: Path) -> None:
    page = ROOT / "docs" / "howto" / "production.md"
    scripts = [step.code for step in steps(page) if step.language == "sh"]
    (made,) = (each for each in scripts if "> tokens.json" in each)
    (serve,) = (each for each in scripts if each.startswith("memory-core serve"))
    (person,) = (each for each in scripts if "/erase" in each)
    reader = Reader(tmp_path)
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        memory.bind(user="ann").sync.add("Ann drinks jasmine tea")
    with reader.shell(made + serve):
        reader.run(["sh", "-ec", person.replace(PORT, str(reader.port))])
    assert "jasmine" in (tmp_path / "ann.jsonl").read_text(encoding="utf-8")
    receipt = json.loads("".join(reader.printed))
    assert (receipt["records"], receipt["files_clean"]) == (1, True)
