"""Every example runs by itself: no arguments, nothing leaves the machine or its folder, nothing is left at home.

The table of the default embedder, which `test_offline.py` has each program unpack, is unpacked on this machine already.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memory_core.embedding.multilingual.weights import cache
from tests.test_offline import found_strace, kept_at_home, seen

PATIENT = Path(__file__).with_name("patient")
EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
SAYS = {
    "adk_radbot.py": ["agent: I know: important: the garden gate has code 4711"],
    "adk_two_sessions.py": ["helper: You told me: My favourite tea is jasmine"],
    "facts_from_chats.py": [
        "  Ann lives in Bergen\nPatterns:",
        "Ann mentions 'authentication' on 8 days, 8 of them on a Monday",
        "I'm allergic to peanuts",
        "Taken back: 88 memories",
    ],
    "langchain_agent.py": ["agent: The window seat.", "agent: I do not know."],
    "langchain_chat.py": ["tuesday  ann:   Which tea do I like best?", "  ann: My favourite tea is jasmine"],
    "langgraph_import.py": ["1 item: {'text': 'Ann drinks jasmine tea'}", "recalled: 'I live in Oslo'"],
    "langgraph_nodes.py": [
        "tuesday  ann: Which tea is my favourite?",
        "graph: You said",
        "My favourite tea is jasmine",
    ],
    "langgraph_store.py": ["ann@example.com: 'What do I drink?' recalls ['I drink jasmine tea']"],
    "maintenance.py": ["instead of ('I live in Oslo',)", "In April: ['I live in Oslo']", "Taken back: 10 memories"],
    "mcp_client.py": ["Ann's spare key is with Mrs Okafor"],
    "one_memory.py": [
        "agent  You once said: My daughter Mia is allergic to peanuts",
        "chain  You once said: I prefer a window seat on trains",
        "assistant  You once said: The spare key is with Mrs Okafor",
        "secretary  You once said: My passport expires on 3 June 2027",
        " list --file .demo/ann.db --app demo --user ann",
    ],
    "memory_bank.py": ["18 steps, all readable", "found again: Step 2 - shell"],
    "own_store.py": ["Ann drinks jasmine tea"],
    "qdrant_copy.py": ["0 behind", "qdrant: Ann sold the boat in autumn"],
    "xaibo_agent.py": [
        "agent: Ann's spare key is with Mrs Okafor",
        "agent: Noted.",
        "elsewhere: The passport expires on 3 June 2027",
    ],
    "spade_agent.py": ['"ann@localhost": "I like JSON better than XML"'],
    "spade_beliefs.py": ["the foreman says: crate7 at pier 4"],
    "spade_blackboard.py": [
        "anton propose: 45 euros (crane: small, as berta@localhost says on the board)",
        "[private] anton@localhost: My lowest price is 35 euros",
    ],
    "spade_negotiation.py": ["buyer  propose 85.00\n  seller accept-proposal 85.00"],
    "spade_team.py": [
        "Boss: Looked up: high tide is at noon on Friday",
        "Boss: Looked up: crane two is out of service",
    ],
}
"""The words that an example has to say: that it remembers."""


@pytest.mark.process
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_ends_well_and_says_what_it_remembers(example: Path, tmp_path: Path) -> None:
    if example.name == "spade_beliefs.py":
        pytest.importorskip("spade_bdi", reason="the example of beliefs needs spade_bdi: make install")
    command = [sys.executable, "-W", "error::ResourceWarning", str(example)]
    unpacked = str(cache().parent)
    done, wrong = seen(found_strace(), tmp_path, command, PYTHONPATH=str(PATIENT), XDG_CACHE_HOME=unpacked)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    missing = [said for said in SAYS[example.name] if said not in done.stdout]
    assert not missing, done.stdout
    assert wrong == []
    assert kept_at_home(tmp_path) == []
