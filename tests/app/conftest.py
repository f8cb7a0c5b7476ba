"""The program run in this process, with what it prints; a folder of its own, and no settings of the machine."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

import memory_core.app
from memory_core.app.main import main

SCHEMA = json.loads((Path(memory_core.app.__file__).parent / "schema.json").read_text())
PIPED = "The tide turns at noon"


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine decides which memory is used."""
    monkeypatch.chdir(tmp_path)
    for name in ("FILE", "APP", "USER", "CONFIG"):
        monkeypatch.delenv(f"MEMORY_CORE_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LOGNAME", "ann")


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command; anything in its JSON is as the shipped schema says."""

    def command(*arguments: str, code: int = 0, stdin: str = "") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        ended = main(list(arguments))
        out, err = (text.decode() for text in capsysbinary.readouterr())
        assert ended == code, f"{arguments} ended with {ended}: {out}{err}"
        assert "Traceback" not in err
        if "--json" in arguments and out:
            insist_on_schema(arguments[0], json.loads(out))
        return Done(ended, out, err)

    return command


def insist_on_schema(command: str, value: object) -> None:
    wanted = {**SCHEMA, "$ref": f"#/commands/{command}"}
    jsonschema.Draft202012Validator(wanted, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER).validate(
        value
    )
