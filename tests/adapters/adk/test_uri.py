from __future__ import annotations

from pathlib import Path

import pytest

from memory_adk import memory_service
from memory_core import InvalidInputError, ScopeError
from tests.adapters.adk.agents import bytes_in, said_event, session_with, texts


@pytest.mark.parametrize("slashes", ["memorycore://", "memorycore:///", "memorycore:"])
async def test_a_uri_with_an_absolute_path_opens_that_file(tmp_path: Path, slashes: str) -> None:
    path = tmp_path / "my memory.db"
    service = memory_service(f"{slashes}{path}?embedder=none&app_name=tea".replace(" ", "%20"), agents_dir="agents")
    await service.add_session_to_memory(session_with(said_event("I drink tea"), app="tea"))
    assert await texts(service, "tea", app="tea") == ["I drink tea"]
    await service.close()
    assert path.exists()


def test_a_folder_that_does_not_exist_is_refused_before_the_first_turn(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"folder that does not exist.*/typo"):
        memory_service(f"memorycore://{tmp_path}/typo/memory.db")
    assert not (tmp_path / "typo").exists()


async def test_a_new_file_is_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        service = memory_service(f"memorycore://{tmp_path}/memory.db?embedder=none")
        await service.add_session_to_memory(session_with(said_event("I drink tea")))
        await service.close()
    assert [record.getMessage() for record in caplog.records] == [f"a new memory begins in {tmp_path}/memory.db"]


async def test_a_file_that_is_only_read_is_not_announced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    service = memory_service(f"memorycore://{tmp_path}/memory.db?embedder=none&mode=ro")
    await service.close()
    assert not any("new memory" in record.getMessage() for record in caplog.records)


async def test_relative_paths_start_at_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    service = memory_service("memorycore:notes.db?embedder=none")
    await service.add_session_to_memory(session_with(said_event("I drink tea")))
    await service.close()
    assert (tmp_path / "notes.db").exists()


async def test_an_in_memory_uri_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    service = memory_service("memorycore::memory:?embedder=none")
    await service.add_session_to_memory(session_with(said_event("I drink tea")))
    await service.close()
    assert bytes_in(tmp_path) == b""


@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("memorycore://notes.db", "memorycore:///absolute"),
        ("memorycore:", "memorycore:///absolute"),
        ("memorycore:///", "memorycore:///absolute"),
        ("sqlite:///x.db", "'sqlite://x.db' does not name a memory"),
        ("memorycore:///x.db?limit=3", "'limit'"),
        ("memorycore:///x.db?max_results=3", "'max_results'"),
        ("memorycore:///x.db?embedder=gpt", "'gpt'"),
        ("memorycore:///x.db?app_name=", "app_name"),
        ("memorycore:///x.db?grpc=true", "'grpc'"),
        ("memorycore+qdrant:///", "qdrant://localhost:6333/collection"),
        ("memorycore+qdrant://host:port/c", "host:port"),
        ("memorycore+qdrant://host/c?grpc_port=many", "grpc_port"),
        ("memorycore+qdrant://host/c?grpc=maybe", "'maybe'"),
        ("memorycore+qdrant://host/a/b", "'qdrant://host/a/b' is not a Qdrant address"),
        ("memorycore+qdrant://host/c#part", "goes on after a #"),
        ("memorycore:///x.db?app_name=a&app_name=b", "app_name twice"),
        ("memorycore:///x.db?app_name=%20", "app must not be empty"),
    ],
)
def test_a_uri_that_cannot_be_used_is_refused_by_what_is_wrong(uri: str, named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        memory_service(uri)


@pytest.mark.parametrize("uri", ["s3cret@host/c?limit=3", "host/c?api_key=s3cret", "host/c?grpc=true&grpc=s3cret"])
def test_a_key_in_a_uri_is_in_no_message(uri: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        memory_service(f"memorycore+qdrant://{uri}")
    assert "s3cret" not in str(raised.value)


async def test_a_service_for_one_app_refuses_another_with_both_names(tmp_path: Path) -> None:
    service = memory_service(f"memorycore:{tmp_path}/m.db?app_name=tea&embedder=none")
    await service.search_memory(app_name="tea", user_id="user", query="salary")
    with pytest.raises(ScopeError, match=r"'tea'.*'payroll'"):
        await service.search_memory(app_name="payroll", user_id="user", query="salary")
    await service.close()
