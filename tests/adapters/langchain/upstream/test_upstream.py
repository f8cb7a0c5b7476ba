"""LangGraph's own tests of its stores, run against ours. They come from its source distributions, not from here."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
SQLITE, POSTGRES = "3.1.2", "3.2.0"
"""The versions of langgraph-checkpoint-sqlite and -postgres, which are not installed."""
BETTER = {
    "test_vector_store_initialization": "reads the tables of that store",
    "test_nonnull_migrations": "reads the migrations of that store",
    "test_sql_injection_vulnerability": "wants an odd key refused; here any key is looked for, as a value",
    "test_numeric_filter_safety": "wants NaN ignored; here a filter that can find nothing is refused",
    "test_no_running_loop": "wants sync calls refused on a running loop; here they work",
    "test_ttl_override_default": "reads without extending the expiry, unlike LangGraph's documentation",
}
"""Tests of `SqliteStore` that fail here, and why that is better; `docs/langgraph-store.md` says so to users."""
POSTGRES_BETTER = {
    "test_no_running_loop": BETTER["test_no_running_loop"],
    "test_omit_expired_filters_read_paths": "expires an item by an UPDATE of that store's tables",
    "test_omit_expired_disabled_preserves_expired_rows": "wants expired items returned, which never happens here",
    "test_omit_expired_refresh_ttl_only_refreshes_live_rows": "expires an item by an UPDATE of that store's tables",
    "test_omit_expired_search_pagination": "expires an item by an UPDATE of that store's tables",
}
"""The same for `PostgresStore`."""
ROUNDED = "test_scores[aaa-halfvec-l2]"
"""Wants a distance of 0 to three digits; vectors of 16 bits give cosines to four and distances near 0 to two."""

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("pytest_mock") is None, reason="LangGraph's tests need pytest-mock"),
]


@pytest.fixture
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder for downloads, kept between runs if pytest keeps a cache."""
    cache: pytest.Cache | None = getattr(request.config, "cache", None)
    return tmp_path if cache is None else cache.mkdir("langgraph")


def pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--timeout", "20", "--retries", "1"]
    environment = {
        name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"
    }  # it leaves the machine
    done = subprocess.run(
        [*command, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode:
        pytest.skip(f"not available here: {done.stderr.strip().splitlines()[-1]}")


def sources(shelf: Path, name: str, wanted: str) -> Path:
    """The unpacked source distribution."""
    folder = shelf / f"{name.replace('-', '_')}-{wanted}"
    if not folder.exists():
        pip(
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            ":all:",
            "--no-build-isolation",
            "-d",
            shelf,
            f"{name}=={wanted}",
        )
        with tarfile.open(f"{folder}.tar.gz") as archive:
            archive.extractall(shelf, filter="data")
    return folder


def installed(site: Path, *packages: str) -> Path:
    """A folder with these packages, beside the environment."""
    if not site.exists():
        pip("install", "-q", "--no-deps", "--target", site, *packages)
    return site


def outcome(folder: Path, tmp_path: Path, *tests: str, path: tuple[Path, ...] = ()) -> tuple[int, list[str]]:
    """The number of these tests that ran, and the names of those that failed, with their parameters."""
    report = tmp_path / "report.xml"
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    where = os.pathsep.join(map(str, [*path, ROOT, ROOT / "adapters", HERE, *given]))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *tests, "-q", "-p", "stand_in", "-p", "no:cacheprovider"),
            *("-o", "addopts=", "-o", "asyncio_mode=auto", f"--basetemp={tmp_path / 'theirs'}", f"--junitxml={report}"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": where},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert report.exists(), done.stdout[-2_000:] + done.stderr[-2_000:]
    cases = list(ET.parse(report).iter("testcase"))
    return len(cases), [
        case.attrib["name"] for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]


def names(failed: list[str]) -> set[str]:
    return {name.partition("[")[0] for name in failed}


def test_all_tests_of_langgraphs_store_in_memory_hold(shelf: Path, tmp_path: Path) -> None:
    folder = sources(shelf, "langgraph-checkpoint", version("langgraph-checkpoint"))
    count, failed = outcome(folder, tmp_path, "tests/test_store.py")
    assert count >= 100
    assert failed == []


@pytest.mark.torture
def test_the_tests_of_langgraphs_store_in_sqlite_hold_or_ask_for_less(shelf: Path, tmp_path: Path) -> None:
    folder = sources(shelf, "langgraph-checkpoint-sqlite", SQLITE)
    site = installed(shelf / "sqlite", "sqlite-vec", "pytest-retry")
    tests = ("tests/test_store.py", "tests/test_async_store.py", "tests/test_ttl.py")
    count, failed = outcome(folder, tmp_path, *tests, path=(site, folder))
    assert count >= 150
    assert names(failed) <= BETTER.keys()


@pytest.mark.torture
def test_the_tests_of_langgraphs_store_in_postgres_hold_or_ask_for_less(shelf: Path, tmp_path: Path) -> None:
    folder = sources(shelf, "langgraph-checkpoint-postgres", POSTGRES)
    site = installed(shelf / "postgres", "psycopg", "psycopg-binary", "psycopg-pool")
    once = ("-k", "not pipe and not pool")  # ways of connecting to a server
    tests = ("tests/test_store.py", "tests/test_async_store.py")
    count, failed = outcome(folder, tmp_path, *tests, *once, path=(site, folder))
    assert count >= 150
    assert names([name for name in failed if name != ROUNDED]) <= POSTGRES_BETTER.keys()
