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
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from memory_adk.service import MemoryService
from memory_core import InvalidInputError, Memory
from memory_core.adapting import is_server, memory_at, without_key

logger = logging.getLogger(__name__)

_FORM: Final = (
    "memorycore:///absolute/path.db, memorycore:relative/path.db, memorycore::memory: or "
    "memorycore+qdrant://host:6333/collection"
)
_OPTIONS: Final = ("app_name", "embedder", "mode")
"""The options of a file."""
_OF_SERVICE: Final = frozenset({"app_name", "embedder"})
"""The options that are not part of the address of a server."""
_VALUES: Final = {"embedder": ("default", "none"), "mode": ("ro", "rw")}


def memory_service(uri: str, **kwargs: Any) -> MemoryService:  # noqa: ARG001  (ADK's signature)
    """Create a `MemoryService` on the file or the server that `uri` names, and open it in the background.

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
    parts, options = urlsplit(uri), _options(uri)
    memory = _in_file(uri, parts, options) if parts.scheme == "memorycore" else _at_server(uri, options)
    service = MemoryService(memory, only_app=options.get("app_name"), owns_memory=True)
    service.access.load()  # a process that ADK starts has a question soon
    return service


def _options(uri: str) -> Mapping[str, str]:
    parts, options = urlsplit(uri), dict[str, str]()
    if parts.scheme != "memorycore" and not is_server(_address(uri, {})):
        raise _names_nothing(uri)
    if parts.fragment:
        raise InvalidInputError(f"{without_key(uri)!r} goes on after a #; write %23 for one that is part of a name")
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if parts.scheme == "memorycore" and name not in _OPTIONS:
            wanted = ", ".join(_OPTIONS)
            raise InvalidInputError(f"{without_key(uri)!r} has an unknown option {name!r}; it may have {wanted}")
        if name in options:
            raise InvalidInputError(f"{without_key(uri)!r} has the option {name} twice; remove one")
        if not value or value not in _VALUES.get(name, (value,)):
            raise InvalidInputError(f"{without_key(uri)!r} has the invalid value {value!r} for {name}; change it")
        options[name] = value
    return options


def _in_file(uri: str, parts: SplitResult, options: Mapping[str, str]) -> Memory:
    if parts.netloc or not parts.path.strip("/"):
        raise _names_nothing(uri)
    given, read_only = unquote(parts.path), options.get("mode") == "ro"
    path = Path("/" + given.lstrip("/") if given.startswith("/") else given)
    if given != ":memory:":
        if not path.parent.is_dir():  # a path that is misspelt: `adk web` would start with an empty memory
            raise InvalidInputError(f"{uri!r} is in a folder that does not exist, {str(path.parent)!r}; create it")
        if not (read_only or path.exists()):
            logger.warning("a new memory begins in %s", path.absolute())
    if options.get("embedder") == "none":
        return Memory(str(path), embedder=None, read_only=read_only)
    return Memory(str(path), read_only=read_only)


def _at_server(uri: str, options: Mapping[str, str]) -> Memory:
    address = _address(uri, {name: value for name, value in options.items() if name not in _OF_SERVICE})
    try:
        return memory_at(address, None) if options.get("embedder") == "none" else memory_at(address)
    except ValueError as error:  # of the port, or an `InvalidInputError`
        raise InvalidInputError(f"{without_key(uri)!r} does not name a memory: {error}") from error


def _address(uri: str, options: Mapping[str, str]) -> str:
    """The address of the server, whose scheme stands behind a `+`."""
    parts = urlsplit(uri)
    place = f"{parts.scheme.removeprefix('memorycore+')}://{parts.netloc}{parts.path}"
    return f"{place}?{urlencode(options)}" if options else place


def _names_nothing(uri: str) -> InvalidInputError:
    return InvalidInputError(f"{without_key(uri)!r} does not name a memory; write {_FORM}")
