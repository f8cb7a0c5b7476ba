"""The memory that a command works on: from its options, the environment or a small file, in this order.

The file is `memory-core.toml` in the user's configuration folder, or what `MEMORY_CORE_CONFIG` names. Its keys are
`file`, `app`, `user` and `embedder`.
"""

from __future__ import annotations

import getpass
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from memory_core.addresses import is_server
from memory_core.errors import InvalidInputError
from memory_core.settings import DEFAULT_EMBEDDER, made_or_none
from memory_core.supplied import Embedder, Reranker
from memory_core.values.checks import shown
from memory_core.values.places import check_path

KEYS: Final[Mapping[str, type]] = {"file": str, "app": str, "user": str, "embedder": str}
DEFAULT_FILE: Final = "memory.db"
DEFAULT_APP: Final = "default"
DEFAULT_NAME: Final = "multilingual"
"""The embedder without an option."""

NONE: Final = "none"
"""Without vectors."""
NAMES: Final[Mapping[str, str]] = {
    "multilingual": "memory_core.embedding.multilingual:MultilingualEmbedder",
    "english": "memory_core.embedding.minilm:MiniLmEmbedder",
    "hashing": "memory_core.embedding.hashing:HashingEmbedder",
    "fastembed": "memory_core.embedding.fastembed:FastEmbedEmbedder",
    "sentence-transformers": "memory_core.embedding.sentence_transformers:SentenceTransformerEmbedder",
    "openai": "memory_core.embedding.openai:OpenAiEmbedder",
    "gemini": "memory_core.embedding.gemini:GeminiEmbedder",
}
"""All but the first three can be followed by a model: `openai:text-embedding-3-large`."""
WAYS: Final = f"one of {', '.join(NAMES)}, such a name with a model (openai:MODEL), module:attribute, or {NONE}"


@dataclass(frozen=True, slots=True)
class Settings:
    """The memory, and the owner in it."""

    file: str
    app: str
    user: str
    embedder: str
    """As `embedder_of` reads it."""
    named_user: bool
    """True if the user was named, and is not the name of the login."""


def settings(*, file: str | None, app: str | None, user: str | None, embedder: str | None) -> Settings:
    """Complete what the options say.

    Raises:
        InvalidInputError: The configuration file cannot be used; or the memory is an address of no kind that is known;
            or an option is empty, as where a script has an unset variable: the default would be another memory, or
            somebody else's.
    """
    for name, given in {"file": file, "app": app, "user": user, "embedder": embedder}.items():
        if given == "":
            raise InvalidInputError(f"--{name} must not be empty; leave it out for the default")
    known = _configured()
    named = user or os.environ.get("MEMORY_CORE_USER") or known.get("user")
    place: str = file or os.environ.get("MEMORY_CORE_FILE") or known.get("file") or DEFAULT_FILE
    if not is_server(place):
        check_path("the memory (--file)", place)
    return Settings(
        file=place,
        app=app or os.environ.get("MEMORY_CORE_APP") or known.get("app") or DEFAULT_APP,
        user=named or _login(),
        embedder=embedder or os.environ.get("MEMORY_CORE_EMBEDDER") or known.get("embedder") or DEFAULT_NAME,
        named_user=named is not None,
    )


def config_path() -> Path:
    """The place of the configuration file, if there is one."""
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


def embedder_of(name: str) -> Embedder | None:
    """The embedder of a name; `module:attribute` is an embedder, or a function or class that makes one.

    Raises:
        InvalidInputError: There is no such embedder, or a package that it needs is not installed.
    """
    if name == NONE:
        return None
    if name == DEFAULT_NAME:
        return made_or_none(DEFAULT_EMBEDDER)
    kind, _, model = name.partition(":")
    try:
        made = _made(NAMES[kind], "embed_query", model) if kind in NAMES else _own(name, "embed_query")
    except ImportError as error:
        said = str(error) if kind in NAMES else f"there is no embedder {name!r} ({error}); give {WAYS}"
        raise InvalidInputError(said) from error
    except (AttributeError, TypeError, ValueError) as error:  # what an unusable name leads to
        raise InvalidInputError(f"there is no embedder {name!r} ({error}); give {WAYS}") from error
    if not hasattr(made, "embed_query"):
        raise InvalidInputError(f"{name!r} is no embedder but {type(made).__name__}; give {WAYS}")
    embedder: Embedder = made
    return embedder


def reranker_of(name: str) -> Reranker:
    """The reranker of `module:attribute`, which is one, or a function or class that makes one.

    Raises:
        InvalidInputError: There is no such reranker.
    """
    try:
        made = _own(name, "rerank")
    except (ImportError, AttributeError, TypeError, ValueError) as error:  # what an unusable name leads to
        raise InvalidInputError(f"there is no reranker {name!r} ({error}); give module:attribute") from error
    if not hasattr(made, "rerank"):
        raise InvalidInputError(f"{name!r} is no reranker but {type(made).__name__}; give module:attribute")
    reranker: Reranker = made
    return reranker


def _own(place: str, method: str) -> Any:
    """The object that a module of the user's has or makes; it may be in the current folder, as for `python -m`."""
    sys.path.insert(0, os.getcwd())  # noqa: PTH109
    return _made(place, method)


def _made(place: str, method: str, model: str = "") -> Any:
    module, _, attribute = place.partition(":")
    found: Any = getattr(import_module(module), attribute)
    return found if hasattr(found, method) and not isinstance(found, type) else found(*filter(None, [model]))
