"""The files that start a server in production, without a container daemon: each command in them is run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

from memory_core import Memory, StoreUnavailableError
from memory_core.storage.sqlite import read_connection, schema

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "examples" / "deploy"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with what follows them."""
    text = re.sub(r"(?m)^#.*\n", "", (DEPLOY / "Dockerfile").read_text()).replace("\\\n", " ")
    return [(name, rest.strip()) for line in text.splitlines() if line for name, _, rest in [line.partition(" ")]]


def of(name: str) -> list[str]:
    return [rest for each, rest in instructions() if each == name]


def test_the_image_is_made_of_the_package_with_extras_that_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert of("COPY") == of("ADD") == []  # whoever has the package only can build it
    (installed,) = re.findall(r"'memory-core\[(.*)\]'", " ".join(of("RUN")))
    assert set(installed.split(",")) <= set(extras)
    assert of("USER") == ["memory"]


def test_the_command_of_the_image_serves_and_its_check_sees_that(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"ann": "a-token-that-nobody-can-guess"}))
    tokens.chmod(0o600)
    program, *arguments = json.loads(of("ENTRYPOINT")[0]) + json.loads(of("CMD")[0])
    assert program == "memory-core"
    arguments = [str(tokens) if each == "/run/secrets/tokens" else each for each in arguments]
    command = [sys.executable, "-m", "memory_core", *arguments, "--port", "0", "--file", str(tmp_path / "memory.db")]
    (check,) = of("HEALTHCHECK")
    code = json.loads(check.partition("CMD ")[2])[2]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        port = server.stderr.readline().strip().strip("/").rpartition(":")[2]
        checked = [sys.executable, "-c", code.replace("8765", port)]
        assert subprocess.run(checked, check=False, timeout=300).returncode == 0
        server.terminate()
        assert server.wait(300) == 0
    assert subprocess.run(checked, check=False, timeout=300, stderr=subprocess.DEVNULL).returncode != 0


def test_every_service_of_compose_gives_the_server_options_that_it_has(tmp_path: Path) -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    built = {name: service for name, service in services.items() if "build" in service}
    assert set(built) == {"memory", "memory-on-qdrant"}
    for service in built.values():
        assert (DEPLOY / service["build"] / "Dockerfile").is_file()
        insist_on_options(service["command"])


def insist_on_options(options: list[str]) -> None:
    """The command knows them: with an unknown one it would not get as far as the missing file of tokens."""
    command = [sys.executable, "-m", "memory_core", "serve", *options, "--tokens", "/nowhere/tokens.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "the tokens in '/nowhere/tokens.json' cannot be read" in done.stderr


def test_the_units_of_systemd_are_valid_and_their_commands_exist(tmp_path: Path) -> None:
    units = sorted(DEPLOY.glob("*.service")) + sorted(DEPLOY.glob("*.timer"))
    assert len(units) == 3
    serve = next(line for line in (DEPLOY / "memory-core.service").read_text().splitlines() if "ExecStart" in line)
    _, name, *options = shlex.split(serve.partition("=")[2])
    assert name == "serve"
    place = options.index("--tokens")
    insist_on_options(options[:place] + options[place + 2 :])
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not here to read them")
    copies = [shutil.copy(unit, tmp_path) for unit in units]
    for copy in map(Path, copies):
        copy.write_text(copy.read_text().replace("/opt/memory-core/bin/memory-core", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", *copies], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_backup_of_the_unit_is_a_copy(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        memory.bind(user="ann").sync.add("tea")
    text = (DEPLOY / "memory-core-backup.service").read_text()
    script = re.search(r"-c '(.*)'", text)
    assert script is not None
    line = script[1].replace("%%", "%").replace("/var/lib/memory-core", str(tmp_path))
    line = line.replace("/opt/memory-core/bin/memory-core", f"{sys.executable} -m memory_core")
    environment = {"MEMORY_CORE_FILE": str(tmp_path / "memory.db"), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    for _ in range(2):  # the copy of the same day is replaced
        subprocess.run(["sh", "-c", line], check=True, env=environment, timeout=300, capture_output=True)
    (copy,) = tmp_path.glob("backup-*.db")
    with Memory(copy, embedder=None) as memory:
        assert memory.bind(user="ann").sync.stats().records == 1


PRODUCTION = (ROOT / "docs" / "howto" / "production.md").read_text()
OPERATOR = "the-operators-token-that-nobody-guesses"


@contextmanager
def serving(command: list[str], folder: Path) -> Generator[tuple[subprocess.Popen[str], httpx.Client]]:
    """A server that was started with a command of the page, and a client of it."""
    with subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True, cwd=folder) as server:
        try:
            assert server.stderr is not None
            address = server.stderr.readline().split()[-1].rstrip("/")
            head = {"Authorization": f"Bearer {OPERATOR}"}
            with httpx.Client(base_url=address, headers=head, timeout=300) as client:
                yield server, client
        finally:
            server.kill()


def test_the_drill_of_the_page(tmp_path: Path) -> None:
    section = PRODUCTION.partition("## The drill")[2].partition("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    backup, restore, check, serve = (
        [sys.executable, "-m", "memory_core", *shlex.split(line)[1:]] for line in "".join(blocks).splitlines()
    )
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"*": OPERATOR}))
    tokens.chmod(0o600)

    def added(client: httpx.Client, text: str) -> None:
        assert client.post("/v1/owners/default/ann/records", json={"text": text}).status_code == 201

    with serving(serve, tmp_path) as (server, client):
        for number in range(20):
            added(client, f"note {number}")
        subprocess.run(backup, check=True, cwd=tmp_path, timeout=300)
        added(client, "too late")
        server.kill()
        server.wait()
    whole = (tmp_path / "memory.db").read_bytes()
    (tmp_path / "memory.db").write_bytes(whole[: len(whole) // 2] + b"\xff" * (len(whole) // 2))
    assert subprocess.run(check, check=False, cwd=tmp_path, timeout=300, capture_output=True).returncode == 1
    for command in ([*restore, "--yes"], check):  # at a terminal, it asks
        subprocess.run(command, check=True, cwd=tmp_path, timeout=300)
    with serving(serve, tmp_path) as (_, client):
        assert client.get("/v1/health").status_code == 200
        records = client.get("/v1/owners/default/ann/records?limit=100").json()["records"]
        assert {record["text"] for record in records} == {f"note {number}" for number in range(20)}


def test_a_copy_says_whether_an_upgrade_would_change_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (asked,) = re.findall(r"new/bin/python -c '(.*?)'", PRODUCTION, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    with Memory("try.db", embedder=None) as memory:
        memory.bind(user="ann").sync.add("tea")
    exec(asked)
    assert "stays as it is" in capsys.readouterr().out
    newer = (*schema.MIGRATIONS, schema.m001_create)
    for module in (schema, read_connection):
        monkeypatch.setattr(module, "MIGRATIONS", newer)
    with pytest.raises(StoreUnavailableError, match="has an older format"):
        exec(asked)


def test_the_lines_of_the_dashboard_ask_for_what_there_is(tmp_path: Path) -> None:
    named = set(re.findall(r"\bmemory_core_\w+", PRODUCTION))
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"*": OPERATOR}))
    tokens.chmod(0o600)
    command = [sys.executable, "-m", "memory_core", "serve", "--file", "m.db", "--tokens", "tokens.json", "--write"]
    with serving(command, tmp_path) as (_, client):
        client.get("/v1/search")
        text = client.get("/metrics").text
    assert len(named) >= 4
    assert named <= set(re.findall(r"^(memory_core_\w+)", text, re.MULTILINE))
