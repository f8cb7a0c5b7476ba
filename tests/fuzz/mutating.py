"""Inputs for fuzzing: a corpus that is kept, and changes to it.

`corpus/<subject>/` has small inputs: seeds, which were exported or written by hand, and every input that has found a
defect. They are replayed by the ordinary tests, with some hundred changes of them that are the same each time;
`make torture` makes thousands, and others with another `FUZZ_SEED`. An input that fails is left in a temporary folder,
and the failure says how to keep it.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.recall.blocks import END

CORPUS = Path(__file__).parent / "corpus"
SEED = int(os.environ.get("FUZZ_SEED", "7"))

Seeds = Sequence[tuple[str, bytes]]
Mutator = Callable[[random.Random, bytes], bytes]

DEEP = 900
HOSTILE: Sequence[Any] = (
    None, True, False, 0, -1, 1, 2**53, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"),
    float("-inf"), "", " ", "\0", "a\0b", "\ud800", "x\udfff", "\u2028", "\u202e", "\n- x", END, "..", "*",
    "$gt", "user", "active", "1", "x" * 513, "x" * 20_001, "\U000e0001", "\x1b[2J", "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59.999999-14:00", "[" * 3_000, "9" * 5_000, "{}", '["a"]', "null", "NaN",
    "2026-03-02T09:12:00+01:00", "2026-03-02", [], {}, [[]], [None], [1, "a"],
    {"": ""}, {"$gt": 1}, {"\ud800": "\ud800"}, {"a": {"b": [1, {"c": None}]}},
)  # fmt: skip
"""Values that are out of place nearly everywhere."""
TOKENS: Sequence[bytes] = (
    b"\0", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\\ud800", b"\\u0000", b"NaN", b"-Infinity",
    b"1e999", b"9" * 5_000, b"[" * 2_000, b'{"a":' * 2_000, b"null", b"true", b'""', b"\n", b"\r\n", b"\xe2\x80\xa8",
    b'"', b"\\", b",", b"{", b"}", b"]", b"---\n", b"# ", b"```", b"<!--", b"<a b='", b"<![", b"</", b"&#x110000;",
    b"&", b" " * 500,
)  # fmt: skip
"""Bytes that mean something to one of the readers."""


def kept(subject: str) -> Seeds:
    """The inputs of a subject: name and content."""
    found = sorted(path for path in (CORPUS / subject).iterdir() if path.is_file())
    assert found, f"the corpus of {subject} is empty"
    return [(path.name, path.read_bytes()) for path in found]


def changed_bytes(choice: random.Random, content: bytes) -> bytes:
    """The content with one to four changes of bytes."""
    raw = bytearray(content)
    for _ in range(choice.randint(1, 4)):
        at = choice.randrange(len(raw) + 1)
        until = min(len(raw), at + choice.choice((1, 2, 8, 64, 1_000)))
        match choice.randrange(6):
            case 0:
                raw[at:until] = b""
            case 1:
                raw[at:at] = choice.choice(TOKENS)
            case 2:
                raw[at:until] = choice.choice(TOKENS)
            case 3:
                raw[at:at] = raw[at:until] * choice.randint(1, 3)
            case 4 if at < len(raw):
                raw[at] ^= 1 << choice.randrange(8)
            case _:
                del raw[at:]
    return bytes(raw)


def changed_json(choice: random.Random, content: bytes) -> bytes:
    """The content with other values in one to three places, if it is JSON; otherwise with other bytes."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return changed_bytes(choice, content)
    for _ in range(choice.randint(1, 3)):
        value = _with_another(choice, value)
    text = json.dumps(value, ensure_ascii=choice.random() < 0.5)
    return _deepened(choice, text).encode("utf-8", "surrogatepass")


def changed_lines(choice: random.Random, content: bytes) -> bytes:
    """JSON Lines with one line changed, twice, elsewhere, or gone."""
    lines = content.splitlines()
    if not lines:
        return changed_bytes(choice, content)
    at = choice.randrange(len(lines))
    match choice.randrange(6):
        case 0:
            lines.insert(choice.randrange(len(lines) + 1), lines[at])
        case 1:
            lines.insert(choice.randrange(len(lines)), lines.pop(at))
        case 2:
            lines[at] = changed_bytes(choice, lines[at])
        case _:
            lines[at] = changed_json(choice, lines[at])
    return b"\n".join(lines) + b"\n"


def mutants(seeds: Seeds, count: int, change: Mutator, seed: int = 0) -> Iterator[bytes]:
    """So many changed inputs, the same ones every time."""
    choice = random.Random(SEED + seed)
    for _ in range(count):
        yield change(choice, choice.choice(seeds)[1])


@contextmanager
def tried(subject: str, content: bytes, suffix: str) -> Iterator[None]:
    """Say where to keep the input if the block fails, or hangs until the test's timeout."""
    try:
        yield
    except BaseException as error:  # also the timeout of a test, which is no Exception
        name = f"found-{sha256(content).hexdigest()[:12]}{suffix}"
        path = Path(tempfile.mkdtemp(prefix="memory-core-fuzz-")) / name
        path.write_bytes(content)
        error.add_note(f"keep this input: cp {shlex.quote(str(path))} tests/fuzz/corpus/{subject}/")
        raise


def each(subject: str, contents: Iterable[bytes], suffix: str, check: Callable[[bytes], object]) -> int:
    """Check every input; returns how many there were."""
    count = 0
    for content in contents:
        with tried(subject, content, suffix):
            check(content)
        count += 1
    return count


def insist_on_sentence(error: Exception) -> None:
    """Check that an error says what is wrong in some words, however large what it is about may be."""
    assert 10 < len(str(error)) < 5_000, repr(error)[:200]


def _with_another(choice: random.Random, value: Any) -> Any:
    """A JSON value with something else in one place, at any depth."""
    if choice.random() < 0.15 or not isinstance(value, dict | list) or not value:
        return choice.choice(HOSTILE)
    made: Any = value.copy()
    key = choice.choice(list(value) if isinstance(value, dict) else range(len(value)))
    match choice.randrange(8):
        case 0:
            del made[key]
        case 1 if isinstance(made, dict):
            made[choice.choice(("", "x", "$or", "\ud800", "id", "user", "\0", "y" * 600))] = choice.choice(HOSTILE)
        case 1:
            made.append(choice.choice(HOSTILE))
        case 2:
            made[key] = [value[key]]
        case _:
            made[key] = _with_another(choice, value[key])
    return made


def _deepened(choice: random.Random, text: str) -> str:
    """Rarely, something in place of a value that has hundreds of levels."""
    if choice.random() < 0.95 or "null" not in text:
        return text
    opened, closed = choice.choice((("[", "]"), ('{"a":', "}"), ('{"any_of":[', "]}"), ('{"$not":', "}")))
    levels = choice.choice((20, 120, 300, DEEP))
    return text.replace("null", opened * levels + "1" + closed * levels, 1)
