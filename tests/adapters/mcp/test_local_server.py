"""A hook that asks the server beside the file: the same answers as from the file, whatever stands or happens there."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from calling import ENVIRONMENT

from memory_core import Draft, Memory, MemoryRecord
from memory_mcp.__main__ import main
from memory_mcp.local_server import LocalServer
from tests.app.serve.conftest import Running, running

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there are no local sockets here")

NOBODY = 65_534
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be somebody else for a moment"
)
HEAVY = {"aiosqlite", "asyncio", "memory_core", "numpy", "onnxruntime", "pydantic", "sqlite3", "ssl"}
FACTS = (
    Draft("The spare key is with Mrs Okafor"),
    Draft("The router has the password kolibri-9", collection="projects/website"),
    Draft("Ann answers in Norwegian", tags=["pinned"]),
    Draft("The boat lies at berth 14, beside the crane", role="user", kind="message", session="monday"),
    Draft("Which bucket does the <b>boathouse</b> need?", role="user", kind="message", session="tuesday"),
)
KEY: dict[str, object] = {"session_id": "s", "prompt": "Who has the spare key?"}


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    with Memory(path) as memory:
        memory.bind(user="ann").sync.add_many(FACTS)
        memory.bind(app="a/b", user="ann ä").sync.add("The spare key is with Mr Hansen")
    return path


def place(db: Path) -> Path:
    return db.with_name(f"{db.name}-socket")


def hook(db: Path, event: object, *options: str) -> tuple[str, set[str]]:
    """The output of the program, and the packages that it imports."""
    command = [sys.executable, "-X", "importtime", "-m", "memory_mcp", "hook", "--file", str(db), "--user", "ann"]
    sent = json.dumps(event).encode()
    done = subprocess.run([*command, *options], input=sent, capture_output=True, check=True, env=ENVIRONMENT)
    rows = done.stderr.decode().splitlines()
    return done.stdout.decode(), {row.rpartition("|")[2].strip().partition(".")[0] for row in rows}


FromFile = Callable[..., str]


@pytest.fixture
def from_file(monkeypatch: pytest.MonkeyPatch) -> FromFile:
    """The output of a hook that runs in this process, with no server beside the file."""

    def shown(db: Path, event: object, *options: str) -> str:
        out = io.TextIOWrapper(io.BytesIO())
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(event).encode())))
            patched.setattr(sys, "stdout", out)
            assert main(["hook", "--file", str(db), "--user", "ann", *options]) == 0
        out.seek(0)
        return out.read()

    return shown


def hook_beside(db: Path, event: object, *options: str) -> tuple[str, set[str]]:
    """The same beside a server, which a busy machine may keep from answering within a second, but not each time."""
    for _ in range(9):
        shown, imported = hook(db, event, *options)
        if "onnxruntime" not in imported:
            break
    return shown, imported


def server_of(db: Path) -> LocalServer:
    return LocalServer(str(db), "default", "ann", None)


def asked(db: Path, seconds: float = 60) -> str | None:
    return server_of(db).ask("prompt", None, {"prompt": "Who has the spare key?"}, seconds)


@contextmanager
def serving(db: Path, *options: str) -> Generator[Running]:
    """A server that has loaded its model."""
    with running(db, *options) as server:
        assert asked(db) is not None
        yield server


def said(*texts: str) -> dict[str, object]:
    return {"session_id": "s", "messages": [{"role": "user", "content": text} for text in texts]}


def stored(db: Path, user: str = "ann") -> list[MemoryRecord]:
    with Memory(db, embedder=None, read_only=True) as memory:
        return list(memory.bind(user=user).sync.list(order="oldest", limit=1_000))


def texts(db: Path) -> list[str]:
    return [record.text for record in stored(db)]


@pytest.mark.process
def test_a_prompt_is_answered_as_from_the_file_and_nothing_is_imported_for_it(db: Path, from_file: FromFile) -> None:
    asks: list[tuple[dict[str, object], Sequence[str]]] = [
        (KEY, ()),
        ({"prompt": "Where does the boat lie?", "session_id": "monday"}, ()),  # the model sees what was said on Monday
        ({"prompt": "Which one does it need?", "session_id": "tuesday"}, ()),
        ({"prompt": "What is the password of the router? 🚣"}, ("--collection", "projects/website")),
        ({"prompt": "What is the password of the router?"}, ("--collection", "*")),
        ({"prompt": "Who has the spare key?" + " Really?" * 20_000}, ()),
        ({"prompt": "Thanks a lot!"}, ()),
        ({"prompt": ""}, ()),
        (KEY, ("--app", "a/b", "--user", "ann ä")),
        (KEY, ("--user", "nobody")),
    ]
    blocks = [from_file(db, event, *more) for event, more in asks]
    Path(f"{db}-shown").unlink()  # else what these sessions were shown is not shown again
    assert "Mrs Okafor" in blocks[0]
    assert "Norwegian" in blocks[-4]
    assert "Mr Hansen" in blocks[-2]
    with serving(db):
        for (event, more), expected in zip(asks, blocks, strict=True):
            shown, imported = hook_beside(db, event, *more)
            assert shown == expected
            assert not imported & HEAVY, event
    assert not place(db).exists()


def entry(name: str, parent: str | None, text: str, role: str = "user") -> dict[str, Any]:
    moment = "2026-01-31T12:00:00.123Z"
    message = {"role": role, "content": text}
    return {"type": role, "uuid": name, "parentUuid": parent, "timestamp": moment, "message": message}


@pytest.mark.process
def test_turns_are_remembered_as_in_the_file(db: Path, tmp_path: Path, from_file: FromFile) -> None:
    first = [entry("u1", None, "The cat is called Pepper"), entry("a1", "u1", "Noted.", "assistant")]
    left = [entry("u2", "a1", "The code is 1234"), entry("a2", "u2", "A code.", "assistant")]
    after = [entry("u3", "a1", "The dog is called Salt")]
    events: list[tuple[dict[str, object], Sequence[str]]] = []
    for number, entries in enumerate([first, [*first, *left], [*first, *left, *after]]):
        file = tmp_path / f"{number}.jsonl"
        file.write_text("".join(json.dumps(each) + "\n" for each in entries))
        events.append(({"session_id": "t", "transcript_path": str(file)}, ()))
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "row", "arguments": '{"km": 5}'}}]}
    events.append(({"messages": [{"role": "human", "content": "I row 🚣", "name": "Ann", "id": "m1"}, call]}, ()))
    events += [(said("I swim", "I run"), ()), (said("I swim", "I run", "I swim"), ())]
    events.append((said("The server listens on port 8080"), ("--collection", "projects/website")))
    other = tmp_path / "other.db"
    shutil.copy(db, other)

    for event, options in events:
        from_file(other, event, *options)
    with serving(db, "--write"):
        for event, options in events:
            shown, imported = hook_beside(db, event, *options)
            assert shown == ""
            assert not imported & {"aiosqlite", "numpy", "onnxruntime"}
        shown, imported = hook_beside(db, {"prompt": "What is the cat called?"})
        assert "Pepper" in shown
        assert not imported & HEAVY

    def told(path: Path) -> list[tuple[object, ...]]:
        return sorted(
            (each.text, each.role, each.author, each.session, each.collection, each.source_key or "", str(each.data))
            for each in stored(path)
        )

    assert told(db) == told(other)
    assert "The dog is called Salt" in texts(db)
    assert "The code is 1234" not in texts(db)
    times = {each.occurred_at for each in stored(db) if each.session == "t"}
    assert times == {each.occurred_at for each in stored(other) if each.session == "t"}


@pytest.mark.process
def test_beside_a_server_that_only_reads_a_turn_is_remembered_in_the_file(db: Path) -> None:
    with serving(db):
        hook(db, said("I need the piano tuner on Thursday"))
        shown, imported = hook_beside(db, {"prompt": "When does the piano tuner come?"})
        assert "Thursday" in shown
        assert not imported & HEAVY
    assert texts(db).count("I need the piano tuner on Thursday") == 1


@pytest.mark.process
def test_a_server_of_another_version_model_or_file_does_not_answer(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(db, "--embedder", "none"):
        assert asked(db) is None
        assert "Mrs Okafor" in hook(db, KEY)[0]
    other = tmp_path / "other.db"
    shutil.copy(db, other)
    with serving(db):
        with monkeypatch.context() as newer:
            newer.setattr("memory_mcp.local_server.PROTOCOL", 2)
            assert asked(db) is None
        with monkeypatch.context() as earlier:
            earlier.setattr("memory_mcp.local_server.time.time", lambda: 0.0)
            assert asked(db) is None  # the server reads the question when nobody waits for the answer
        assert asked(db) is not None
        other.replace(db)
        assert asked(db) is None


@pytest.mark.process
def test_spaces_are_recalled_from_the_file(db: Path) -> None:
    with Memory(db) as memory:
        memory.bind(user="team").sync.add("The spare key of the boathouse is steel")
    with serving(db):
        assert "steel" in hook(db, {"prompt": "What is the spare key of the boathouse?"}, "--share", "team=team")[0]


Answering = Callable[[socket.socket], None]


@contextmanager
def standing_in(db: Path, answer: Answering) -> Generator[None]:
    """Somebody else at the place of the server; each connection is answered in a thread."""
    open_ones: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as listening:
        place(db).unlink(missing_ok=True)
        listening.bind(str(place(db)))
        place(db).chmod(0o600)
        listening.listen()

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    open_ones.append(connection)
                    threading.Thread(target=answered, args=(connection,), daemon=True).start()

        def answered(connection: socket.socket) -> None:
            with suppress(OSError):
                answer(connection)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for each in open_ones:
                each.close()


def sending(answer: bytes) -> Answering:
    def send(connection: socket.socket) -> None:
        connection.recv(100_000)
        connection.sendall(answer)
        connection.close()

    return send


def hanging(connection: socket.socket) -> None:
    connection.recv(100_000)


def dribbling(connection: socket.socket) -> None:
    for byte in answer_of("Mr Nobody") * 1_000:
        connection.sendall(bytes([byte]))
        threading.Event().wait(0.05)


def endless(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"x" * 65_536)


def answer_of(text: object, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\r\n".encode() + json.dumps({"text": text}).encode()


STRANGE: dict[str, Answering] = {
    "hangs": hanging,
    "dribbles": dribbling,
    "endless": endless,
    "hangs up": socket.socket.close,
    "silent": sending(b""),
    "garbage": sending(random.Random(1).randbytes(5_000)),
    "no HTTP": sending(b'SSH-2.0\r\n\r\n{"text": "Mr Nobody"}'),
    "deep": sending(b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000),
    "dies in the middle": sending(answer_of("Mr Nobody")[:-5]),
    "another version": sending(answer_of("Mr Nobody", "422 Unprocessable Content")),
    "an older one": sending(answer_of("Mr Nobody", "404 Not Found")),
    "no text": sending(answer_of(5)),
    "a list": sending(b"HTTP/1.1 200 OK\r\n\r\n[]"),
}


@pytest.mark.parametrize("answer", STRANGE.values(), ids=STRANGE)
def test_what_answers_strangely_does_not_answer(tmp_path: Path, answer: Answering) -> None:
    db = tmp_path / "m.db"
    db.touch()
    with standing_in(db, answer):
        assert asked(db, 0.5) is None
    with standing_in(db, sending(answer_of("Mr Somebody"))):
        assert asked(db) == "Mr Somebody"


@pytest.mark.process
@pytest.mark.parametrize("answer", ["hangs", "garbage"])
def test_a_hook_beside_it_opens_the_file(db: Path, answer: str) -> None:
    with standing_in(db, STRANGE[answer]):
        assert "Mrs Okafor" in hook(db, KEY)[0]
        hook(db, said("I row", "I swim"))
    assert [text for text in texts(db) if text.startswith("I ")] == ["I row", "I swim"]


def wait_until_reads_are_counted(server: Running) -> None:
    """A list in the order of reads waits for those that are still to be counted."""
    headers = {"Authorization": f"Bearer {server.key}"}
    httpx.get(
        f"{server.address}/v1/records", params={"order": "accessed"}, headers=headers, timeout=300
    ).raise_for_status()


@pytest.mark.process
def test_a_server_that_is_stopped_and_goes_on_later_stores_nothing_twice(db: Path) -> None:
    with serving(db, "--write") as server:
        wait_until_reads_are_counted(server)  # a server that is stopped while it writes keeps the file to itself
        server.process.send_signal(signal.SIGSTOP)
        try:
            hook(db, said("I row", "I swim"))
            assert "Mrs Okafor" in hook(db, KEY)[0]
        finally:
            server.process.send_signal(signal.SIGCONT)
        assert asked(db) is not None
    assert [text for text in texts(db) if text.startswith("I ")] == ["I row", "I swim"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("ends", "has_ids"),
    [
        ("unheard", True),
        ("killed before", False),
        ("killed after", False),
        *(pytest.param(ends, True, marks=pytest.mark.torture) for ends in ("killed before", "killed after")),
        pytest.param("unheard", False, marks=pytest.mark.torture),
    ],
)
def test_messages_of_which_nobody_said_that_they_are_stored_are_stored_once(
    db: Path, ends: str, *, has_ids: bool
) -> None:
    real = db.with_name("real")
    with running(db, "--write", "--socket", str(real)) as server:

        def forward(connection: socket.socket) -> None:
            request = received(connection)
            with connection:
                if b'"messages"' in request and ends == "killed before":
                    server.process.kill()
                    server.process.wait()
                answer = answered_by(real, request)
                if b'"messages"' not in request:
                    connection.sendall(answer)
                elif ends == "killed after":
                    server.process.kill()

        with standing_in(db, forward):
            event = said("I row", "I swim")
            if has_ids:
                event["messages"] = [{"role": "user", "content": text, "id": text} for text in ("I row", "I swim")]
            hook(db, event)
            assert [text for text in texts(db) if text.startswith("I ")] == ["I row", "I swim"]


def part_of(connection: socket.socket) -> bytes:
    if part := connection.recv(100_000):
        return part
    raise ConnectionError("the client hung up")


def received(connection: socket.socket) -> bytes:
    """A whole request; a client that gives up before its end would keep a core busy for ever."""
    request = b""
    while b"\r\n\r\n" not in request:
        request += part_of(connection)
    head, _, body = request.partition(b"\r\n\r\n")
    length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += part_of(connection)
    return head + b"\r\n\r\n" + body


def answered_by(path: Path, request: bytes) -> bytes:
    answer = b""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(path))
        asking.sendall(request)
        while part := asking.recv(100_000):
            answer += part
    return answer


def test_what_others_could_have_put_there_is_not_asked(tmp_path: Path) -> None:
    db, heard = tmp_path / "m.db", list[bytes]()
    db.touch()

    def listen(connection: socket.socket) -> None:
        heard.append(connection.recv(100_000))
        sending(answer_of("Mr Nobody"))(connection)

    with standing_in(db, listen):
        place(db).chmod(0o666)
        assert asked(db, 5) is None
        place(db).chmod(0o600)
        moved = place(db).rename(tmp_path / "elsewhere")
        place(db).symlink_to(moved)
        assert asked(db, 5) is None
        place(db).unlink()
        place(db).write_text("a file")
        assert asked(db, 5) is None
        place(db).unlink()
        place(db).mkdir()
        assert asked(db, 5) is None
        place(db).rmdir()
    assert heard == []


@as_root
def test_a_socket_or_a_server_of_another_user_is_not_asked(tmp_path: Path) -> None:
    db = tmp_path / "m.db"
    db.touch()
    with standing_in(db, sending(answer_of("Mr Nobody"))):
        os.chown(place(db), NOBODY, NOBODY)
        assert asked(db, 5) is None
    place(db).unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place(db)))
        place(db).chmod(0o600)
        os.seteuid(NOBODY)
        try:
            listening.listen()  # from now on, the socket is of the one but the server of the other
        finally:
            os.seteuid(0)
        assert asked(db, 5) is None
        listening.settimeout(300)
        connection, _ = listening.accept()
        assert connection.recv(100) == b""
        connection.close()


@pytest.mark.parametrize("missing", ["AF_UNIX", "file", "socket"])
def test_without_local_sockets_a_file_or_a_server_nobody_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    db = tmp_path / "m.db"
    if missing != "file":
        db.touch()
    if missing == "AF_UNIX":
        monkeypatch.delattr(socket, "AF_UNIX")
    assert asked(db) is None
    for odd in ("\0", "~nobody-of-that-name/m.db", "x" * 5_000, "\udcff"):
        assert LocalServer(odd, "default", "ann", None).ask("prompt", None, {}) is None
    assert LocalServer(str(db), "default", "\udcff", None).ask("prompt", None, {}) is None
