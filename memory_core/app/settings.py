"""Which memory a command works on: from its options, the environment or a small file, in this order.

The file is `memory-core.toml` in the user's configuration folder, or what `MEMORY_CORE_CONFIG` names. Its keys are
`file`, `app`, `user` and `embedder`.
"""

from __future__ import annotations

import getpass
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memory_core.checks import shown
from memory_core.errors import InvalidInputError

KEYS: Final[Mapping[str, type]] = {"file": str, "app": str, "user": str, "embedder": str}
DEFAULT_FILE: Final = "memory.db"
DEFAULT_APP: Final = "default"
DEFAULT_EMBEDDER: Final = "minilm"


@dataclass(frozen=True, slots=True)
class Settings:
    """The memory, and the owner in it."""

    file: str
    app: str
    user: str
    embedder: str
    """As `embedders.embedder_of` reads it."""
    named_user: bool
    """Whether the user was named, and is not the name of the login."""


def settings(*, file: str | None, app: str | None, user: str | None, embedder: str | None) -> Settings:
    """Complete what the options say.

    Raises:
        InvalidInputError: The configuration file cannot be used.
    """
    known = _configured()
    named = user or os.environ.get("MEMORY_CORE_USER") or known.get("user")
    return Settings(
        file=file or os.environ.get("MEMORY_CORE_FILE") or known.get("file") or DEFAULT_FILE,
        app=app or os.environ.get("MEMORY_CORE_APP") or known.get("app") or DEFAULT_APP,
        user=named or _login(),
        embedder=embedder or os.environ.get("MEMORY_CORE_EMBEDDER") or known.get("embedder") or DEFAULT_EMBEDDER,
        named_user=named is not None,
    )


def config_path() -> Path:
    """Where the configuration file is, if there is one."""
    given = os.environ.get("MEMORY_CORE_CONFIG")
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(given or f"{folder}/memory-core.toml").expanduser()


def _configured() -> dict[str, Any]:  # checked against KEYS
    path = config_path()
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if "MEMORY_CORE_CONFIG" in os.environ:
            raise InvalidInputError(f"MEMORY_CORE_CONFIG names {str(path)!r}, and there is no such file") from None
        return {}
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"the configuration file {str(path)!r} cannot be read: {error}") from error
    for key, value in found.items():
        if key not in KEYS or not isinstance(value, KEYS[key]):
            raise InvalidInputError(
                f"the configuration file {str(path)!r} sets {key} to {shown(value)}; it can set "
                f"{', '.join(KEYS)}, each to a text"
            )
    return found


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in some containers
        return f"uid-{os.getuid()}"
