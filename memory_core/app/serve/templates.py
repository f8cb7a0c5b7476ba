"""The templates of the page: every value is escaped, and no value is a template."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import quote

from memory_core.app.serve.times import ago, in_utc
from memory_core.app.showing import counted

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from starlette.responses import HTMLResponse
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi and jinja2: pip install 'memory-core[serve]'") from error

FOLDER: Final = Path(__file__).parent / "templates"


def drawn(name: str, status: int = 200, /, **values: object) -> HTMLResponse:
    """The answer that a template makes of the values."""
    text = _environment().get_template(name).render(values)
    return HTMLResponse(text.encode(errors="replace"), status)


def part(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="", errors="replace")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= _FILTERS
    return made


def _exact(value: datetime) -> str:
    return value.isoformat()


_FILTERS: Final[Mapping[str, Callable[..., str]]] = {
    "part": part,
    "ago": ago,
    "in_utc": in_utc,
    "exact": _exact,
    "counted": counted,
}
