"""Documents of strangers are read in a process of their own, within limits."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter

from memory_core import InvalidInputError
from memory_core.adapting import core_loop
from memory_core.transfer import reading_apart
from memory_core.transfer.reading_apart import read_apart, suffix_for
from tests.pdf import pdf


async def test_the_parts_of_a_document_are_those_of_ingest() -> None:
    assert await read_apart(pdf("The rent is 700"), ".pdf") == [("page", 1, 0, "The rent is 700")]
    assert await read_apart(b"<p>The rent</p><p>is 700", ".html") == [("part", 1, 0, "The rent\nis 700")]
    long = await read_apart(b"The rent is due. " * 1_000, ".txt")
    assert len(long) > 2
    assert long[1].start > 0


def encrypted(tmp_path: Path) -> bytes:
    (tmp_path / "plain.pdf").write_bytes(pdf("The rent is 700"))
    writer = PdfWriter(clone_from=PdfReader(tmp_path / "plain.pdf"))
    writer.encrypt("password", algorithm="RC4-128")
    writer.write(tmp_path / "locked.pdf")
    return (tmp_path / "locked.pdf").read_bytes()


async def test_what_cannot_be_read_is_a_reason_that_quotes_nothing(tmp_path: Path) -> None:
    for content, suffix, reason in (
        (b"%PDF-1.4 secret", ".pdf", "it is not a PDF that can be read"),
        (encrypted(tmp_path), ".pdf", "it is not a PDF that can be read"),
        (b"secret \xff", ".txt", "it is not text in UTF-8"),
        (b"secret \0", ".txt", "it is not text"),
        (b" \n", ".txt", "it has no text"),
        (b"s" * (reading_apart.MAX_CHARS + 1), ".txt", "its text has more than 2000000 characters"),
        (b"s" * (reading_apart.MAX_BYTES + 1), ".txt", "it has more than 20 MiB"),
    ):
        with pytest.raises(InvalidInputError) as raised:
            await read_apart(content, suffix)
        assert str(raised.value).startswith(reason)
        assert "secret" not in str(raised.value)


async def test_a_document_that_takes_too_long_or_too_much_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_apart, "SECONDS", 0.0)
    with pytest.raises(InvalidInputError, match="too much time or memory"):
        await read_apart(b"The rent is 700", ".txt")


async def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pypdf.py").write_text("raise ImportError('pypdf')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInputError, match=r"pip install 'memory-core\[documents\]'"):
        await read_apart(pdf("The rent is 700"), ".pdf")


async def test_without_an_interpreter_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(InvalidInputError, match="no process can be started"):
        await read_apart(b"The rent is 700", ".txt")


async def test_the_process_gets_no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    (tmp_path / "pypdf.py").write_text(
        f"import os\nopen({str(shown)!r}, 'w').write(repr(dict(os.environ)))\nPdfReader = None"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(os.environ, "API_KEY", "secret")
    with pytest.raises(InvalidInputError):
        await read_apart(pdf("The rent is 700"), ".pdf")
    assert "PYTHONPATH" in shown.read_text()
    assert "secret" not in shown.read_text()


async def test_many_documents_are_read_one_after_the_other() -> None:
    found = await asyncio.gather(*(read_apart(f"Page {number}".encode(), ".txt") for number in range(6)))
    assert [parts[0].text for parts in found] == [f"Page {number}" for number in range(6)]


@pytest.mark.parametrize(
    ("name", "media_type", "suffix"),
    [
        ("a.pdf", "application/pdf", ".pdf"),
        ("", "application/pdf", ".pdf"),
        ("a.PDF", "application/octet-stream", ".pdf"),
        ("a", "text/html; charset=utf-8", ".html"),
        ("a.csv", "text/csv", ".txt"),
        ("a.md", "", ".md"),
        ("a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", None),
        ("a.png", "image/png", None),
        ("", "", None),
    ],
)
def test_the_media_type_says_how_a_document_is_read_or_else_its_suffix(
    name: str, media_type: str, suffix: str | None
) -> None:
    assert suffix_for(name, media_type) == suffix


async def test_a_parser_that_fills_the_memory_of_the_machine_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pypdf.py").write_text("kept = [bytes(1 << 28) for _ in range(1_000)]")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInputError, match="too much time or memory"):
        await read_apart(pdf("The rent is 700"), ".pdf")


EXITING = """
import time
from memory_core.adapting import core_loop, read_apart
from memory_core.adapting import core_loop
from memory_core.transfer import reading_apart
core_loop().submit(read_apart(b"%PDF", ".pdf"))
while not reading_apart._running:
    time.sleep(0.01)
print(*reading_apart._running)
"""


def test_an_exiting_process_leaves_no_reader_behind(tmp_path: Path) -> None:
    (tmp_path / "pypdf.py").write_text("while True: pass")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    said = subprocess.run(
        [sys.executable, "-c", EXITING], env={"PYTHONPATH": path}, capture_output=True, check=True, timeout=60
    )
    reader = int(said.stdout)
    while Path(f"/proc/{reader}").exists():  # it was told to end, and the system has not collected it yet
        time.sleep(0.01)
    assert reader > 1


def test_it_does_not_need_the_event_loop_policy_of_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    class Policy(asyncio.DefaultEventLoopPolicy):
        def get_child_watcher(self) -> Any:
            raise NotImplementedError

    monkeypatch.setattr(asyncio, "get_event_loop_policy", Policy)
    monkeypatch.setattr(asyncio.events, "get_event_loop_policy", Policy)
    parts = core_loop().submit(read_apart(b"The rent is 700", ".txt")).result(timeout=60)
    assert [part.text for part in parts] == ["The rent is 700"]
