"""What `MemoryPlugin` adds to a request: `POST /run` of ADK's api_server with and without it.

    python tests/benchmarks/adk_run.py [REQUESTS]

Two servers of one project folder with a scripted model, asked in turns, each request in a session of its own. Each has
a memory of its own with the default embedder, which with the plugin is searched before a turn and stores it.
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

AGENT = """
from google.adk.agents import LlmAgent
from memory_adk.testing import ScriptedLlm

root_agent = LlmAgent(name="helper", model=ScriptedLlm(script=["Noted."] * 100_000))
"""
SERVICES = "services:\n  - {scheme: memorycore, type: memory, class: memory_adk.memory_service}\n"
START_SECONDS = 300.0
WARM_UP = 5


@contextmanager
def api_server(folder: Path, *options: str) -> Iterator[str]:
    """The address of a server that answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    adk = Path(sys.executable).with_name("adk")
    uri = f"memorycore://{folder}/memory{port}.db"
    services = ["--memory_service_uri", uri, "--session_service_uri", "memory://"]
    command = [str(adk), "api_server", str(folder), *services, "--port", str(port), *options]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and server.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def post(url: str, body: object) -> None:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def run(address: str, number: int) -> float:
    """How long one turn in a session of its own takes, in seconds."""
    session = f"s{number}"
    post(f"{address}/apps/helper/users/ann/sessions/{session}", {})
    said = {"role": "user", "parts": [{"text": f"Note number {number}: the crates are at pier {number % 40}"}]}
    body = {"appName": "helper", "userId": "ann", "sessionId": session, "newMessage": said}
    start = time.perf_counter()
    post(f"{address}/run", body)
    return time.perf_counter() - start


def main(requests: int) -> None:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "helper").mkdir()
        (folder / "helper" / "__init__.py").write_text("from . import agent\n")
        (folder / "helper" / "agent.py").write_text(AGENT)
        (folder / "services.yaml").write_text(SERVICES)
        addresses = {
            "with MemoryPlugin": stack.enter_context(api_server(folder, "--extra_plugins", "memory_adk.MemoryPlugin")),
            "without": stack.enter_context(api_server(folder)),
        }
        seconds: dict[str, list[float]] = {kind: [] for kind in addresses}
        for number in range(WARM_UP + requests):
            for kind, address in addresses.items():
                seconds[kind].append(run(address, number))
    for kind, took in seconds.items():
        ordered = sorted(took[WARM_UP:])
        p95 = ordered[int(0.95 * len(ordered))]
        print(f"{kind:18} /run p50 {1e3 * statistics.median(ordered):6.1f} ms, p95 {1e3 * p95:6.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 200)
