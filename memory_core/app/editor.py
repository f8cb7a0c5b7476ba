"""The user's editor, on a text."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from memory_core.errors import InvalidInputError

VARIABLES = ("VISUAL", "EDITOR")


def edited(text: str) -> str:
    """The text after the user's editor (`$VISUAL`, `$EDITOR`, or vi) has closed; without the line end that editors add.

    Raises:
        InvalidInputError: The editor cannot be started, or ended with an error.
    """
    editor = next((value for name in VARIABLES if (value := os.environ.get(name, "").strip())), "vi")
    with tempfile.TemporaryDirectory() as folder:  # which only this user can read
        path = Path(folder) / "memory.txt"
        path.write_bytes(f"{text}\n".encode())
        try:
            subprocess.run([*shlex.split(editor), str(path)], check=True)  # noqa: S603  (the user's own)
            return path.read_bytes().decode().removesuffix("\n")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise InvalidInputError(f"the editor {editor!r} changed nothing: {error}; set EDITOR to another") from error
