"""What people and scripts get wrong at the command line: unset variables, mixed-up names, odd terminals."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.conftest import Run


@pytest.fixture(autouse=True)
def words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the model, which takes a moment to load for each command."""
    monkeypatch.setenv("MEMORY_CORE_EMBEDDER", "none")


@pytest.mark.parametrize("option", ["--file", "--app", "--user", "--embedder"])
def test_an_unset_variable_of_a_script_does_not_lead_to_another_memory(run: Run, option: str) -> None:
    run("add", "The spare key is with Mrs Okafor")
    refused = run("erase", "--yes", option, "", code=2)
    assert refused.err == f"memory-core: {option} must not be empty; leave it out for the default\n"
    assert run("stats", "--json").value["records"] == 1


@pytest.mark.parametrize("format_", ["jsonl", "langgraph"])
@pytest.mark.parametrize("name", ["memory.db", "other.db", "link.db"])
def test_an_export_never_replaces_a_memory(run: Run, tmp_path: Path, name: str, format_: str) -> None:
    run("add", "The spare key is with Mrs Okafor")
    run("backup", "other.db")
    (tmp_path / "link.db").symlink_to("other.db")
    refused = run("export", name, "--format", format_, "--overwrite", code=2)
    assert "which an export would destroy" in refused.err
    assert run("stats", "--file", name, "--json").value["records"] == 1


def test_a_memory_is_not_restored_from_itself(run: Run) -> None:
    run("add", "The spare key is with Mrs Okafor")
    refused = run("restore", "memory.db", "--overwrite", "--yes", code=2)
    assert "is the backup itself" in refused.err
    assert run("stats", "--json").value["records"] == 1


@pytest.mark.parametrize("time", ["0001-01-01", "9999-12-31T23:59:59", "2026-13-01"])
def test_a_time_outside_the_calendar_is_one_sentence(run: Run, time: str) -> None:
    """Without an offset it is local time, which may have no time in UTC."""
    done = run("add", "tea", "--at", time, code=None)
    assert done.code in {0, 2}, done.err
    assert "defect" not in done.err
