"""The packages that a user gets from `pip install 'memory-core[spade]'` and `[spade-llm]`: our wheel and what it
declares, no more.

Nothing is downloaded. The declared dependencies, and theirs, are linked from the environment of the tests into an
empty one, so that a package nobody asks for is missing there as it would be on a fresh machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from memory_core.embedding.multilingual.weights import cache

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
OWN = "memory-core"


def run(command: list[str | Path], folder: Path) -> str:
    folders = {"HOME": str(folder), "XDG_CACHE_HOME": str(cache().parent)}
    environment = {"PATH": os.environ["PATH"], "LITELLM_LOCAL_MODEL_COST_MAP": "True", **folders}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wanted_by(name: str, extras: frozenset[str]) -> list[Requirement]:
    """The requirements that hold on this machine."""
    wanted = [Requirement(line) for line in distribution(name).requires or ()]
    return [
        each for each in wanted if not each.marker or any(each.marker.evaluate({"extra": x}) for x in extras | {""})
    ]


def needed_for(extra: str, *others: str) -> set[str]:
    """The distributions that pip would bring, for our wheel and other packages."""
    needed, open_ends = set[tuple[str, frozenset[str]]](), [(OWN, frozenset({extra}))]
    open_ends += [(other, frozenset()) for other in others]
    while open_ends:
        name, extras = end = open_ends.pop()
        if end not in needed:
            needed.add(end)
            wanted = wanted_by(name, extras)
            open_ends += [(canonicalize_name(each.name), frozenset(each.extras)) for each in wanted]
    return {name for name, _ in needed} - {OWN}


def fresh_environment(extra: str, wheel: Path, folder: Path, *others: str) -> Path:
    """The interpreter of an environment with our wheel and what it declares, and other packages."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in needed_for(extra, *others):
        found = distribution(name)
        tops = {path.parts[0] for path in found.files or () if path.parts[0] not in {"..", "__pycache__"}}
        for top in tops:
            target = packages / top
            if not target.exists():
                target.symlink_to(Path(str(found.locate_file(top))))
    zipfile.ZipFile(wheel).extractall(packages)
    return python


def first_block(page: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    block = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1]


PLAIN = """
import asyncio
from spade.agent import Agent
from memory_spade import MemoryBehaviour, MemoryMixin
from memory_spade.testing.peer import Peer
from memory_spade.testing.xmpp import xmpp_server

class Plain(MemoryMixin, Agent): ...

async def main():
    async with xmpp_server() as server:
        scribe, ann = Plain(server.jid("scribe"), "pw", memory="plain.db"), Peer(server.jid("ann"))
        scribe.add_behaviour(MemoryBehaviour())
        for agent in (scribe, ann):
            await server.start(agent)
        try:
            await ann.ask(server.jid("scribe"), "The tide turns at noon", seconds=0.3)
        except TimeoutError:
            pass  # it only listens
        while not await scribe.memory.search("tide"):
            await asyncio.sleep(0.01)

asyncio.run(main())
try:
    from memory_spade import MemoryLLMAgent
except ImportError as error:
    print(error)
"""


def test_the_extra_for_plain_agents_brings_all_that_they_need_and_no_language_model(
    wheel: Path, tmp_path: Path
) -> None:
    """`pip install spade` alone cannot be imported: it lacks greenlet."""
    assert {"spade", "greenlet"} <= needed_for("spade")
    assert not {"spade-llm", "litellm", "openai"} & needed_for("spade")
    python = fresh_environment("spade", wheel, tmp_path)
    said = run([python, "-I", "-W", "error::ResourceWarning", "-c", PLAIN], tmp_path)
    assert said.strip().endswith("pip install 'memory-core[spade-llm]'")


@pytest.mark.slow  # spade_llm alone takes seconds to import
def test_the_first_program_of_the_page_about_spade_runs_as_printed(wheel: Path, tmp_path: Path) -> None:
    python = fresh_environment("spade-llm", wheel, tmp_path)
    said = run([python, "-I", "-c", first_block("docs/spade.md")], tmp_path)
    assert '- "ann@localhost": "Ann prefers JSON to XML"' in said


def test_the_documented_memories_work_where_no_framework_is_installed(wheel: Path, tmp_path: Path) -> None:
    python = fresh_environment("cli", wheel, tmp_path)
    code = (
        "import asyncio\nfrom memory_spade.memory import AgentBaseMemory, AgentInteractionMemory\n"
        "notes = AgentInteractionMemory('agent@example.com', 'notes')\n"
        "notes.add_information('c', 'User prefers JSON')\n"
        "async def main():\n"
        "    memory = AgentBaseMemory('agent@example.com', 'notes')\n"
        "    await memory.store_memory('User prefers JSON responses over XML', 'preference')\n"
        "    found = await memory.search_memories('what do they prefer for the API format?')\n"
        "    await memory.cleanup()\n"
        "    return notes.get_information('c') + [entry.content for entry in found]\n"
        "print(asyncio.run(main()))"
    )
    assert not {"spade", "slixmpp"} & needed_for("cli")
    said = run([python, "-I", "-c", code], tmp_path)
    assert said.strip() == "['User prefers JSON', 'User prefers JSON responses over XML']"


SOMEBODY_ELSES = """
import pytest
from own_store import shelf_store
from memory_core import Memory
from memory_core.testing import StoreContract

class TestShelf(StoreContract):
    @pytest.fixture
    def make_memory(self):
        return lambda clock: Memory(shelf_store(clock), clock=clock)
"""


def test_a_store_of_somebody_else_is_tested_by_the_installed_contract(wheel: Path, tmp_path: Path) -> None:
    python = fresh_environment("cli", wheel, tmp_path / "environment", "pytest")
    project = tmp_path / "project"
    project.mkdir()
    shutil.copy(ROOT / "examples" / "own_store.py", project)
    (project / "test_shelf.py").write_text(SOMEBODY_ELSES)
    # Of all promises some are kept here; `test_store_contract.py` has this store keep each.
    said = run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "search"], project)
    counted = re.search(r"(\d+) passed.* (\d+) deselected", said)
    assert counted is not None, said
    assert sum(map(int, counted.groups())) > 380, said
