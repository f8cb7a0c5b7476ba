"""Creates a memory service from a URI, for `adk run`, `adk web` and `adk api_server`.

`services.yaml`, in the folder that is named on the command line:

```yaml
services:
  - {scheme: memorycore, type: memory, class: memory_adk.memory_service}
  - {scheme: memorycore+qdrant, type: memory, class: memory_adk.memory_service}
```

Then `--memory_service_uri memorycore:///var/lib/agents/memory.db?app_name=helper`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from memory_adk.service import MemoryService
from memory_core import InvalidInputError, Memory

logger = logging.getLogger(__name__)

_FORM: Final = (
    "memorycore:///absolute/path.db, memorycore:relative/path.db, memorycore::memory: or "
    "memorycore+qdrant://host:6333/collection"
)
_OPTIONS: Final = ("app_name", "embedder")
_FILE_OPTIONS: Final = ("mode",)
_VALUES: Final = {"embedder": ("default", "none"), "grpc": ("true", "false"), "mode": ("ro", "rw")}
_QDRANT_OPTIONS: Final = ("grpc", "grpc_port", "timeout")
_QDRANT: Final = ("memorycore+qdrant", "memorycore+qdrant+https")


@dataclass(frozen=True, slots=True)
class _Address:
    """A parsed URI. `shown` is for messages and contains nothing that may be a key."""

    shown: str
    parts: SplitResult
    options: Mapping[str, str]

    @property
    def path(self) -> str:
        return unquote(self.parts.path)


def memory_service(uri: str, **kwargs: Any) -> MemoryService:  # noqa: ARG001  (ADK's signature)
    """Create a `MemoryService` on the file or the Qdrant server that `uri` names, and open it in the background.

    Args:
        uri: `memorycore:///absolute/path.db` (four slashes work too), `memorycore:relative/path.db` (relative to the
            working directory) or `memorycore::memory:`; or `memorycore+qdrant://[key@]host[:port][/collection]`
            (`memorycore+qdrant+https://` for TLS). Without a host, the environment names the server. Options after
            `?`: `app_name`, the only app that is served; `embedder=none` for keyword search only;
            `mode=ro` to only read a file; for Qdrant `grpc=true`, `grpc_port` and `timeout` (seconds).
        kwargs: Unused; ADK passes its own settings, such as `agents_dir`, to every service.

    Raises:
        InvalidInputError: The URI has another form or an unknown option, or the folder of the file does not exist; the
            message names it.
    """
    address = _address(uri)
    service = MemoryService(
        _at_qdrant(address) if address.parts.scheme in _QDRANT else _in_file(address),
        only_app=address.options.get("app_name"),
        owns_memory=True,
    )
    service.access.load()  # a process that ADK starts has a question soon
    return service


def _address(uri: str) -> _Address:
    parts = urlsplit(uri)
    host = parts.netloc.rpartition("@")[2]
    plain = uri.partition("?")[0]
    shown = plain.replace(parts.netloc, f"…@{host}") if "@" in parts.netloc else plain
    options: dict[str, str] = {}
    allowed = (*_OPTIONS, *(_QDRANT_OPTIONS if parts.scheme in _QDRANT else _FILE_OPTIONS))
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in allowed:
            raise InvalidInputError(f"{shown!r} has an unknown option {name!r}; it may have {', '.join(allowed)}")
        if name in options:
            raise InvalidInputError(f"{shown!r} has the option {name} twice; remove one")
        if not value or value not in _VALUES.get(name, (value,)):
            raise InvalidInputError(f"{shown!r} has the invalid value {value!r} for {name}; change it or leave it out")
        options[name] = value
    return _Address(shown, parts, options)


def _in_file(address: _Address) -> Memory:
    parts = address.parts
    if parts.scheme != "memorycore" or parts.netloc or not parts.path.strip("/") or parts.fragment:
        raise InvalidInputError(f"{address.shown!r} does not name a memory; write {_FORM}")
    path = "/" + address.path.lstrip("/") if address.path.startswith("/") else address.path
    if path != ":memory:":
        _insist_on_folder(address, Path(path))
    read_only = address.options.get("mode") == "ro"
    if path != ":memory:" and not read_only and not Path(path).exists():
        logger.warning("a new memory begins in %s", Path(path).absolute())
    if address.options.get("embedder") == "none":
        return Memory(path, embedder=None, read_only=read_only)
    return Memory(path, read_only=read_only)


def _insist_on_folder(address: _Address, path: Path) -> None:
    """Refuse a path that is misspelt: `adk web` would start with an empty memory."""
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"{address.shown!r} is in a folder that does not exist, {str(path.parent)!r}; create it"
        )


def _at_qdrant(address: _Address) -> Memory:
    from memory_core import MiniLmEmbedder, QdrantStore  # noqa: PLC0415  (qdrant-client takes a second)

    embedder = None if address.options.get("embedder") == "none" else MiniLmEmbedder()
    collection = address.path.strip("/")
    if "/" in collection or address.parts.fragment:
        raise InvalidInputError(f"{address.shown!r} does not name a collection; write {_FORM}")
    if not address.parts.netloc and collection and not address.options.keys() & set(_QDRANT_OPTIONS):
        return Memory(QdrantStore(embedder=embedder, collection=collection))
    options = urlencode({name: value for name, value in address.options.items() if name in _QDRANT_OPTIONS})
    parts = address.parts._replace(scheme=address.parts.scheme.removeprefix("memorycore+"), query=options)
    try:
        return Memory(QdrantStore.from_uri(parts.geturl(), embedder=embedder))
    except ValueError as error:  # of the port, or an `InvalidInputError`
        raise InvalidInputError(f"{address.shown!r} does not name a memory: {error}") from error
