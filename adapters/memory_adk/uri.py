"""A memory service from a URI, for `adk run`, `adk web` and `adk api_server`.

`services.yaml`, in the agent's folder for `adk run` and in the folder of agents for the other two:

```yaml
services:
  - scheme: memorycore
    type: memory
    class: memory_adk.memory_service
```

Then `--memory_service_uri memorycore:///var/lib/agents/memory.db?app_name=helper`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from memory_adk.service import MAX_CHARS, MAX_RESULTS, MemoryService
from memory_core import InvalidInputError, Memory

_FORM: Final = "memorycore:///absolute/path.db, memorycore:relative/path.db or memorycore::memory:"
_OPTIONS: Final = ("app_name", "embedder", "max_chars", "max_results")


def memory_service(uri: str, *, agents_dir: str | None = None) -> MemoryService:  # noqa: ARG001  (ADK passes it)
    """A `MemoryService` on the file that `uri` names; nothing is opened yet.

    Args:
        uri: `memorycore:///absolute/path.db` (four slashes are fine too), `memorycore:relative/path.db` (to the
            working directory) or `memorycore::memory:`, and options after a `?`: `app_name`, `max_results` and
            `max_chars` of `MemoryService`, and `embedder=none` to search by words alone.
        agents_dir: Not used; ADK passes it to every service.

    Raises:
        InvalidInputError: The URI is not of this form or has an option it does not know; the message names it.
    """
    parts = urlsplit(uri)
    if parts.scheme != "memorycore" or parts.netloc or not parts.path.strip("/") or parts.fragment:
        raise InvalidInputError(f"{uri!r} does not name a memory; write {_FORM}")
    path = unquote(parts.path)
    path = "/" + path.lstrip("/") if path.startswith("/") else path
    options = _options(uri, parts.query)
    memory = Memory(path, embedder=None) if options.get("embedder") == "none" else Memory(path)
    return MemoryService(
        memory,
        app_name=options.get("app_name"),
        max_results=_number(uri, options, "max_results", MAX_RESULTS),
        max_chars=_number(uri, options, "max_chars", MAX_CHARS),
        owns_memory=True,
    )


def _options(uri: str, query: str) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in options.items():
        if name not in _OPTIONS:
            raise InvalidInputError(f"{uri!r} has an unknown option {name!r}; it may have {', '.join(_OPTIONS)}")
        if not value or (name == "embedder" and value not in ("default", "none")):
            raise InvalidInputError(f"{uri!r} gives {name} the value {value!r}, which it cannot have")
    return options


def _number(uri: str, options: Mapping[str, str], name: str, default: int) -> int:
    value = options.get(name, str(default))
    if not value.isascii() or not value.isdigit():
        raise InvalidInputError(f"{uri!r} gives {name} the value {value!r}, which is no whole number")
    return int(value)
