"""The rules of every test: no network beyond this machine, no clock in the verdict, and Ctrl-C works."""

from __future__ import annotations

import gc
import os
import signal
import socket
from collections.abc import Generator
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, cast

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.torture import FEW_EXAMPLES, LONGEST_SECONDS, MANY_EXAMPLES, TORTURE

NOBODYS_CERTIFICATE: Final = Path(__file__).with_name("nobody.pem")

# spade_llm imports litellm, which would otherwise fetch its price table over the network.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Some tests import packages that import onnxruntime before this package does, and its telemetry would be on.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# A client of HTTP loads the certificates of all authorities when it is made, which takes 16 ms, and no test meets one.
os.environ["SSL_CERT_FILE"] = str(NOBODYS_CERTIFICATE)

# Programs that tests start must end on Ctrl-C, also where a shell that runs the tests in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# They also start with the default of SIGHUP under `nohup`, which would let them ignore it. A handler that does nothing
# is one that no program inherits, so the tests themselves, and the workers that share them, outlive the terminal.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN or "PYTEST_XDIST_WORKER" in os.environ:
    signal.signal(signal.SIGHUP, lambda *_: None)

# A busy machine may take longer than a turn waits. Adapters read this one when they are imported, which is after this.
# The programs that tests start are patient by `tests/patient`.
pytest.MonkeyPatch().setattr("memory_core.conversation.limits.CALL_SECONDS", 60.0)

# A slow machine must not fail a property, and a change is judged by the same examples each time.
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", settings.get_profile("any"), derandomize=True, max_examples=FEW_EXAMPLES)
settings.register_profile("many", settings.get_profile("any"), max_examples=MANY_EXAMPLES)
settings.load_profile("many" if TORTURE else "few")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among the thousands of tests, neither while they are collected nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out long forms, unless they are asked for (`make torture`)."""
    if TORTURE:
        for item in filter(_is_property, items):
            item.add_marker(pytest.mark.torture)
    long = [item for item in items if item.get_closest_marker("torture")]
    for item in long:
        item.add_marker(pytest.mark.timeout(LONGEST_SECONDS), append=False)  # before one of its short form
    if not TORTURE:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("torture")]


def _is_property(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and is_hypothesis_test(item.function)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer than a turn waits for a search or a store, or a search for a reranker."""
    monkeypatch.setattr("memory_core.conversation.limits.RECALL_SECONDS", 60.0)
    monkeypatch.setattr("memory_core.conversation.limits.LOADING_SECONDS", 60.0)
    monkeypatch.setattr("memory_core.retrieval.reranking.DEADLINE_SECONDS", 60.0)


def _is_local(host: object) -> bool:
    if not isinstance(host, str | bytes) or not host:
        return True  # None and "" mean this machine
    name = host.decode() if isinstance(host, bytes) else host
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def _check(what: str, host: object) -> None:
    if not _is_local(host):
        raise RuntimeError(f"a test tried to {what} {host!r}; tests must work without a network")


def _look_up(host: object, *args: Any, **kwargs: Any) -> Any:
    _check("look up", host)
    return _real_look_up(host, *args, **kwargs)


def _connect(connecting: socket.socket, address: Any) -> None:
    if isinstance(address, tuple):
        _check("connect to", cast("tuple[object, ...]", address)[0])
    _real_connect(connecting, address)


_real_look_up: Any = socket.getaddrinfo
_real_connect: Any = socket.socket.connect


# Not an audit hook: up to Python 3.11, a thread that begins to be traced for coverage while a hook runs in another one
# is ended (https://github.com/python/cpython/issues/98257). pytest-socket, which langchain-tests brings, puts the real
# `connect` back after each test.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Refuse the network to a test and its fixtures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", _look_up)
        patch.setattr(socket.socket, "connect", _connect)
        return (yield)
