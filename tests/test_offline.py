"""Nothing leaves the machine: what a program of each extra opens and connects to, as the kernel sees it.

It speaks to sockets of this machine only, and opens no file for writing outside its own folder, that of temporary files
and that of our cache, where the default embedder unpacks a table once. What a framework does by itself, and the switch
that its page names for it, is in `SWITCHES`. The examples, which are the programs of the frameworks, are traced in
`test_examples.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.process

TRACED: Final = "socket,connect,bind,sendto,sendmsg,sendmmsg,open,openat,creat"
SWITCHES: Final = {
    # litellm, which spade_llm imports, otherwise fetches its table of prices when it is imported (docs/spade.md).
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
CACHE: Final = ".cache/memory-core"
"""At home: where the default embedder unpacks its table, unless a program is given another place, which a program that
it starts may not be."""
FAMILIES: Final = {
    "AF_UNIX",
    "AF_INET",  # with an address that is checked
    "AF_INET6",
    "AF_NETLINK",  # glibc asks the kernel which addresses this machine has
    "AF_UNSPEC",  # glibc undoes a connection with it
}
CORE: Final = """
import asyncio
from memory_core import Memory

async def main():
    async with Memory("memory.db") as memory:
        ann = memory.bind(user="ann")
        await ann.add("Ann rows on Sundays")
        print((await ann.search("Which sport does Ann do?"))[0].record.text)

asyncio.run(main())
"""
PROGRAMS: Final = {
    "core": CORE,
    "accel": f"import numkong\n{CORE}",
    "tokenizers": """
import shutil
from pathlib import Path
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
import memory_core.embedding.minilm as shipped
from memory_core import Fingerprint, Memory
from memory_core.embedding.local import OnnxEmbedder

source, folder = Path(shipped.__file__).parent, Path("model")
folder.mkdir()
shutil.copy(source / "model.onnx", folder)
words = {word: n for n, word in enumerate((source / "vocab.txt").read_text().splitlines())}
tokenizer = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
tokenizer.post_processor = processors.BertProcessing(("[SEP]", words["[SEP]"]), ("[CLS]", words["[CLS]"]))
tokenizer.save(str(folder / "tokenizer.json"))
with Memory("memory.db", embedder=OnnxEmbedder(folder, Fingerprint("mine", "1", 384))) as memory:
    ann = memory.bind(user="ann")
    ann.sync.add("Ann rows on Sundays")
    print(ann.sync.search("Which sport does Ann do?")[0].record.text)
""",
    "otel": """
from opentelemetry.sdk.trace import TracerProvider
from memory_core import Memory
from memory_core.telemetry import observe

observe(tracer_provider=TracerProvider())
with Memory("memory.db") as memory:
    print(memory.bind(user="ann").sync.add("Ann rows on Sundays").text)
""",
    "classic": """
import warnings
warnings.simplefilter("ignore")
from langchain_classic.chains import ConversationChain
from memory_core import Memory
from langchain_core.prompts import PromptTemplate
from memory_langchain import MemoryChatMessageHistory
from memory_langchain.classic import ConversationMemory
from memory_langchain.testing import ScriptedChatModel

with Memory("memory.db") as memory:
    model = ScriptedChatModel(script=["Ann rows on Sundays"])
    kept = ConversationMemory(chat_memory=MemoryChatMessageHistory(memory.bind(user="ann"), "monday"))
    prompt = PromptTemplate.from_template("{memories} {history} {input}")
    print(ConversationChain(llm=model, prompt=prompt, memory=kept).invoke({"input": "What does Ann do?"})["response"])
""",
    "cli": """
import subprocess, sys
command, options = [sys.executable, "-m", "memory_core"], ["--file", "memory.db", "--user", "ann"]
for arguments in (["add", "Ann rows on Sundays"], ["search", "Which sport?"], ["doctor"]):
    subprocess.run([*command, *arguments, *options], check=True)
""",
    "serve": """
import subprocess, sys, urllib.request
of = ["--file", "memory.db", "--user", "ann"]
subprocess.run([sys.executable, "-m", "memory_core", "add", "Ann rows on Sundays", *of], check=True, stdout=-3)
command = [sys.executable, "-m", "memory_core", "serve", *of, "--port", "0"]
with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
    said = next(line for line in server.stderr if "http://" in line)
    address = "http://" + said.split("http://")[1].split()[0]
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    print("Ann rows on Sundays" if opener.open(address).status == 200 else "")
    server.terminate()
    server.stderr.read()
""",
}
NOWHERE: Final = "http://127.0.0.1:9"  # the discard port: an HTTP client that heeds a proxy cannot leave this machine


def found_strace() -> str | None:
    """The tracer, where it is installed and may trace a process."""
    found = shutil.which("strace")
    if found is None:
        return None
    tried = subprocess.run([found, "-f", "-qq", "-e", "trace=none", "true"], capture_output=True, check=False)
    return None if tried.returncode else found


@pytest.fixture(scope="module")
def strace() -> str:
    found = found_strace()
    if found is None:
        pytest.skip("strace is not installed, or may not trace a process here")
    return found


def seen(
    strace: str | None, folder: Path, program: list[str], **variables: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run a program in the folder `own`, with a home beside it; returns what it did that it may not do.

    Without a tracer that is nothing, and the program reaches no HTTP server elsewhere.
    """
    own, home, temporary, traces = (folder / name for name in ("own", "home", "tmp", "traces"))
    for each in (own, home, temporary, traces):
        each.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(temporary),
        **SWITCHES,
        **variables,
    }
    if strace is None:
        environment |= {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "NO_PROXY": "localhost,127.0.0.1"}
    else:
        quietly = ["-qq", "-f", "-ff", "-y", "-s", "0", "--seccomp-bpf", "-e", f"trace={TRACED}"]
        program = [strace, *quietly, "-o", str(traces / "of"), *program]
    done = subprocess.run(
        program,
        cwd=own,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    calls = [line for trace in traces.iterdir() for line in trace.read_text(errors="replace").splitlines()]
    unpacked = Path(environment.get("XDG_CACHE_HOME", home / ".cache")) / Path(CACHE).name
    return done, [*network(calls), *written(calls, own, temporary, home / CACHE, unpacked)]


def kept_at_home(folder: Path) -> list[Path]:
    """The files that a program has left there, but for the table of the default embedder."""
    home = folder / "home"
    return [file for file in home.rglob("*") if file.is_file() and file.parent != home / CACHE]


def network(calls: list[str]) -> Iterator[str]:
    """The calls for a socket of another kind, and those that name an address elsewhere."""
    for call in calls:
        if call.startswith("socket("):
            families, addresses = re.findall(r"^socket\((\w+)", call), []
        else:
            families = re.findall(r"sa_family=(\w+)", call)
            addresses = re.findall(r'(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]+)"', call)
        if not {*families} <= FAMILIES or not all(ip_address(each).is_loopback for each in addresses):
            yield call


def written(calls: list[str], *folders: Path) -> Iterator[str]:
    """The files that were opened for writing elsewhere."""
    for call in calls:
        opened = re.match(r"(?:open|openat|creat)\(.*\) = \d+<(/.*)>$", call)
        if opened is None or not (call.startswith("creat(") or re.search("O_WRONLY|O_RDWR|O_CREAT", call)):
            continue
        file = Path(opened[1].removesuffix(" (deleted)").removesuffix(">(deleted)"))
        if any(file.is_relative_to(each) for each in folders):
            continue
        # The devices keep nothing, a semaphore of multiprocessing is memory, and `__pycache__` is Python's own.
        if file.parts[1] == "dev" or "__pycache__" in file.parts:
            continue
        yield call


@pytest.mark.parametrize("extra", PROGRAMS)
def test_nothing_of_a_quick_start_leaves_the_machine_or_its_folder(extra: str, strace: str, tmp_path: Path) -> None:
    done, wrong = seen(strace, tmp_path, [sys.executable, "-c", PROGRAMS[extra]])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ann rows on Sundays" in done.stdout, done.stdout + done.stderr
    assert wrong == []
    assert kept_at_home(tmp_path) == []


@pytest.mark.parametrize(
    ("does", "call"),
    [
        ("import socket; socket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.1', 53))", "connect("),
        ("import socket; socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).bind(('::', 0))", "bind("),
        ("import socket; socket.socket(socket.AF_PACKET)", "socket("),
        ("from pathlib import Path; Path.home().joinpath('id').write_text('x')", "openat("),
        ("import os; os.chdir(os.environ['HOME']); open('id', 'a')", "openat("),
    ],
)
def test_what_leaves_is_seen(does: str, call: str, strace: str, tmp_path: Path) -> None:
    _, wrong = seen(strace, tmp_path, [sys.executable, "-c", does])
    assert [each.partition("(")[0] + "(" for each in wrong] == [call]
