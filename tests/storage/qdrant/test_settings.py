"""The address of the server: arguments, environment, addresses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from memory_core import InvalidInputError
from memory_core.storage.qdrant.settings import Server, from_uri
from memory_core.storage.qdrant.store import QdrantStore


def test_the_environment_fills_in_what_is_left_out() -> None:
    cases: list[tuple[Server, dict[str, str], str, str | None]] = [
        (Server(), {}, "localhost:6333", None),
        (Server(), {"QDRANT_HOST": "h", "QDRANT_PORT": "7"}, "h:7", None),
        (Server(), {"QDRANT_HOST": "h"}, "h:6333", None),
        (Server(), {"QDRANT_URL": "https://cloud:6333", "QDRANT_HOST": "h"}, "https://cloud:6333", None),
        (Server(), {"QDRANT_URL": "https://cloud", "QDRANT_API_KEY": "k"}, "https://cloud", "k"),
        (Server(), {"QDRANT_URL": "", "QDRANT_API_KEY": ""}, "localhost:6333", None),
    ]
    for server, environment, name, key in cases:
        resolved = server.resolved(environment)
        assert (resolved.name, resolved.api_key) == (name, key)


def test_arguments_beat_the_environment() -> None:
    environment = {
        "QDRANT_URL": "https://cloud",
        "QDRANT_HOST": "h",
        "QDRANT_PORT": "7",
        "QDRANT_API_KEY": "environment",
    }
    assert Server(url="http://mine:1").resolved(environment).name == "http://mine:1"
    assert Server(host="mine").resolved(environment).name == "mine:7"
    assert Server(host="mine", port=1).resolved(environment).name == "mine:1"
    assert Server(port=1).resolved(environment).name == "h:1"
    assert Server(api_key="mine").resolved(environment).api_key == "mine"
    local = Server(path=":memory:").resolved(environment)
    assert (local.name, local.api_key, local.is_local) == (":memory:", None, True)


def test_an_address_names_server_collection_and_options() -> None:
    server, collection = from_uri("qdrant://k%2Fey@host:7/notes?grpc=true&grpc_port=8&timeout=3")
    assert (server.url, server.api_key, collection) == ("http://host:7", "k/ey", "notes")
    assert (server.prefer_grpc, server.grpc_port, server.timeout_seconds) == (True, 8, 3)
    server, collection = from_uri("qdrant+https://host")
    assert (server.url, server.api_key, collection, server.prefer_grpc) == ("https://host:6333", None, None, False)
    assert from_uri("qdrant://[::1]:7")[0].url == "http://[::1]:7"
    server, collection = from_uri("qdrant:///notes?timeout=3")
    assert (server.resolved({"QDRANT_URL": "https://cloud"}).name, collection) == ("https://cloud", "notes")


@pytest.mark.parametrize(
    ("uri", "word"),
    [
        ("http://host", "not a Qdrant address"),
        ("qdrant://", "not a Qdrant address"),
        ("sqlite:///x", "not a Qdrant address"),
        ("qdrant://x y/z", "not a Qdrant address"),
        ("qdrant://[::1/z", "not a Qdrant address"),
        ("qdrant://h:99999/z", "not a Qdrant address"),
        ("qdrant://h:door/z", "not a Qdrant address"),
        ("qdrant://h?color=red", "not color"),
        ("qdrant://h/a/b", "not a Qdrant address"),
        ("qdrant://:7/notes", "not a Qdrant address"),
        ("qdrant://h?grpc=maybe", "grpc must be true or false, not 'maybe'"),
        ("qdrant://h?timeout=soon", "timeout must be a whole number, not 'soon'"),
    ],
)
def test_another_address_is_refused(uri: str, word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        from_uri(uri)


def test_no_message_shows_the_key() -> None:
    with pytest.raises(InvalidInputError) as caught:
        from_uri("http://secret@host")
    assert "secret" not in str(caught.value)
    with pytest.raises(InvalidInputError) as caught:
        from_uri("qdrant://secret@host:99999")
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(Server(url="https://h", api_key="secret"))
    assert "secret" not in Server(url="https://user:secret@h:1/p").name


def test_settings_that_cannot_be_are_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="one of url and host"):
        Server(url="http://h", host="h")
    with pytest.raises(InvalidInputError, match="'h:6333' does not start with http"):
        Server(url="h:6333")
    with pytest.raises(InvalidInputError, match="port must be from 1 to 65535, not 0"):
        Server(host="h", port=0)
    with pytest.raises(InvalidInputError, match="timeout_seconds must be at least 1, not 0"):
        Server(timeout_seconds=0)
    with pytest.raises(InvalidInputError, match="QDRANT_PORT must be a whole number, not 'x'"):
        Server(host="h").resolved({"QDRANT_PORT": "x"})


def test_a_store_takes_a_url_a_folder_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_URL", "http://from-environment:1")
    for given, name in (
        ("http://h:1", "http://h:1"),
        (":memory:", ":memory:"),
        ("some/folder", "some/folder"),
        (None, "http://from-environment:1"),
        (Server(host="h", port=2), "h:2"),
    ):
        assert QdrantStore(given, embedder=None)._server.name == name


@pytest.mark.process
def test_without_qdrant_client_one_sentence_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['qdrant_client'] = None\n"
        "import memory_core.storage.qdrant\n"
        "try: import memory_core.storage.qdrant.store\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "`QdrantStore` needs qdrant-client: pip install 'memory-core[qdrant]'\n"
