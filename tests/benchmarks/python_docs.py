"""Records that are no conversation: what Python's documentation strings say, and the questions they answer.

Every function and class of the standard library whose docstring has a summary and more is a record: what follows the
summary is its text, the summary is the question. So it comes with Python, and nobody's answers were tuned on it.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Final

from memory_core import Draft

MODULES: Final = """
argparse array ast asyncio base64 bisect calendar codecs collections configparser contextlib copy csv ctypes datetime
decimal difflib dis email.message enum fractions ftplib functools gzip hashlib heapq html http.client imaplib inspect io
ipaddress itertools json locale logging lzma mailbox math multiprocessing operator os os.path pathlib pickle pkgutil
platform plistlib poplib pprint queue random re sched secrets selectors shelve shlex shutil signal smtplib socket
sqlite3 ssl stat statistics string struct subprocess symtable sys sysconfig tarfile tempfile textwrap threading time
timeit tokenize trace traceback types typing unicodedata unittest urllib.parse urllib.request uuid warnings wave weakref
xml.dom.minidom xml.etree.ElementTree xmlrpc.client zipfile zipimport zlib zoneinfo
"""
SUMMARY_WORDS: Final = range(4, 31)
LEAST_WORDS: Final = 8


def records() -> list[tuple[Draft, str]]:
    """Each record and the question that it answers, in alphabetical order."""
    found: dict[str, tuple[Draft, str]] = {}
    for name, docstring in sorted(set(_docstrings())):
        summary, *rest = re.split(r"\n\s*\n", docstring)
        question, text = " ".join(summary.split()), " ".join(" ".join(rest).split())
        if len(question.split()) in SUMMARY_WORDS and len(text.split()) >= LEAST_WORDS:
            found.setdefault(docstring, (Draft(text, source_key=name), question))
    return list(found.values())


def _docstrings() -> Iterator[tuple[str, str]]:
    for module_name in MODULES.split():
        for name, member in _members(module_name):
            home = str(getattr(member, "__module__", None)).lstrip("_")
            docstring = inspect.getdoc(member)
            if docstring and home.split(".")[0] == module_name.split(".")[0]:
                yield name, docstring


def _members(module_name: str) -> Iterator[tuple[str, object]]:
    module = importlib.import_module(module_name)
    for name, member in inspect.getmembers(module):
        if not name.startswith("_") and (inspect.isroutine(member) or inspect.isclass(member)):
            yield f"{module_name}.{name}", member
            for inner, method in vars(member).items() if inspect.isclass(member) else ():
                if not inner.startswith("_") and inspect.isroutine(method):
                    yield f"{module_name}.{name}.{inner}", method
