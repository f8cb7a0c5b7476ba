"""Settings of the server, of collections and of retries: values without I/O."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from memory_core.errors import InvalidInputError
from memory_core.values.header_values import check_header
from memory_core.values.places import without_key

IN_MEMORY: Final = ":memory:"
SCHEMES: Final[Mapping[str, str]] = {"qdrant": "http", "qdrant+https": "https"}
"""The schemes of addresses, and those of the URLs that they stand for."""
DEFAULT_HOST: Final = "localhost"
DEFAULT_PORT: Final = 6333
DEFAULT_GRPC_PORT: Final = 6334


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The address of a Qdrant server and how to connect to it.

    At most one of `url`, `host` and `path`. Missing settings are taken from the environment by `resolved`:
    `QDRANT_URL`, else `QDRANT_HOST` and `QDRANT_PORT`, else `localhost:6333`; `QDRANT_API_KEY`.
    """

    url: str | None = None
    """`https://name:6333/prefix`."""
    host: str | None = None
    port: int | None = None
    path: str | None = None
    """A folder, or `":memory:"`: qdrant_client's local mode, for tests only."""
    api_key: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    """A file with the certificates of the authorities to trust for `https://`; HTTP only. `None` for the usual ones."""
    prefer_grpc: bool = False
    grpc_port: int = DEFAULT_GRPC_PORT
    timeout_seconds: int = 10
    """Of one request."""

    def __post_init__(self) -> None:
        given = [name for name in ("url", "host", "path") if getattr(self, name) is not None]
        if len(given) > 1:
            raise InvalidInputError(f"give one of {' and '.join(given)} for a Qdrant server, not both")
        if self.url is not None and urlsplit(self.url).scheme not in ("http", "https"):
            raise InvalidInputError(f"url {without_key(self.url)!r} does not start with http:// or https://")
        if self.api_key is not None:
            check_header("api_key", self.api_key)
        for name in ("port", "grpc_port"):
            port = getattr(self, name)
            if port is not None and not 0 < port < 1 << 16:
                raise InvalidInputError(f"{name} must be from 1 to 65535, not {port!r}")
        if self.ca_file is not None and self.prefer_grpc:
            raise InvalidInputError("ca_file is for HTTP; with gRPC set GRPC_DEFAULT_SSL_ROOTS_FILE_PATH instead")
        if self.timeout_seconds < 1:
            raise InvalidInputError(f"timeout_seconds must be at least 1, not {self.timeout_seconds}")

    def resolved(self, environment: Mapping[str, str] | None = None) -> Self:
        """These settings, with missing ones from the environment; explicit values take precedence."""
        found = os.environ if environment is None else environment
        server = self
        if server.api_key is None and server.path is None:
            server = replace(server, api_key=found.get("QDRANT_API_KEY") or None)
        if server.url is not None or server.path is not None:
            return server
        if server.host is None and server.port is None and found.get("QDRANT_URL"):
            return replace(server, url=found["QDRANT_URL"])
        port = server.port or _whole("QDRANT_PORT", found.get("QDRANT_PORT") or str(DEFAULT_PORT))
        return replace(server, host=server.host or found.get("QDRANT_HOST") or DEFAULT_HOST, port=port)

    @property
    def is_local(self) -> bool:
        """True if there is no server, only qdrant_client's local mode."""
        return self.path is not None

    @property
    def name(self) -> str:
        """The address for messages; never contains the key."""
        if self.path is not None:
            return self.path
        if self.url is not None:
            parts = urlsplit(self.url)
            return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The form in which collections are created.

    An option that is `None` is left to the server when a collection is created, and not checked afterwards; any other
    value is compared with an existing collection.
    """

    shards: int | None = None
    """Shards of the collection (of each tenant, with `tenant_shards`); 2 to 4 times the number of nodes."""
    replicas: int | None = None
    """Copies of each shard: Qdrant does not wait for the disk, so durability comes from these."""
    write_consistency: int | None = None
    """Replicas that must have applied a write before it is acknowledged, fewer than `replicas`: 2 of 3 to survive two
    crashes within seconds. What reaches enough of them is repaired on the others before those are read again."""
    tenant_shards: bool = False
    """Custom sharding: owners share the shard key `SHARED_SHARD` until the operator gives one a dedicated key."""

    def __post_init__(self) -> None:
        if (self.write_consistency or 1) > max((self.replicas or 2) - 1, 1):
            raise InvalidInputError(
                f"write_consistency={self.write_consistency} must be less than replicas={self.replicas}: while a node "
                "is down, writes would fail on it and stay on the other replicas, which Qdrant does not repair"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The limits of trying a request again before it fails: a time and a number."""

    attempts: int = 6
    first_pause_seconds: float = 0.1
    """Doubles with every attempt; each pause is a random part of it (full jitter)."""
    longest_pause_seconds: float = 5.0
    deadline_seconds: float = 30.0
    """No attempt starts later than this after the first."""


SHARED_SHARD: Final = "shared"


def to_server(given: str | os.PathLike[str] | Server | None) -> Server:
    """A server as a caller may name it: by settings, URL or folder, or not at all."""
    if isinstance(given, Server):
        return given
    if given is None:
        return Server()
    text = os.fspath(given)
    return Server(url=text) if text.startswith(("http://", "https://")) else Server(path=text)


def from_uri(uri: str) -> tuple[Server, str | None]:
    """A server and, if named, a collection, from `qdrant://[key@]host[:port][/collection][?options]`.

    `qdrant+https://` uses TLS. Options: `grpc=true`, `grpc_port=`, `timeout=` (seconds). In `qdrant:///collection` the
    environment names the server (see `Server.resolved`).

    Raises:
        InvalidInputError: It is not such an address.
    """
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname or "", parts.port or DEFAULT_PORT
    except ValueError as error:  # brackets without an end, or another port than 0 to 65535
        raise _no_address(uri) from error
    collection = unquote(parts.path.strip("/"))
    is_elsewhere = bool(collection) and not parts.netloc
    if parts.scheme not in SCHEMES or "/" in collection or not (is_elsewhere or re.fullmatch(r"[^\s\\]+", host)):
        raise _no_address(uri)
    if "@" in parts.path + parts.query + parts.fragment:  # a key with a slash that is not percent-encoded
        raise _no_address(uri)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(options.keys() - {"grpc", "grpc_port", "timeout"})
    if unknown:
        raise InvalidInputError(f"a Qdrant address takes grpc, grpc_port and timeout, not {', '.join(unknown)}")
    url = f"{SCHEMES[parts.scheme]}://{f'[{host}]' if ':' in host else host}:{port}"
    server = Server(
        url=None if is_elsewhere else url,
        api_key=unquote(parts.username) if parts.username else None,
        prefer_grpc=_flag("grpc", options.get("grpc", "false")),
        grpc_port=_whole("grpc_port", options.get("grpc_port", str(DEFAULT_GRPC_PORT))),
        timeout_seconds=_whole("timeout", options.get("timeout", "10")),
    )
    return server, collection or None


def _no_address(uri: str) -> InvalidInputError:
    return InvalidInputError(f"{without_key(uri)!r} is not a Qdrant address such as qdrant://localhost:6333/collection")


def _flag(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise InvalidInputError(f"{name} must be true or false, not {text!r}")
    return text == "true"


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InvalidInputError(f"{name} must be a whole number, not {text!r}") from error
