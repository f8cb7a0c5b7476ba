"""The life of a memory: dropped, forked, and at the end of the interpreter. Each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

torture = pytest.mark.torture
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")


def python(code: str, *arguments: object) -> str:
    """The output of a program; it has to end by itself, well, and without a word on standard error."""
    command = [sys.executable, "-X", "faulthandler", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


DROPPING = """
import gc, logging, os, sys, threading, time
from memory_core import Memory, run_sync
from memory_core.embedding.hashing import HashingEmbedder
logging.basicConfig()
path, count = sys.argv[1], int(sys.argv[2])

def serve(user):
    memory = Memory(path, embedder=HashingEmbedder())
    run_sync(memory.bind(user=user).add, "hello")
    run_sync(memory.bind(user=user).search, "hello")

def state():
    return threading.active_count(), len(os.listdir("/proc/self/fd"))

def settle(wanted):
    deadline = time.monotonic() + 300
    while any(now > then for now, then in zip(state(), wanted)):
        assert time.monotonic() < deadline, (state(), wanted)
        gc.collect()
        time.sleep(0.01)

run_sync(Memory(":memory:", embedder=None).open)
gc.collect()
time.sleep(0.2)
before = state()
for number in range(count):
    serve(f"user {number % 7}")
    if number == count // 2:
        settle(before)
settle(before)
kept = Memory(path, embedder=HashingEmbedder())
with kept:
    run_sync(kept.bind(user="user 0").add, "hello")
    meanwhile = state()
    for number in range(count):
        serve(f"user {number % 7}")
    settle(meanwhile)
    print(sum(run_sync(kept.bind(user=f"user {n}").stats).records for n in range(7)))
    print(run_sync(kept.operator().check))
settle(before)
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors as Linux lists them")
@pytest.mark.parametrize("count", [30, pytest.param(500, marks=torture)])
def test_memories_that_are_dropped_give_everything_back(tmp_path: Path, count: int) -> None:
    assert python(DROPPING, tmp_path / "memory.db", count) == f"{2 * count + 1}\n[]\n"
    assert [file.name for file in tmp_path.iterdir()] == ["memory.db"]


ABANDONING = """
import asyncio, sys
from memory_core import Memory

async def main():
    ann = Memory(sys.argv[1], embedder=None).bind(user="ann")
    added = [asyncio.create_task(ann.add(f"note {n}")) for n in range(200)]
    done, _ = await asyncio.wait(added, return_when=asyncio.FIRST_COMPLETED)
    print(*(task.result().id for task in done))

asyncio.run(main())
"""


def test_what_was_acknowledged_before_a_memory_was_dropped_is_there(tmp_path: Path) -> None:
    acknowledged = set(python(ABANDONING, tmp_path / "memory.db").split())
    assert acknowledged
    listed = python(LISTING, tmp_path / "memory.db").split()
    assert acknowledged <= set(listed)


LISTING = """
import sys
from memory_core import Memory, run_sync
with Memory(sys.argv[1], embedder=None) as memory:
    print(*(record.id for record in run_sync(memory.bind(user="ann").list, limit=1000).records))
"""

RECALLING = """
import asyncio, sys
from memory_core import Memory, open_store

open_store.EXIT_SECONDS = 60.0  # a busy machine may take longer than an exiting script should

async def main():
    ann = Memory(sys.argv[1], embedder=None).bind(user="ann")
    await ann.add("Ann drinks tea")
    print(len((await ann.recall("tea")).hits))

asyncio.run(main())
"""


def test_a_read_just_before_the_process_ends_is_counted(tmp_path: Path) -> None:
    assert python(RECALLING, tmp_path / "memory.db") == "1\n"
    assert python(COUNTING, tmp_path / "memory.db") == "1\n"


COUNTING = """
import sys
from memory_core import Memory, run_sync
with Memory(sys.argv[1], embedder=None) as memory:
    print(*(record.access_count for record in run_sync(memory.bind(user="ann").list).records))
"""

RERUNNING = """
import gc, os, sys, threading, time
script = '''
from memory_core import Memory, run_sync
memory = Memory(path, embedder=None)
ann = memory.bind(user="ann")
run_sync(ann.add, "hello")
found = len(run_sync(ann.search, "hello"))
'''
def rerun():  # as Streamlit does at every click: the whole script again, in another thread
    exec(compile(script, "app.py", "exec"), {"path": sys.argv[1]})
rerun()
gc.collect()
time.sleep(0.2)
before = threading.active_count(), len(os.listdir("/proc/self/fd"))
for _ in range(int(sys.argv[2])):
    thread = threading.Thread(target=rerun)
    thread.start()
    thread.join()
deadline = time.monotonic() + 300
while (threading.active_count(), len(os.listdir("/proc/self/fd"))) > before:
    assert time.monotonic() < deadline
    gc.collect()
    time.sleep(0.01)
print("as before")
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors as Linux lists them")
@pytest.mark.parametrize("count", [20, pytest.param(200, marks=torture)])
def test_a_script_that_is_run_again_and_again_leaves_nothing_open(tmp_path: Path, count: int) -> None:
    assert python(RERUNNING, tmp_path / "memory.db", count) == "as before\n"


ENDINGS = {
    "when the module is torn down": """
class Agent:
    def __init__(self):
        self.memory = Memory(sys.argv[1], embedder=None)
        run_sync(self.memory.bind(user="ann").add, "tea")
    def __del__(self):
        run_sync(self.memory.close)
agent = Agent()
print("end")
""",
    "when the module is torn down and the memory was never opened": """
class Agent:
    def __init__(self):
        self.memory = Memory(sys.argv[1], embedder=None)
    def __del__(self):
        try:
            run_sync(self.memory.bind(user="ann").add, "tea")
        except ClosedError:
            os.write(1, b"end\\n")
agent = Agent()
""",
    "at exit, before and after the memory's own": """
memory = Memory(sys.argv[1], embedder=None)
ann = memory.bind(user="ann")
run_sync(ann.add, "tea")
def say():
    try:
        print("ends" if run_sync(ann.list).records else "empty")
    except ClosedError:
        print("closed")
atexit.register(say)
""",
    "in a signal handler while the same thread waits": """
memory = Memory(sys.argv[1], embedder=None)
ann = memory.bind(user="ann")
run_sync(ann.add, "tea")
def handle(*_):
    run_sync(ann.add, "from the handler")
signal.signal(signal.SIGALRM, handle)
for number in range(100):
    signal.setitimer(signal.ITIMER_REAL, 0.0002 + number % 7 * 0.0002)
    run_sync(ann.add, f"note {number}")
signal.setitimer(signal.ITIMER_REAL, 0)
assert len(run_sync(ann.list, limit=10_000).records) > 101
print("end")
""",
    "in a signal handler that starts the loop": """
import threading
def handle(*_):
    run_sync(asyncio.sleep, 0)
signal.signal(signal.SIGALRM, handle)
class Slow(threading.Thread):
    def start(self):
        super().start()
        threading.Thread = ordinary
        signal.raise_signal(signal.SIGALRM)  # in the middle of it
ordinary, threading.Thread = threading.Thread, Slow
run_sync(asyncio.sleep, 0)
print("end")
""",
    "when it is collected in a thread of the memory's own": """
from memory_core.concurrency.loop import on_core
class Agent:
    def __init__(self):
        self.memory = Memory(sys.argv[1], embedder=None)
        self.store = run_sync(self.memory.bind().memory.ready)
        self.me = self
    def __del__(self):
        try:
            run_sync(self.memory.close)
        except WrongThreadError:
            os.write(1, b"end\\n")
gc.disable()
agent = Agent()
reader = agent.store._reader
del agent
run_sync(reader.run, lambda db: gc.collect() and None)
""",
}


@pytest.mark.parametrize("when", ENDINGS)
def test_a_synchronous_call_never_hangs(tmp_path: Path, when: str) -> None:
    imports = "import asyncio, atexit, gc, os, signal, sys\nfrom memory_core import *\n"
    said = python(imports + ENDINGS[when], tmp_path / "memory.db")
    assert said in {"end\n", "ends\n", "closed\n"}


FORKING = """
import multiprocessing, os, sys
from memory_core import ClosedError, Memory, MiniLmEmbedder, run_sync

shared = MiniLmEmbedder()
with Memory(":memory:", embedder=shared) as other:  # threads of memory and model are running as the process forks
    run_sync(other.bind(user="ann").add, "tea")
    never = Memory(sys.argv[1], embedder=shared)
    opened = Memory(sys.argv[2], embedder=None)
    run_sync(opened.bind(user="ann").add, "of the parent")

    def work(number):
        try:
            run_sync(opened.bind(user="ann").add, "of a child")
        except ClosedError as error:
            assert "belongs to the parent process; make a new Memory" in str(error), error
        else:
            raise AssertionError("wrote to the parent's memory")
        ann = never.bind(user="ann")
        record = run_sync(ann.add, f"number {number} of a worker")
        assert run_sync(ann.search, f"number {number} of a worker", mode="vector")
        own = Memory(sys.argv[2], embedder=None)  # the parent has it open
        run_sync(own.bind(user="ann").add, "of a child")
        return record.id

    with multiprocessing.get_context("fork").Pool(3) as pool:
        ids = pool.map(work, range(30), chunksize=1)
        pool.close()
        pool.join()
    run_sync(opened.bind(user="ann").add, "of the parent")
    ann = never.bind(user="ann")
    assert {record.id for record in run_sync(ann.list, limit=100).records} == set(ids), "the parent opens it now"
    assert run_sync(ann.stats).vectors_pending == 0
    print(run_sync(never.operator().check), run_sync(opened.operator().check))
    print(len(run_sync(opened.bind(user="ann").list, limit=100).records))
"""


@needs_fork
def test_a_memory_that_was_never_opened_works_in_every_forked_worker(tmp_path: Path) -> None:
    assert python(FORKING, tmp_path / "memory.db", tmp_path / "opened.db") == "[] []\n32\n"


FORKED_WHILE_COUNTING = """
import os, signal, sqlite3, sys
from memory_core import ClosedError, Memory, run_sync

with Memory(sys.argv[1], embedder=None) as memory:
    ann = memory.bind(user="ann")
    run_sync(ann.add, "Ann drinks tea")
    other = sqlite3.connect(sys.argv[1], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # the read is not counted yet when the process forks
    run_sync(ann.recall, "tea")
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            run_sync(ann.list, order="accessed")
        except ClosedError:
            os._exit(0)
        os._exit(1)
    print(os.waitpid(child, 0)[1])
    other.execute("COMMIT")
    print(*(record.access_count for record in run_sync(ann.list, order="accessed").records))
"""


@needs_fork
def test_a_child_does_not_wait_for_what_its_parent_counts(tmp_path: Path) -> None:
    assert python(FORKED_WHILE_COUNTING, tmp_path / "memory.db") == "0\n1\n"


BUSY_FORKING = """
import os, sys, threading, time
from memory_core import Memory, run_sync

opened = Memory(sys.argv[1], embedder=None)
ann = opened.bind(user="ann")
run_sync(ann.add, "first")
stop = threading.Event()

def write():
    while not stop.is_set():
        run_sync(ann.add_many, ["note " + "word " * 50] * 20)

writers = [threading.Thread(target=write) for _ in range(3)]
for writer in writers:
    writer.start()
for number in range(int(sys.argv[2])):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        with Memory(sys.argv[1], embedder=None) as own:
            run_sync(own.bind(user="bob").add, f"of child {number}")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for writer in writers:
    writer.join()
print(len(run_sync(opened.bind(user="bob").list, limit=1000).records), run_sync(opened.operator().check))
"""


@needs_fork
@pytest.mark.parametrize("count", [15, pytest.param(300, marks=torture)])
def test_a_child_forked_in_the_middle_of_writes_uses_the_file_safely(tmp_path: Path, count: int) -> None:
    assert python(BUSY_FORKING, tmp_path / "memory.db", count) == f"{count} []\n"


LONG_FORKING = """
import os, sys, threading, time
from memory_core import Memory, StoreUnavailableError, run_sync
from memory_core.storage.sqlite import fork_gate

fork_gate.FORK_SECONDS = 0.05
opened = Memory(sys.argv[1], embedder=None)
reader = run_sync(opened.bind().memory.ready)._reader
began, may_end = threading.Event(), threading.Event()

def read(_):
    began.set()
    may_end.wait(300)

reading = threading.Thread(target=run_sync, args=(reader.run, read))
reading.start()
began.wait(300)
child = os.fork()
if child == 0:
    try:
        run_sync(Memory(sys.argv[1], embedder=None).open)
    except StoreUnavailableError as error:
        assert "was open when this process was forked" in str(error)
    else:
        os._exit(2)
    with Memory(sys.argv[2], embedder=None) as other:
        run_sync(other.bind(user="ann").add, "of a child")
    os._exit(0)
status = os.waitpid(child, 0)[1]
may_end.set()
reading.join()
run_sync(opened.bind(user="ann").add, "of the parent")
print(status)
"""


@needs_fork
def test_a_child_cannot_open_a_file_that_was_being_read_as_it_was_forked(tmp_path: Path) -> None:
    assert python(LONG_FORKING, tmp_path / "memory.db", tmp_path / "other.db") == "0\n"
